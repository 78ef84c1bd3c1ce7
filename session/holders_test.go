package session_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"gateway/session"
)

// TestSomebodyIsLeftBehind: what a program has left in the background, of which the shell
// knows nothing, writes into no later command, also where that has left the shell's session.
func TestSomebodyIsLeftBehind(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		for _, shell := range shells {
			t.Run(shell, func(t *testing.T) {
				t.Parallel()
				s := open(t, session.Config{Shell: shell, NoTerminal: plain})
				leaves(t, s, "")
				leaves(t, s, "setsid ")
			})
		}
	}
}

// leaves has a program leave another one behind. To find that takes an idle moment.
func leaves(t *testing.T, s *session.Session, apart string) {
	for idle := 500 * time.Millisecond; ; idle *= 2 {
		dir := t.TempDir()
		run(t, s, `cd '`+dir+`'; sh -c '`+apart+`sh -c "until [ -e go ]; do sleep 0.02; done; echo theirs; echo theirs >&2; : >said" & :'`)
		<-time.After(idle) // on a busy machine it may take longer
		must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
		r := run(t, s, "until [ -e said ]; do sleep 0.02; done; echo mine")
		if string(r.Stdout) == "mine\n" && len(r.Stderr) == 0 {
			return
		}
		if idle > 4*time.Second {
			t.Fatalf("%sgot %q and %q", apart, r.Stdout, r.Stderr)
		}
	}
}
