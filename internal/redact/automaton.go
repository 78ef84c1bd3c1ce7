package redact

// An automaton finds many texts at once (Aho and Corasick, CACM 18.6, 1975): a
// state stands for the longest end of what has been read that begins one of
// them. It does not change once it is built.
//
// A long secret in all its forms makes millions of states, nearly all of which
// lead to one other only. So what most states have takes nine bytes, and what
// few have stands in maps.
type automaton struct {
	root  [256]int32 // where each byte leads from state 0; 0: nowhere
	on    []byte     // the byte that leads to a state
	about []uint32   // its depth and flags
	fail  []int32    // the state for the next shorter end
	more  map[int32][]edge
	match map[int32]int32 // the length of the longest text that ends there
}

// What about says of a state.
const (
	depthBits = 1<<29 - 1
	chained   = 1 << 29 // it leads to the next state
	branches  = 1 << 30 // more has further edges
	matches   = 1 << 31 // match has a length
)

type edge struct {
	to int32
	on byte
}

func build(texts []string) *automaton {
	a := &automaton{on: make([]byte, 1), about: make([]uint32, 1), more: map[int32][]edge{}, match: map[int32]int32{}}
	for _, text := range texts {
		at := int32(0)
		for i := range len(text) {
			at = a.grow(at, text[i])
		}
		a.ends(at, int32(len(text)))
	}
	a.fail = make([]int32, len(a.on))
	queue := make([]int32, 0, len(a.on))
	for _, to := range a.root {
		if to != 0 {
			queue = append(queue, to)
		}
	}
	for n := 0; n < len(queue); n++ {
		from := queue[n]
		visit := func(to int32) {
			fail := a.step(a.fail[from], a.on[to])
			a.fail[to] = fail
			a.ends(to, int32(a.found(fail)))
			queue = append(queue, to)
		}
		if a.about[from]&chained != 0 {
			visit(from + 1)
		}
		if a.about[from]&branches != 0 {
			for _, e := range a.more[from] {
				visit(e.to)
			}
		}
	}
	return a
}

// ends notes that a text of some length ends at a state.
func (a *automaton) ends(at, length int32) {
	if int(length) > a.found(at) {
		a.match[at] = length
		a.about[at] |= matches
	}
}

// grow returns the state behind an edge, which it makes if need be.
func (a *automaton) grow(from int32, on byte) int32 {
	if to := a.next(from, on); to != 0 {
		return to
	}
	to := int32(len(a.on))
	a.on = append(a.on, on)
	a.about = append(a.about, uint32(a.depth(from)+1))
	switch {
	case from == 0:
		a.root[on] = to
	case from+1 == to:
		a.about[from] |= chained
	default:
		a.about[from] |= branches
		a.more[from] = append(a.more[from], edge{to, on})
	}
	return to
}

// next returns the state behind an edge; 0 if there is none.
func (a *automaton) next(from int32, on byte) int32 {
	if from == 0 {
		return a.root[on]
	}
	about := a.about[from]
	if about&chained != 0 && a.on[from+1] == on {
		return from + 1
	}
	if about&branches != 0 {
		for _, e := range a.more[from] {
			if e.on == on {
				return e.to
			}
		}
	}
	return 0
}

// step returns the state after one byte more.
func (a *automaton) step(at int32, on byte) int32 {
	for {
		if to := a.next(at, on); to != 0 || at == 0 {
			return to
		}
		at = a.fail[at]
	}
}

// depth returns how long the end is that a state stands for.
func (a *automaton) depth(at int32) int { return int(a.about[at] & depthBits) }

// found returns the length of the longest text that ends at a state; 0 if none
// does.
func (a *automaton) found(at int32) int {
	if a.about[at]&matches == 0 {
		return 0
	}
	return int(a.match[at])
}
