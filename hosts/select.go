package hosts

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"gateway/internal/phrase"
)

// Lookup is what a selection needs beyond the inventory. The zero value knows
// nothing more; each function may be nil.
type Lookup struct {
	// Host finds a host that the inventory lacks, as in ssh_config. Its error is that of
	// the selection.
	Host func(name string) (Host, error)
	// Run names the hosts of an earlier run: all of them, or those that had
	// one of the outcomes.
	Run func(id string, outcomes []string) ([]string, error)
}

// Select returns the hosts that a selector picks: in inventory order, and after
// them those that only the lookup knows, in the order in which they were named.
//
// The name of a host, also within a range, must exist ([ErrUnknown]), and so
// must a group (selector.invalid). A pattern that matches nothing, even one
// that would only remove, is an [Error] with the code selector.empty, and so is
// a selector of which nothing is left. "all" and wildcards do not match
// localhost: it takes its name, or a group or tag that it was given.
func (inv *Inventory) Select(s Selector, with Lookup) ([]Host, error) {
	p := &picker{inv: inv, with: with, others: make(map[string]int), names: maxNames}
	chosen := make(map[int]bool)
	for _, t := range s.terms {
		found, err := p.find(t)
		if err != nil {
			return nil, err
		}
		switch t.op {
		case 0:
			for _, i := range found {
				chosen[i] = true
			}
		case '!':
			for _, i := range found {
				delete(chosen, i)
			}
		case '&':
			kept := make(map[int]bool)
			for _, i := range found {
				if chosen[i] {
					kept[i] = true
				}
			}
			chosen = kept
		}
	}
	if len(chosen) == 0 {
		return nil, emptySelector(inv.list(), "selector %s matches no host", brief(s.String()))
	}
	var hosts []Host
	for _, i := range slices.Sorted(maps.Keys(chosen)) {
		hosts = append(hosts, p.host(i))
	}
	return hosts, nil
}

func emptySelector(hint, format string, args ...any) *Error {
	return &Error{Code: codeEmpty, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// A picker evaluates the terms of one selector. Hosts are numbers: places in
// the inventory, and beyond its end those that the lookup added.
type picker struct {
	inv    *Inventory
	with   Lookup
	extra  []Host
	others map[string]int
	names  int // how many more names may be spelled out
}

func (p *picker) host(i int) Host {
	if i < len(p.inv.members) {
		return p.inv.members[i].host()
	}
	return p.extra[i-len(p.inv.members)]
}

// find returns the hosts that a term is about.
func (p *picker) find(t term) ([]int, error) {
	var found []int
	hint := ""
	switch t.kind {
	case kindAll:
		found = p.matching(func(*member) bool { return true })
	case kindGlob:
		return p.glob(t)
	case kindName:
		i, err := p.name(t.text)
		return []int{i}, err
	case kindRange:
		if p.names -= t.spelled.count(); p.names < 0 {
			return nil, invalidSelector("", "selector spells out more than %d names", maxNames)
		}
		return p.each(t.spelled.names())
	case kindRun:
		return p.run(t)
	case kindGroup:
		i, ok := p.inv.groupIndex[t.text]
		if !ok {
			return nil, invalidSelector(p.suggestGroup(t.text), "no group @%s", t.text)
		}
		found, hint = p.inv.groups[i].hosts, "the group has no hosts"
	case kindTag:
		for i, m := range p.inv.members {
			if m.hasTag(t.text) {
				found = append(found, i)
			}
		}
		hint = DidYouMean(t.text, "tag:", p.inv.Tags())
	}
	if len(found) == 0 {
		return nil, emptySelector(cmp.Or(hint, p.inv.list()), "%s matches no host", t.pattern())
	}
	return found, nil
}

func (p *picker) suggestGroup(name string) string {
	if name == "all" {
		return "did you mean all?"
	}
	if _, ok := p.inv.index[name]; ok {
		return "did you mean the host " + name + "?"
	}
	if slices.Contains(p.inv.Tags(), name) {
		return "did you mean tag:" + name + "?"
	}
	return cmp.Or(DidYouMean(name, "@", p.inv.Groups()), p.inv.list())
}

// matching returns the hosts but localhost for which match holds.
func (p *picker) matching(match func(*member) bool) []int {
	var found []int
	for i, m := range p.inv.members {
		if m.name != localhost && match(m) {
			found = append(found, i)
		}
	}
	return found
}

func (p *picker) glob(t term) ([]int, error) {
	var found []int
	// A range in a glob multiplies the comparisons.
	if count := t.spelled.count(); count > 1 && count*len(p.inv.members) > 1<<24 {
		return nil, invalidSelector("", "%s: the range is too large for a pattern", brief(t.text))
	}
	for name := range t.spelled.names() {
		found = append(found, p.matching(func(m *member) bool { return phrase.Match(name, m.name) })...)
	}
	if len(found) == 0 {
		hint := ""
		if phrase.Match(t.text, localhost) {
			hint = "patterns do not match localhost: name it"
		}
		return nil, emptySelector(cmp.Or(hint, p.inv.list()), "pattern %s matches no host", brief(t.text))
	}
	return found, nil
}

// each finds hosts by their names.
func (p *picker) each(names iter.Seq[string]) (found []int, err error) {
	for name := range names {
		i, err := p.name(name)
		if err != nil {
			return nil, err
		}
		found = append(found, i)
	}
	return found, nil
}

// name finds a host by its name, in the inventory and then with the lookup.
func (p *picker) name(name string) (int, error) {
	if i, ok := p.inv.index[name]; ok {
		return i, nil
	}
	if i, ok := p.others[name]; ok {
		return i, nil
	}
	if p.with.Host == nil {
		return 0, p.inv.Unknown(name, nil)
	}
	host, err := p.with.Host(name)
	if err != nil {
		return 0, err
	}
	i := len(p.inv.members) + len(p.extra)
	p.extra = append(p.extra, host)
	p.others[name] = i
	return i, nil
}

func (p *picker) run(t term) ([]int, error) {
	if p.with.Run == nil {
		return nil, invalidSelector("", "%s: earlier runs are not known here", t.pattern())
	}
	names, err := p.with.Run(t.text, slices.Clone(t.outcomes))
	if err != nil {
		return nil, err
	}
	found, err := p.each(slices.Values(names))
	if err == nil && len(found) == 0 {
		err = emptySelector("gateway runs show "+t.text+" shows how it went on each host", "%s matches no host", t.pattern())
	}
	return found, err
}
