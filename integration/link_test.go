package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/gateway"
	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/ssh"
)

// A far machine is a server behind a link that can be cut.
type far struct {
	name    string
	server  *sshdtest.Server
	link    *netsim.Proxy
	runtime string // where its sessions keep their directories, if that is known
}

func farMachines(t *testing.T) []far {
	t.Helper()
	var machines []far
	for _, place := range places(t) {
		if place.server != nil {
			machines = append(machines, far{place.name, place.server, netsim.Start(t, place.server.Addr, 0), place.runtime})
		}
	}
	return machines
}

// ownLink returns the machine behind a link that no other test cuts.
func (f far) ownLink(t *testing.T) far {
	t.Helper()
	f.link = netsim.Start(t, f.server.Addr, 0)
	return f
}

func (f far) open(t *testing.T) *session.Session {
	t.Helper()
	return open(t, dial(t, f.server, f.link.Port()), session.Config{})
}

// open opens a session, which is closed with the test at the latest.
func open(t testing.TB, tr transport.Transport, config session.Config) *session.Session {
	t.Helper()
	s, err := session.Open(t.Context(), tr, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func (f far) clean(t *testing.T) {
	t.Helper()
	if f.runtime != "" {
		eventually(t, "no keeper's directory left", func() bool { return empty(f.runtime) })
	}
}

// A running is a command under way.
type running struct {
	result session.Result
	err    error
	done   chan struct{}
}

// start runs a command until it has said "up", and "err" if it says that, too: the
// streams come apart.
func start(t *testing.T, s *session.Session, command session.Command) *running {
	t.Helper()
	return startIn(t, context.WithoutCancel(t.Context()), s, command)
}

func startIn(t *testing.T, ctx context.Context, s *session.Session, command session.Command) *running {
	t.Helper()
	up := make(chan struct{})
	var mu sync.Mutex
	missing := []string{"up\n"}
	if strings.Contains(command.Text, "echo err >&2") {
		missing = append(missing, "err\n")
	}
	command.Output = func(_ session.Stream, b []byte) {
		mu.Lock()
		defer mu.Unlock()
		if len(missing) == 0 {
			return
		}
		missing = slices.DeleteFunc(missing, func(text string) bool { return strings.Contains(string(b), text) })
		if len(missing) == 0 {
			close(up)
		}
	}
	r := &running{done: make(chan struct{})}
	go func() { // ends with the command, which wait waits for
		defer close(r.done)
		r.result, r.err = s.Run(ctx, command)
	}()
	select {
	case <-up:
	case <-r.done:
		t.Fatalf("the command ended at once: %s %q %q, %v", r.result.Verdict, r.result.Stdout, r.result.Stderr, r.err)
	case <-time.After(10 * time.Second):
		t.Fatal("the command did not start within ten seconds")
	}
	return r
}

func (r *running) wait(t *testing.T, limit time.Duration) (session.Result, error) {
	t.Helper()
	select {
	case <-r.done:
		return r.result, r.err
	case <-time.After(limit):
	}
	limit = sshdtest.Bound(t, limit)
	select {
	case <-r.done:
	case <-time.After(limit):
		t.Fatalf("Run has not returned within %v more", limit)
	}
	return r.result, r.err
}

// wantUnknown checks the result of a command whose link went away.
func wantUnknown(t *testing.T, r session.Result, err error) {
	t.Helper()
	if r.Verdict != session.Unknown || r.ExitCode != -1 || !errors.Is(err, session.ErrLost) || string(r.Stdout) != "up\n" || string(r.Stderr) != "err\n" {
		t.Errorf("got %s %d %q %q, %v; want unknown, the output so far, ErrLost", r.Verdict, r.ExitCode, r.Stdout, r.Stderr, err)
	}
	if gateway.Code(err) != "link.lost" {
		t.Errorf("error %v has not the code link.lost", err)
	}
}

func TestLinkCutWhileRunning(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, f := range farMachines(t) {
		for _, how := range []netsim.How{netsim.RST, netsim.FIN} {
			t.Run(fmt.Sprintf("%s/%d", f.name, how), func(t *testing.T) {
				tag := tag(t)
				s := f.open(t)
				r := start(t, s, session.Command{Text: "export " + tag + "; echo err >&2; echo up; sh -c 'sleep 60; :' | cat; sleep 60"})
				eventually(t, "the command runs", func() bool { return tagged(tag) >= 3 })
				f.link.Cut(how)
				result, err := r.wait(t, 5*time.Second)
				wantUnknown(t, result, err)
				gone(t, tag)
				f.clean(t)
				if r, err := s.Run(t.Context(), session.Command{Text: "true"}); r.Verdict != session.NotStarted || !errors.Is(err, session.ErrClosed) {
					t.Errorf("afterwards Run = %s, %v, want not_started and ErrClosed", r.Verdict, err)
				}
			})
		}
	}
}

// TestHangUpReachesJobs: a job in the background ends with the link too, unless
// it was told not to (nohup).
func TestHangUpReachesJobs(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, f := range farMachines(t) {
		t.Run(f.name, func(t *testing.T) {
			tag := tag(t)
			r := start(t, f.open(t), session.Command{Text: "export " + tag + "; sleep 60 & sleep 60 & echo up; sleep 60"})
			eventually(t, "the jobs run", func() bool { return tagged(tag) == 3 })
			f.link.Cut(netsim.RST)
			if result, err := r.wait(t, 5*time.Second); result.Verdict != session.Unknown {
				t.Errorf("got %s, %v, want unknown", result.Verdict, err)
			}
			gone(t, tag)
			f.clean(t)
		})
	}
}

// TestJobSurvivesCut: what was meant to outlive a logout outlives the link,
// though it writes to what was the command's stdout all the while.
func TestJobSurvivesCut(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, f := range farMachines(t) {
		t.Run(f.name, func(t *testing.T) {
			dir, tag := t.TempDir(), tag(t)
			r := start(t, f.open(t), session.Command{Text: "cd " + dir + `
				nohup sh -c ': >started; until [ -e go ]; do echo tick || exit 1; echo tock >&2; sleep 0.05; done; head -c 5000000 /dev/zero && echo end >end' &
				export ` + tag + `; until [ -e started ]; do sleep 0.01; done; echo up; sleep 60`}) // before, a hang-up ends the job
			eventually(t, "the command runs", func() bool { return tagged(tag) == 1 })
			f.link.Cut(netsim.RST)
			if result, err := r.wait(t, 5*time.Second); result.Verdict != session.Unknown {
				t.Errorf("got %s, %v, want unknown", result.Verdict, err)
			}
			gone(t, tag) // then the machine has seen the cut
			write(t, filepath.Join(dir, "go"), "", 0o600)
			eventually(t, "the job ran to its end", func() bool {
				end, err := os.ReadFile(filepath.Join(dir, "end"))
				return err == nil && string(end) == "end\n"
			})
			f.clean(t)
		})
	}
}

func TestLinkCutWhileIdle(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, f := range farMachines(t) {
		t.Run(f.name, func(t *testing.T) {
			s := f.open(t)
			if r, err := s.Run(t.Context(), session.Command{Text: "echo in"}); err != nil || string(r.Stdout) != "in\n" {
				t.Fatalf("Run = %q, %v", r.Stdout, err)
			}
			f.link.Cut(netsim.FIN)
			f.clean(t)
			// The client may see the end a moment later than the server, and a
			// command that is sent meanwhile has an unknown outcome, never another.
			eventually(t, "the session knows", func() bool {
				r, err := s.Run(t.Context(), session.Command{Text: "true"})
				if r.Verdict != session.NotStarted && r.Verdict != session.Unknown {
					t.Fatalf("Run = %s %d, %v", r.Verdict, r.ExitCode, err)
				}
				return r.Verdict == session.NotStarted && errors.Is(err, session.ErrClosed)
			})
		})
	}
}

// TestLinkCutBeforeStdin: the link goes while the machine makes a place for the stdin
// of a command. That is why it does not start, and not that there is no place.
func TestLinkCutBeforeStdin(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, f := range farMachines(t) {
		t.Run(f.name, func(t *testing.T) {
			s := f.open(t)
			f.link.Stall(netsim.Down)
			sent := f.link.Bytes(netsim.Up)
			r := &running{done: make(chan struct{})}
			go func() { // ends with the command, which wait waits for
				defer close(r.done)
				r.result, r.err = s.Run(context.WithoutCancel(t.Context()), session.Command{Text: "cat", Stdin: strings.NewReader("in\n")})
			}()
			eventually(t, "a channel is asked for", func() bool { return f.link.Bytes(netsim.Up) > sent })
			f.link.Cut(netsim.RST)
			f.link.Resume()
			result, err := r.wait(t, 20*time.Second)
			if code := gateway.Code(err); result.Verdict != session.NotStarted || code != "session.closed" && code != "link.lost" {
				t.Errorf("got %s, %v; want not_started, and that the session or the link is gone", result.Verdict, err)
			}
			f.clean(t)
		})
	}
}

func TestLinkCutBeforeOpening(t *testing.T) {
	for _, f := range farMachines(t) {
		t.Run(f.name, func(t *testing.T) {
			tr := dial(t, f.server, f.link.Port())
			f.link.Close()
			begun := time.Now()
			_, err := session.Open(t.Context(), tr, session.Config{})
			if code := gateway.Code(err); code == "internal" || !errors.Is(err, transport.ErrLost) && !errors.Is(err, transport.ErrUnreachable) {
				t.Errorf("Open = %s: %v, want ErrLost or ErrUnreachable, with a code", code, err)
			}
			if took := time.Since(begun); sshdtest.Over(t, took, 5*time.Second) {
				t.Errorf("it took %v", took)
			}
			f.clean(t)
		})
	}
}

// TestLinkCutInOpening cuts after every so many bytes of an opening: it never
// hangs, and nothing stays.
func TestLinkCutInOpening(t *testing.T) {
	t.Parallel() // it waits, mostly
	f := farMachines(t)[0]
	for after := int64(0); after < 2000; after += 250 {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			tr := dial(t, f.server, f.link.Port())
			f.link.Truncate(netsim.Down, after, netsim.RST)
			defer f.link.Truncate(netsim.Down, -1, netsim.RST)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			s, err := session.Open(ctx, tr, session.Config{})
			if err == nil {
				s.Close()
			} else if ctx.Err() != nil {
				t.Errorf("Open hangs: %v", err)
			}
			tr.Close()
			f.clean(t)
		})
	}
}

// TestHungUpOnASilentLink: who hangs up himself is told that, and not that the link was lost.
func TestHungUpOnASilentLink(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, f := range farMachines(t) {
		t.Run(f.name, func(t *testing.T) {
			s := f.open(t)
			r := start(t, s, session.Command{Text: "echo err >&2; echo up; sleep 60"})
			f.link.Stall()
			s.Close()
			result, err := r.wait(t, 10*time.Second)
			if wantUnknown(t, result, err); err != nil && !strings.Contains(err.Error(), "hung up") {
				t.Errorf("got %v, want that it was hung up", err)
			}
			f.link.Cut(netsim.RST) // the server can't know before that
			f.link.Resume()
			f.clean(t)
		})
	}
}

// TestSilentLink: nothing comes any more and nobody says so. Keepalive notices.
func TestSilentLink(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, f := range farMachines(t) {
		t.Run(f.name, func(t *testing.T) {
			tag := tag(t)
			config := sshConfig(f.server, f.link.Port())
			config.Keepalive = 200 * time.Millisecond
			tr, err := ssh.Dial(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { tr.Close() })
			s := open(t, tr, session.Config{})
			r := start(t, s, session.Command{Text: "export " + tag + "; echo err >&2; echo up; sleep 60"})
			f.link.Stall()
			result, err := r.wait(t, 3*time.Second)
			wantUnknown(t, result, err)
			f.link.Cut(netsim.RST) // the server can't know before that
			f.link.Resume()
			gone(t, tag)
			f.clean(t)
		})
	}
}

// TestDeadlineOnSilentLink: nobody claims that a command has ended when nothing
// answers, and the deadline holds all the same.
func TestDeadlineOnSilentLink(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, f := range farMachines(t) {
		for name, test := range map[string]struct {
			command session.Command
			limit   time.Duration // of the context
		}{
			"timeout":         {session.Command{Timeout: time.Second}, time.Hour},
			"idle":            {session.Command{Idle: time.Second}, time.Hour},
			"context":         {session.Command{}, time.Second},
			"while it is fed": {session.Command{Stdin: zeros{}, Timeout: time.Second}, time.Hour},
			"on the terminal": {session.Command{TTY: true, Timeout: time.Second}, time.Hour},
		} {
			if test.command.TTY && f.name == "no terminal" {
				continue
			}
			t.Run(f.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				tag := tag(t)
				f := f.ownLink(t)
				s := f.open(t)
				ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
				defer cancel()
				test.command.Text = "export " + tag + "; echo err >&2; sleep 0.1; echo up; "
				if test.command.Stdin != nil {
					test.command.Text += "cat >/dev/null"
				} else {
					test.command.Text += "sleep 60"
				}
				r := startIn(t, ctx, s, test.command)
				f.link.Stall()
				time.AfterFunc(test.limit, cancel)
				result, err := r.wait(t, time.Second+3*time.Second)
				if test.command.TTY {
					result.Stdout, result.Stderr = []byte("up\n"), []byte("err\n")
				}
				wantUnknown(t, result, err)
				<-s.Done()
				if exit, err := s.Exit(); !errors.Is(err, session.ErrLost) {
					t.Errorf("Exit = %+v, %v, want that nobody knows", exit, err)
				}
				f.link.Cut(netsim.RST)
				f.link.Resume()
				gone(t, tag)
			})
		}
	}
}

// zeros is an input without an end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// TestNeighbours: what happens to one session is nothing to another on the same
// connection.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	for _, f := range farMachines(t) {
		t.Run(f.name, func(t *testing.T) {
			tr := dial(t, f.server, f.link.Port())
			first, second := open(t, tr, session.Config{}), open(t, tr, session.Config{})
			r := start(t, second, session.Command{Text: "echo up; sleep 1.5; echo done; exit 3"})
			if got, err := first.Run(t.Context(), session.Command{Text: "trap '' INT TERM; sleep 60", Timeout: 300 * time.Millisecond}); got.Verdict != session.TimedOut {
				t.Errorf("the first: %s, %v, want timed_out", got.Verdict, err)
			}
			if got, err := r.wait(t, 10*time.Second); got.Verdict != session.Exited || got.ExitCode != 3 || string(got.Stdout) != "up\ndone\n" {
				t.Errorf("the second: %s %d %q, %v, want exited 3", got.Verdict, got.ExitCode, got.Stdout, err)
			}
			if err := first.Close(); err != nil {
				t.Errorf("Close = %v", err)
			}
		})
	}
}

// TestTimeoutOnUnevenLink: the link becomes slower while the command runs. What
// does not listen to an interrupt is ended all the same, and the session lives.
func TestTimeoutOnUnevenLink(t *testing.T) {
	t.Parallel()
	for _, f := range farMachines(t) {
		t.Run(f.name, func(t *testing.T) {
			tag := tag(t)
			s := f.open(t)
			r := start(t, s, session.Command{
				Text:    "export " + tag + `; sh -c 'trap "" INT TERM QUIT HUP; echo up; sleep 60'`,
				Timeout: 300 * time.Millisecond,
			})
			f.link.SetDelay(100 * time.Millisecond)
			defer f.link.SetDelay(0)
			if got, err := r.wait(t, 10*time.Second); got.Verdict != session.TimedOut || got.Ended {
				t.Errorf("got %s, ended: %v, %v; want timed_out, and a session that lives", got.Verdict, got.Ended, err)
			}
			gone(t, tag)
		})
	}
}
