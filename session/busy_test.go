package session_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gateway/session"
	"gateway/transport/local"
)

// TestBusyMachine: what a command has started is found also where a look at the
// processes takes its time, and signals queue up behind it. They missed what had begun
// before them: its age was taken from when the look began.
func TestBusyMachine(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			bin := t.TempDir()
			must(t, os.WriteFile(filepath.Join(bin, "grep"), []byte("#!/bin/sh\n/bin/sleep 0.35\nPATH=${PATH#*:} exec grep \"$@\"\n"), 0o700))
			machine := local.New(local.Config{Env: []string{"HOME=" + t.TempDir(), "PATH=" + bin + ":/usr/bin:/bin"}})
			var s *session.Session
			for tries := range 3 { // beside other tests it may be too busy for a shell to come back in time
				s = openOn(t, machine, session.Config{Shell: shell, NoTerminal: true})
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(300*time.Millisecond, cancel)
				r, err := s.Run(ctx, session.Command{Text: `sleep 1000 & setsid sleep 1000 & sh -c 'trap "" INT QUIT; sleep 1000; sleep 1000'; sleep 1000`})
				if r.Verdict == session.Interrupted && !r.Ended {
					break
				}
				if tries == 2 {
					t.Errorf("got %s, ended %v, %v; want interrupted in a session that lives", r.Verdict, r.Ended, err)
				}
			}
			for _, pid := range processes(s.ID()) {
				if name, _ := os.ReadFile("/proc/" + pid + "/cmdline"); string(name) == "sleep\x001000\x00" {
					t.Errorf("process %s is left", pid)
				}
			}
		})
	}
}
