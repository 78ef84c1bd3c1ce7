package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gateway/internal/netsim"
	"gateway/session"
)

// TestHangUpAtAnyMoment cuts the link while a command is about to begin, when
// the process that is to become a program still has the shell's handlers and a
// hang-up is lost on it.
func TestHangUpAtAnyMoment(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, f := range farMachines(t) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for _, shell := range []string{"bash", "dash", "zsh"} {
				t.Run(shell, func(t *testing.T) { f.hangsUp(t, shell) })
			}
		})
	}
}

func (f far) hangsUp(t *testing.T, shell string) {
	for i := range 9 {
		link := netsim.Start(t, f.server.Addr, 0)
		tr := dial(t, f.server, link.Port())
		s := open(t, tr, session.Config{Shell: shell})
		after := time.Duration(rand.IntN(8000)) * time.Microsecond
		if i%3 == 0 {
			// The next command has another keeper.
			_, _ = s.Run(t.Context(), session.Command{Text: "sleep 60 &"})
		}
		text := "sh -c 'sleep 60; :'; sleep 60"
		if i%4 == 0 {
			text += fmt.Sprintf("\n# %0100000d", 0)
		}
		_, _ = s.Run(context.WithoutCancel(t.Context()), session.Command{Text: text, Timeout: time.Minute, Started: func() {
			time.AfterFunc(after, func() { link.Cut(netsim.RST) })
		}})
		gone(t, "GATEWAY_SESSION="+s.ID())
		s.Close()
		tr.Close()
		if t.Failed() {
			t.Fatalf("round %d, cut after %v", i, after)
		}
	}
	f.clean(t)
}

// TestHangUpOfWhatReacts: what was begun because of a hang-up, or in spite of it,
// is looked at with care. %s is a file that tells of it.
func TestHangUpOfWhatReacts(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, test := range []struct{ name, text string }{
		// A shell that was about to start something as the link went does so, and dies
		// of the hang-up then. What it started is an orphan, younger than the hang-up.
		{"the shell's last is reached", `trap 'sleep 0.05; set -m; sleep 60 & echo >%s; exit' HUP; echo up; sleep 60`},
		// What a program does about it, with the help of others, is not hung up again.
		{"handlers finish", `sh -c 'trap "sleep 1; sleep 1 && echo >%s; exit" HUP; echo up; while :; do sleep 0.05; done'`},
		// Nor is what that starts which ignores it, though it would end of it.
		{"what ignores it is spared", `tag=$GATEWAY_TEST_TAG; unset GATEWAY_TEST_TAG; ` +
			`S=$$ nohup sh -c 'echo >up; while kill -0 $S; do sleep 0.05; done; env --default-signal=HUP sh -c "sleep 3; echo >%s"' & ` +
			`export GATEWAY_TEST_TAG=$tag; until [ -e up ]; do sleep 0.01; done; echo up; sleep 60`},
	} {
		for _, f := range farMachines(t) {
			t.Run(test.name+"/"+f.name, func(t *testing.T) {
				dir, tag := t.TempDir(), tag(t)
				told := filepath.Join(dir, "told")
				r := start(t, f.open(t), session.Command{Text: "cd " + dir + "; export " + tag + "; " + fmt.Sprintf(test.text, told)})
				eventually(t, "the command runs", func() bool { return tagged(tag) > 0 })
				f.link.Cut(netsim.RST)
				_, _ = r.wait(t, 5*time.Second)
				gone(t, tag)
				eventually(t, "what was begun has told so", func() bool { _, err := os.Stat(told); return err == nil })
				gone(t, tag)
				f.clean(t)
			})
		}
	}
}
