package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	must(t, os.WriteFile(gate, nil, 0o600))
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
	closeSession(t, c, s.ID)
	for _, test := range tests {
		w, err := c.Matched(t.Context(), command, api.Wait{Match: test.match, Since: since})
		if err != nil || w.Met != test.met || w.Line != test.line {
			t.Errorf("Matched %q = %v, %q, %v, want %v, %q", test.match, w.Met, w.Line, err, test.met, test.line)
		}
	}
}

// A line that was written over matches by what it was at any time, as who looked on has
// read it, and by all of it.
func TestMatchReadsProgress(t *testing.T) {
	c := start(t, daemon.Config{})("")
	s := open(t, c, api.Open{})
	const line = "\r 50%\r\x1b[K100%\rReady"
	command, err := c.Run(t.Context(), s.ID, api.Run{Text: fmt.Sprintf("printf '%%s\n' '%s'", line), Wait: api.Duration(20 * time.Second)})
	if err != nil || !command.Over() {
		t.Fatalf("Run = %+v, %v", command, err)
	}
	for match, met := range map[string]bool{"^Ready$": true, "^100%$": true, `50%\r`: true, "50%.*Ready": true, "^0%": false, "^$": false} {
		w, err := c.Wait(t.Context(), s.ID, api.Wait{Until: api.UntilMatch, Match: match, Command: command.ID})
		if err != nil || w.Met != met {
			t.Errorf("Wait for %q = %v, %q, %v", match, w.Met, w.Line, err)
		}
	}
	// All but the last word is known, and what stands before the line.
	since := command.From + int64(len(line)-len("Ready"))
	for match, met := range map[string]bool{"^Ready$": true, "^100%": false} {
		if w, err := c.Matched(t.Context(), command, api.Wait{Match: match, Since: since}); err != nil || w.Met != met {
			t.Errorf("Matched %q = %v, %q, %v", match, w.Met, w.Line, err)
		}
	}
	o, err := c.Output(t.Context(), s.ID, api.Query{Command: command.ID, Grep: "^Ready$"})
	if err != nil || o.Matches != 1 {
		t.Errorf("Output = %+v, %v", o, err)
	}
}

// A line matches as it is read, whatever colours it has.
func TestMatchReadsColors(t *testing.T) {
	c := start(t, daemon.Config{})("")
	s := open(t, c, api.Open{})
	const line = "\x1b[1;31merror\x1b[0m: \x1b]0;title\x07port \x1b[1m80\x1b[22m is taken"
	long := strings.Repeat("\x1b[32m.\x1b[0m", 1000) + line
	command, err := c.Run(t.Context(), s.ID, api.Run{Text: fmt.Sprintf("printf '%%s\\n' '%s' '%s'", line, long), Wait: api.Duration(20 * time.Second)})
	if err != nil || !command.Over() {
		t.Fatalf("Run = %+v, %v", command, err)
	}
	for _, match := range []string{"^error: port 80 is taken$", "80 is", `31merror\x1b`} {
		w, err := c.Wait(t.Context(), s.ID, api.Wait{Until: api.UntilMatch, Match: match, Command: command.ID})
		if err != nil || !w.Met || w.Line != line {
			t.Errorf("Wait for %q = %v, %q, %v", match, w.Met, w.Line, err)
		}
	}
	// Five bytes of the line, and what stands before them, are known.
	if w, err := c.Matched(t.Context(), command, api.Wait{Match: "error: port", Since: 12}); err != nil || !w.Met || w.Line != line {
		t.Errorf("Matched = %v, %q, %v", w.Met, w.Line, err)
	}
	if w, err := c.Matched(t.Context(), command, api.Wait{Match: "^error", Since: 12}); err != nil || w.Met {
		t.Errorf("Matched what is known = %v, %q, %v", w.Met, w.Line, err)
	}
	o, err := c.Output(t.Context(), s.ID, api.Query{Command: command.ID, Grep: "port 80 is taken$"})
	if err != nil || o.Matches != 2 || string(o.Pieces[0].Data) != line || !strings.HasSuffix(string(o.Pieces[1].Data), line[len(line)-30:]) || o.Pieces[1].Cut != api.CutBefore {
		t.Errorf("Output = %+v, %v", o, err)
	}
}
