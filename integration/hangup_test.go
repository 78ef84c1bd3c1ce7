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
		s, err := session.Open(t.Context(), tr, session.Config{Shell: shell})
		if err != nil {
			t.Fatal(err)
		}
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

// TestHangUpReachesTheShellsLast: a shell that was about to start something as
// the link went does so, and dies of the hang-up then. What it started is an orphan,
// younger than the hang-up.
func TestHangUpReachesTheShellsLast(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, f := range farMachines(t) {
		t.Run(f.name, func(t *testing.T) {
			tag, late := tag(t), filepath.Join(t.TempDir(), "late")
			r := start(t, f.open(t), session.Command{Text: "export " + tag + "; trap 'sleep 0.05; set -m; sleep 60 & echo >" + late + "; exit' HUP; echo up; sleep 60"})
			eventually(t, "the command runs", func() bool { return tagged(tag) > 0 })
			f.link.Cut(netsim.RST)
			_, _ = r.wait(t, 5*time.Second)
			eventually(t, "the last one has started", func() bool { _, err := os.Stat(late); return err == nil })
			gone(t, tag)
			f.clean(t)
		})
	}
}

// TestHangUpLetsHandlersFinish: what a program does about its hang-up, with the
// help of others, is not hung up again.
func TestHangUpLetsHandlersFinish(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, f := range farMachines(t) {
		t.Run(f.name, func(t *testing.T) {
			tag, saved := tag(t), filepath.Join(t.TempDir(), "saved")
			r := start(t, f.open(t), session.Command{Text: "export " + tag +
				`; sh -c 'trap "sleep 1; sleep 1 && echo >` + saved + `; exit" HUP; echo up; while :; do sleep 0.05; done'`})
			f.link.Cut(netsim.RST)
			_, _ = r.wait(t, 5*time.Second)
			eventually(t, "the handler is through", func() bool { _, err := os.Stat(saved); return err == nil })
			gone(t, tag)
			f.clean(t)
		})
	}
}

// TestHangUpSparesWhatIgnoresIt: and what that starts, if it would end of it.
func TestHangUpSparesWhatIgnoresIt(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, f := range farMachines(t) {
		t.Run(f.name, func(t *testing.T) {
			dir, tag := t.TempDir(), tag(t)
			r := start(t, f.open(t), session.Command{Text: "cd " + dir +
				"; nohup sh -c 'echo >up; sleep 0.5; env --default-signal=HUP sh -c \"sleep 3; echo >end\"' & " +
				"export " + tag + "; until [ -e up ]; do sleep 0.01; done; echo up; sleep 60"})
			f.link.Cut(netsim.RST)
			_, _ = r.wait(t, 5*time.Second)
			gone(t, tag)
			eventually(t, "the job ran to its end", func() bool { _, err := os.Stat(filepath.Join(dir, "end")); return err == nil })
			f.clean(t)
		})
	}
}
