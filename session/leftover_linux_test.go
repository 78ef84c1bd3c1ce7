package session_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// beyond is this machine as one whose programs outlive the link to them.
type beyond struct{ transport.Transport }

func (beyond) Account() string { return "somebody@somewhere" }

// given is a ledger with an entry that was given up, of a session that has ended since. It
// tells whether that was seen.
type given struct{ seen chan bool }

func (g given) Enter(string) session.Entry       { return given{make(chan bool, 1)} }
func (g given) Abandoned(string) []session.Entry { return []session.Entry{g} }
func (g given) Note([]string)                    {}
func (g given) Names() []string                  { return []string{"0123456789abcdef"} }
func (g given) Close(ended bool) {
	select {
	case g.seen <- ended:
	default: // the first call counts
	}
}

// TestLookOfAShortSession: a session that is closed at once has seen what became of those
// that were given up, so that nobody has to look again.
func TestLookOfAShortSession(t *testing.T) {
	t.Parallel()
	bin := t.TempDir() // where looking takes its time
	must(t, os.WriteFile(filepath.Join(bin, "grep"), []byte("#!/bin/sh\nsleep 0.1\nexec /bin/grep \"$@\"\n"), 0o700))
	tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir(), "PATH=" + bin + ":" + os.Getenv("PATH")}})
	defer tr.Close()
	for range 10 { // some answers come although the keeper has been told of the end
		ledger := given{make(chan bool, 1)}
		s, err := session.Open(t.Context(), beyond{tr}, session.Config{Ledger: ledger})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		if !<-ledger.seen {
			t.Error("it has ended before it had the answer")
		}
	}
}

// entered is a ledger that tells whether the end of its one session was seen.
type entered struct{ given }

func (l entered) Enter(string) session.Entry { return l.given }

// TestEndOfAKilledKeeperIsNotSeen: it may have made its directory, which somebody has to
// look for.
func TestEndOfAKilledKeeperIsNotSeen(t *testing.T) {
	t.Parallel()
	tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}})
	defer tr.Close()
	ledger := entered{given{make(chan bool, 1)}}
	killing := altered{Transport: tr, onTerminal: instead("kill -9 $$"), onPipe: instead("kill -9 $$")}
	if s, err := session.Open(t.Context(), beyond{killing}, session.Config{Ledger: ledger}); err == nil {
		s.Close()
		t.Fatal("there is a session")
	}
	if <-ledger.seen {
		t.Error("its end was seen")
	}
}

// TestNothingIsLeftBesideAJob: a job may go on for months. What is left of the session
// until then is removed by nobody if all that the account runs is killed.
func TestNothingIsLeftBesideAJob(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s, runtime := openIn(t, session.Config{Shell: shell})
			job, err := strconv.Atoi(strings.TrimSpace(string(run(t, s, "nohup sleep 1000 2>&1 </dev/null & echo $!").Stdout)))
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				for _, left := range processes(s.ID()) { // yash has the job in a subshell
					pid, _ := strconv.Atoi(left)
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}()
			s.Close()
			eventually(t, "nothing is left", func() bool {
				left, _ := filepath.Glob(filepath.Join(runtime, ".gw-*"))
				return len(left) == 0
			})
			if err := syscall.Kill(job, 0); err != nil {
				t.Errorf("the job: %v", err)
			}
		})
	}
}
