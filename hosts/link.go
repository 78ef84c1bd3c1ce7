package hosts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gateway/internal/phrase"
)

// maxMemberships bounds what groups nested in groups may multiply to.
const maxMemberships = 1 << 21

// inventory checks how the definitions hang together and returns the result.
func (b *builder) inventory() (*Inventory, error) {
	// A name whose definition has a problem would look like one that nobody
	// defined: what follows makes sense only when all is read.
	if b.problems.Len() > 0 {
		return nil, b.problems.Err()
	}
	l := &linker{builder: b, inv: &Inventory{index: make(map[string]int), groupIndex: make(map[string]int)}}
	for i, d := range b.hosts {
		l.inv.index[d.name] = i
		l.inv.members = append(l.inv.members, &member{name: d.name})
	}
	for i, g := range b.groups {
		l.inv.groupIndex[g.name] = i
		l.inv.groups = append(l.inv.groups, linkedGroup{name: g.name})
	}
	for _, step := range []func(){l.references, l.cycles, l.groups, l.layers, l.jumps} {
		if step(); b.problems.Len() > 0 {
			return nil, b.problems.Err()
		}
	}
	return l.inv, nil
}

// A linker makes an [Inventory] of definitions. Hosts and groups are numbers
// from here on: their places in the inventory.
type linker struct {
	*builder
	inv      *Inventory
	children [][]int // by group: the groups nested in it
	parents  [][]int
	order    []int // the groups as they apply
}

func (l *linker) problem(at place, hint, format string, args ...any) {
	l.problems.Add(&Error{Code: codeInventory, File: at.file, Line: at.line, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// A namespace has what a group may name: hosts, or groups.
type namespace struct {
	kind  string
	index map[string]int
	names func() []string
}

// references resolves the names in groups.
func (l *linker) references() {
	l.children = make([][]int, len(l.builder.groups))
	l.parents = make([][]int, len(l.builder.groups))
	host := namespace{"host", l.inv.index, l.inv.Names}
	group := namespace{"group", l.inv.groupIndex, l.inv.Groups}
	for i, g := range l.builder.groups {
		for _, ref := range g.hosts {
			if member, ok := l.member(g.name, ref, host, group); ok {
				l.inv.groups[i].hosts = append(l.inv.groups[i].hosts, member)
			}
		}
		for _, ref := range g.groups {
			if child, ok := l.member(g.name, ref, group, host); ok {
				l.children[i] = append(l.children[i], child)
				l.parents[child] = append(l.parents[child], i)
			}
		}
	}
}

// member returns what a group names in one namespace. What stands in the other one
// is a mistake that is easily made.
func (l *linker) member(group string, ref reference, want, other namespace) (int, bool) {
	member, ok := want.index[ref.name]
	if !ok && !l.problems.Full() { // to search for what is near takes time
		hint := DidYouMean(ref.name, "", want.names())
		if _, mistaken := other.index[ref.name]; mistaken {
			hint = ref.name + " is a " + other.kind + ": list it under " + other.kind + "s"
		} else if want.kind == "host" {
			hint = cmp.Or(hint, "define it under hosts, if only as `"+brief(ref.name)+": {}`; ssh_config may say the rest")
		}
		l.problem(ref.place, hint, "group %s: no %s %s", group, want.kind, brief(ref.name))
	}
	return member, ok
}

// cycles refuses groups that contain themselves.
func (l *linker) cycles() {
	loop := findLoop(l.children)
	if loop == nil {
		return
	}
	first := l.builder.groups[loop[0]]
	l.problem(first.place, "", "groups contain each other: %s", arrows(loop, func(i int) string { return l.builder.groups[i].name }))
}

// groups puts the groups in the order in which they apply and finds out who is
// in them: the order of the files, but a group always comes after those that
// it is nested in, so that what is nearer to the host wins.
func (l *linker) groups() {
	done := make([]bool, len(l.builder.groups))
	var visit func(int)
	visit = func(i int) {
		if done[i] {
			return
		}
		done[i] = true
		for _, parent := range l.parents[i] {
			visit(parent)
		}
		l.order = append(l.order, i)
	}
	for i := range l.builder.groups {
		visit(i)
	}
	total := 0
	for _, i := range slices.Backward(l.order) { // children first
		hosts := l.inv.groups[i].hosts // its own
		for _, child := range phrase.Unique(l.children[i]) {
			nested := l.inv.groups[child].hosts
			hosts = append(hosts, nested...)
			if total += len(nested); total > maxMemberships {
				l.problem(l.builder.groups[i].place, "", "groups nest too many hosts")
				return
			}
		}
		slices.Sort(hosts)
		l.inv.groups[i].hosts = slices.Compact(hosts)
	}
}

// layers stacks up what applies to each host, the most specific last.
func (l *linker) layers() {
	for i, d := range l.builder.hosts {
		if d.defaults != nil {
			l.inv.members[i].layers = append(l.inv.members[i].layers, d.defaults)
		}
	}
	for _, i := range l.order {
		group := l.builder.groups[i]
		for _, host := range l.inv.groups[i].hosts {
			m := l.inv.members[host]
			m.layers = append(m.layers, group.block)
			m.groups = append(m.groups, group.name)
		}
	}
	for i, d := range l.builder.hosts {
		if d.block != nil {
			l.inv.members[i].layers = append(l.inv.members[i].layers, d.block)
		}
	}
}

// jumps refuses hops that nobody knows, and ways that lead back to themselves.
func (l *linker) jumps() {
	hops := make([][]int, len(l.inv.members))
	told := make(map[*block]bool)
	for i, m := range l.inv.members {
		at := m.way()
		if at == nil {
			continue
		}
		if l.problems.Full() {
			return
		}
		for _, word := range at.Jump {
			jump, err := ParseJump(word)
			hop, known := l.inv.index[jump.Host]
			switch {
			case known:
				hops[i] = append(hops[i], hop)
			case err == nil && jump.nameOnly() && !told[at]:
				told[at] = true
				hint := cmp.Or(DidYouMean(word, "", l.inv.Names()), "define the host, if only as `"+word+": {}`, or write [user@]host.domain[:port]")
				l.problem(place{at.file, at.lines["jump"]}, hint, "jump: no host %s", brief(word))
			}
		}
	}
	if loop := findLoop(hops); loop != nil {
		at := l.inv.members[loop[0]].way()
		hint := "take one of these jumps out"
		if len(loop) == 2 {
			hint = "write `jump: []` on " + l.inv.members[loop[0]].name
		}
		l.problem(place{at.file, at.lines["jump"]}, hint, "jump leads in a circle: %s", arrows(loop, func(i int) string { return l.inv.members[i].name }))
	}
}

// findLoop returns the first loop of a graph, which has for each node those that it leads
// to. The loop's start is repeated at its end; nil if there is none.
func findLoop(graph [][]int) []int {
	const (
		unseen = iota
		open
		closed
	)
	var (
		state = make([]uint8, len(graph))
		path  []int
		visit func(int) []int
	)
	visit = func(i int) []int {
		state[i] = open
		path = append(path, i)
		for _, j := range graph[i] {
			if state[j] == open {
				return append(slices.Clone(path[slices.Index(path, j):]), j)
			}
			if state[j] == unseen {
				if loop := visit(j); loop != nil {
					return loop
				}
			}
		}
		path = path[:len(path)-1]
		state[i] = closed
		return nil
	}
	for i := range graph {
		if state[i] == unseen {
			if loop := visit(i); loop != nil {
				return loop
			}
		}
	}
	return nil
}

// arrows writes a loop as "a -> b -> a"; a long one without its middle.
func arrows(loop []int, name func(int) string) string {
	var names []string
	for i, node := range loop {
		if len(loop) > 12 && i == 8 {
			names = append(names, "…")
		}
		if len(loop) <= 12 || i < 8 || i >= len(loop)-2 {
			names = append(names, name(node))
		}
	}
	return strings.Join(names, " -> ")
}
