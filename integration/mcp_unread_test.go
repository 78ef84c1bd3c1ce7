package integration

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/internal/sshdtest"
)

// A program that does not read what an agent types holds up no call, and an
// interrupt still reaches it; the session goes on.
func TestAgentTypesToDeaf(t *testing.T) {
	t.Parallel()
	a := localAgent(t, newHouse(t))
	a.do("session_open", args{"host": "localhost", "name": "s"})
	a.do("run", args{"session": "s", "command": "sleep 600", "tty": true, "wait_ms": 300})
	for range 2 { // the second waits behind the first
		begun := time.Now()
		sent := a.do("send", args{"session": "s", "text": strings.Repeat("abc\n", 5000), "wait_ms": 1000})
		if took := time.Since(begun); sshdtest.Over(t, took, 10*time.Second) || sent.Verdict != "running" || !strings.Contains(sent.text, "does not read") {
			t.Errorf("after %v: %.1000s", took, sent.text)
		}
	}
	if stopped := a.do("interrupt", args{"session": "s"}); stopped.Verdict != "interrupted" {
		t.Errorf("interrupt = %.1000s", stopped.text)
	}
	a.do("run", args{"session": "s", "command": "echo here"}).exited(t, 0, "here\n")
}

// A line that was shown in part is waited for as a whole.
func TestAgentMatchesShownPart(t *testing.T) {
	t.Parallel()
	a := localAgent(t, newHouse(t))
	a.do("session_open", args{"host": "localhost", "name": "s"})
	gate := filepath.Join(t.TempDir(), "gate")
	part := a.do("run", args{"session": "s", "command": fmt.Sprintf("printf 'server '; until test -e %s; do sleep 0.01; done; echo 'ready on 8080'; sleep 600", gate), "wait_ms": 800})
	if part.Stdout != "server " {
		t.Fatalf("run = %s", part.text)
	}
	write(t, gate, "", 0o600)
	if w := a.do("wait", args{"session": "s", "until": "match", "match": "^server ready"}); !strings.Contains(w.text, `"met":true,"line":"server ready on 8080"`) || w.Stdout != "ready on 8080\n" {
		t.Errorf("wait = %s", w.text)
	}
	if w := a.do("wait", args{"session": "s", "until": "match", "match": "server", "wait_ms": 100}); !strings.Contains(w.text, `"met":false`) {
		t.Errorf("wait for what was shown = %s", w.text)
	}
	a.do("interrupt", args{"session": "s"})
}

// Of a long line an agent is told the part that matches.
func TestAgentMatchesLongLine(t *testing.T) {
	a := localAgent(t, newHouse(t))
	a.do("session_open", args{"host": "localhost", "name": "s"})
	for _, end := range []string{"", "; sleep 600"} {
		id := a.do("run", args{"session": "s", "command": "printf '%60000s' MARK; printf '%4000s\\n' end" + end, "wait_ms": 0}).ID
		w := a.do("wait", args{"id": id, "until": "match", "match": "M.RK", "max_output": 256})
		if !w.Met || !strings.Contains(w.Line, "MARK") || len(w.Line) > 1024 {
			t.Errorf("wait = met %v, a line of %d bytes", w.Met, len(w.Line))
		}
		if end == "" {
			a.do("wait", args{"id": id, "until": "exit"})
		}
	}
	a.do("interrupt", args{"session": "s"})
}

// An agent whom nothing but the end of the shell helps is told so.
func TestAgentMeetsStubborn(t *testing.T) {
	t.Parallel()
	a := localAgent(t, newHouse(t))
	a.do("session_open", args{"host": "localhost", "name": "s"})
	a.do("run", args{"session": "s", "command": "trap '' INT; echo begun; while :; do sleep 0.1; done", "wait_ms": 0})
	a.do("wait", args{"session": "s", "until": "match", "match": "begun"})
	if kept := a.do("interrupt", args{"session": "s", "level": "kill"}); kept.Verdict != "running" || !strings.Contains(kept.Next, "sessions, action reset") {
		t.Errorf("interrupt = %s", kept.text)
	}
	a.do("sessions", args{"action": "reset", "session": "s"})
	a.do("run", args{"session": "s", "command": "echo here"}).exited(t, 0, "here\n")
}
