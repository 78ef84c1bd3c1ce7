package redact

// An automaton finds many texts at once (Aho and Corasick, CACM 18.6, 1975): a
// state stands for the longest end of what has been read that begins one of
// them. It does not change once it is built.
type automaton struct {
	states []state
	begins [256]bool // the bytes that some text begins with
}

type state struct {
	first edge   // most states have one edge only
	more  []edge // further ones
	fail  int32  // the state for the next shorter end
	depth int32
	match int32 // the length of the longest text that ends here; 0 for none
}

type edge struct {
	to int32 // 0: there is none, for no edge leads to the root
	on byte
}

func build(texts []string) *automaton {
	a := &automaton{states: make([]state, 1)}
	for _, text := range texts {
		a.begins[text[0]] = true
		at := int32(0)
		for i := range len(text) {
			at = a.grow(at, text[i])
		}
		a.states[at].match = int32(len(text))
	}
	queue := make([]int32, 0, len(a.states))
	queue = append(queue, 0)
	for n := 0; n < len(queue); n++ {
		from := queue[n]
		for _, e := range a.states[from].edges() {
			to := &a.states[e.to]
			if from != 0 {
				to.fail = a.step(a.states[from].fail, e.on)
			}
			to.match = max(to.match, a.states[to.fail].match)
			queue = append(queue, e.to)
		}
	}
	return a
}

// grow returns the state behind an edge, which it makes if need be.
func (a *automaton) grow(from int32, on byte) int32 {
	if to := a.states[from].next(on); to != 0 {
		return to
	}
	to := int32(len(a.states))
	a.states = append(a.states, state{depth: a.states[from].depth + 1})
	if s := &a.states[from]; s.first.to == 0 {
		s.first = edge{to, on}
	} else {
		s.more = append(s.more, edge{to, on})
	}
	return to
}

func (s *state) edges() []edge {
	if s.first.to == 0 {
		return nil
	}
	return append([]edge{s.first}, s.more...)
}

// next returns the state behind an edge; 0 if there is none.
func (s *state) next(on byte) int32 {
	if s.first.on == on {
		return s.first.to
	}
	for _, e := range s.more {
		if e.on == on {
			return e.to
		}
	}
	return 0
}

// step returns the state after one byte more.
func (a *automaton) step(at int32, on byte) int32 {
	for {
		if to := a.states[at].next(on); to != 0 || at == 0 {
			return to
		}
		at = a.states[at].fail
	}
}
