package session

import "testing"

// A line that was left is followed by empty ones, to bring the prompt back.
func TestProgressKeepsFirstPrompt(t *testing.T) {
	r := &run{wake: make(chan struct{}, 1)}
	r.take(mark{kind: 'P', payload: "130:#"})
	r.take(mark{kind: 'P', payload: "2:#"})
	if got := r.progress.exitCode(); got != 130 {
		t.Errorf("status %d after a later prompt, want the first one's 130", got)
	}
}
