package conformance

import (
	"strings"
	"testing"

	"gateway/session"
)

// TestTable: a case can be told by its id, and each of its steps can fail.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, group := range Groups() {
		for _, c := range group.Cases {
			if seen[c.ID] || !strings.HasPrefix(c.ID, group.Letter) || c.Name == "" || len(c.Steps) == 0 {
				t.Errorf("%s, %q: its id is another one's, or something is missing", c.ID, c.Name)
			}
			seen[c.ID] = true
			for shell, reason := range c.Except {
				if reason == "" {
					t.Errorf("%s: no reason for %s", c.ID, shell)
				}
			}
			for i, step := range c.Steps {
				wrong := session.Result{Verdict: session.Unknown, ExitCode: -2, Ended: !step.Ended}
				if len(step.compare(wrong, session.ErrLost, "/tmp")) == 0 {
					t.Errorf("%s, step %d: takes any result", c.ID, i+1)
				}
				if step.Moves && step.Cwd == "" {
					t.Errorf("%s, step %d: moves nowhere", c.ID, i+1)
				}
			}
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, text := range []string{"", "[1] 4711\n", "[1]+  Done                    sleep 0.1\n", "[1] + Terminated   sleep\n[2]  - done  x"} {
		if !notices.match(text) {
			t.Errorf("%q is a notice", text)
		}
	}
	for _, text := range []string{"x", "[1] a\nout\n", "$ ", "out\n[1] a\n"} {
		if notices.match(text) {
			t.Errorf("%q is more than a notice", text)
		}
	}
	if Without("a", "b").match("xbx") || !Without("a").match("x") || !Like("a.b").match("a\nb") {
		t.Error("patterns do not match what they should")
	}
}
