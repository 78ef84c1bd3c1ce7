package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
)

// A line of which a part has been seen is matched as a whole, with what came behind
// that: by a wait, and by one that comes when the command or its session is over.
func TestMatchGoesOn(t *testing.T) {
	c := start(t, daemon.Config{})("")
	s := open(t, c, api.Open{})
	gate := filepath.Join(t.TempDir(), "gate")
	command, err := c.Run(t.Context(), s.ID, api.Run{
		Text: fmt.Sprintf("printf 'one\\nserver '; printf 'more ' >&2; until test -e %s; do sleep 0.01; done; echo 'ready on 8080'; echo >&2; sleep 0.1; echo; echo last", gate),
	})
	if err != nil {
		t.Fatal(err)
	}
	wait := func(match string, since int64) (w api.Waited, err error) {
		return c.Wait(t.Context(), s.ID, api.Wait{Until: api.UntilMatch, Match: match, Since: since, Command: command.ID, Max: api.Duration(20 * time.Second)})
	}
	for _, match := range []string{"^server ", "^more "} {
		if w, err := wait(match, 0); err != nil || !w.Met {
			t.Fatalf("Wait for %q = %+v, %v", match, w, err)
		}
	}
	const since = int64(len("one\nserver more ")) // whichever came first
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		match, line string
		met         bool
	}{
		{"^server ready", "server ready on 8080", true},
		{"ready", "server ready on 8080", true},
		{"e", "server ready on 8080", true},
		{"^server ", "", false}, // that has been seen
		{"^more", "", false},
		{"more $", "", false}, // and nothing came but its end
		{"one", "", false},
		{"^$", "", true},
		{"last", "last", true},
	}
	for _, test := range tests {
		if w, err := wait(test.match, since); err != nil || w.Met != test.met || w.Line != test.line {
			t.Errorf("Wait for %q = %v, %q, %v, want %v, %q", test.match, w.Met, w.Line, err, test.met, test.line)
		}
	}
	// A match that needs nothing is met by whatever comes.
	if w, err := wait("^", since); err != nil || !w.Met {
		t.Errorf("Wait for anything = %+v, %v", w, err)
	}
	if _, err := c.Close(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		w, err := c.Matched(t.Context(), command, api.Wait{Match: test.match, Since: since})
		if err != nil || w.Met != test.met || w.Line != test.line {
			t.Errorf("Matched %q = %v, %q, %v, want %v, %q", test.match, w.Met, w.Line, err, test.met, test.line)
		}
	}
}
