package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// TestInterruptBeforeAnythingRan interrupts a command in the moment when it has
// been typed: the ^C throws away what the shell has not read yet, and may meet
// it at its prompt, while it reads the line, or while it starts the program.
func TestInterruptBeforeAnythingRan(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		level session.Level
		text  string
		plain bool
		after time.Duration
	}{
		{"int", session.Int, "/bin/sleep 30", false, 0},
		{"int while it is read", session.Int, strings.Repeat("# "+strings.Repeat("x", 400)+"\n", 5) + "/bin/sleep 30", false, time.Millisecond},
		{"term", session.Term, "/bin/sleep 30", false, 0},
		{"kill", session.Kill, "/bin/sleep 30", false, 0},
		{"a loop", session.Int, "LOOP", false, 0},
		{"int without a terminal", session.Int, "/bin/sleep 30", true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, shell := range shells {
				t.Run(shell, func(t *testing.T) {
					t.Parallel()
					s := open(t, session.Config{Shell: shell, NoTerminal: test.plain})
					for i := range 2 {
						var refused error
						begun := time.Now()
						ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
						r, err := s.Run(ctx, session.Command{Text: strings.Replace(test.text, "LOOP", endless(shell), 1), Started: func() {
							time.Sleep(test.after)
							refused = s.Interrupt(test.level)
						}})
						cancel()
						// busybox may be interrupted while it takes memory, and glibc ends it then: once in
						// some thousand rounds, and what has become of the command is unknown.
						if r.Ended && r.Verdict == session.Unknown && shell == "busybox ash" {
							if exit, err := s.Exit(); err != nil || exit.Code != 128+int(syscall.SIGABRT) {
								t.Fatalf("round %d: the shell has ended: %+v, %v", i, exit, err)
							}
							s = open(t, session.Config{Shell: shell, NoTerminal: test.plain})
							continue
						}
						if took := time.Since(begun); r.Verdict != session.Interrupted || !errors.Is(err, session.ErrInterrupted) || sshdtest.Over(t, took, 5*time.Second) || refused != nil || r.Ended {
							t.Fatalf("round %d: %s after %v, ended %v: %v; Interrupt = %v", i, r.Verdict, took, r.Ended, err, refused)
						}
					}
					want(t, run(t, s, "echo fine"), 0, "fine\n", "")
					if history := run(t, s, "history 2>&1; fc -l 2>&1").Stdout; bytes.Contains(history, []byte("_gw")) {
						t.Errorf("the history has lines of the session's own: %q", history)
					}
				})
			}
		})
	}
}

// TestTermPassesTheDeadBy sends a TERM before the program is there that it is meant
// for. What the look behind it finds then is a process that has ended and of which the
// shell, which is stopped, takes no notice: nothing has met the signal.
func TestTermPassesTheDeadBy(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		shell := pidOf(t, s)
		var refused error
		r, err := s.Run(t.Context(), session.Command{
			Text:    "/bin/true & kill -STOP $$; /bin/sleep 30",
			Timeout: 10 * time.Second,
			Started: func() {
				refused = s.Interrupt(session.Term)
				time.AfterFunc(500*time.Millisecond, func() { _ = syscall.Kill(shell, syscall.SIGCONT) })
			},
		})
		if r.Verdict != session.Interrupted || !errors.Is(err, session.ErrInterrupted) || refused != nil {
			t.Errorf("%s after %v: %v; Interrupt = %v", r.Verdict, r.Duration, err, refused)
		}
	})
}

// TestCloseTwice: the second one takes no longer than the first, also where a caller never
// takes what came on the terminal.
func TestCloseTwice(t *testing.T) {
	t.Parallel()
	s := openOn(t, local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}}), session.Config{})
	begun, held, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	go func() {
		defer close(over)
		_, _ = s.Run(context.Background(), session.Command{TTY: true, Text: "echo on; exec sleep 1000", Output: func(session.Stream, []byte) {
			begin()
			<-held
		}})
	}()
	<-begun
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.Close()
		s.Close()
	}()
	select {
	case <-closed:
	case <-time.After(15 * time.Second):
		t.Error("a second Close waits for who takes the output")
	}
	close(held)
	<-closed
	<-over
}

// TestCloseOfASilentCommand: who closes a session is not told that its shell left on its
// own, and may not have begun the command.
func TestCloseOfASilentCommand(t *testing.T) {
	t.Parallel()
	begun := filepath.Join(t.TempDir(), "begun")
	must(t, syscall.Mkfifo(begun, 0o600))
	s := openOn(t, local.New(local.Config{}), session.Config{Shell: "bash"})
	ended := make(chan error, 1)
	go func() {
		_, err := s.Run(context.Background(), session.Command{Text: ": >" + begun + "; sleep 1000"})
		ended <- err
	}()
	if _, err := os.ReadFile(begun); err != nil {
		t.Fatal(err)
	}
	s.Close()
	// On a machine that is slow it is that the shell was killed by a signal.
	if err := <-ended; err != nil && !strings.Contains(err.Error(), "hung up while the command ran") {
		t.Errorf("Run = %v, want that it was hung up", err)
	}
}

// TestCloseBeforeTheCommandIsHanded closes a session whose Run still sees to the
// streams. A keeper that comes then is nobody's, and must not keep Close.
func TestCloseBeforeTheCommandIsHanded(t *testing.T) {
	var opened atomic.Bool
	asked, let := make(chan struct{}), make(chan struct{})
	s, err := session.Open(t.Context(), altered{Transport: local.New(local.Config{}), onPipe: func(command string) string {
		if opened.Load() {
			close(asked)
			<-let
		}
		return command
	}}, session.Config{Shell: "bash"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, run(t, s, "sleep 0.1 & echo fine"), 0, "fine\n", "") // the next one gets a keeper of its own
	opened.Store(true)
	closed := make(chan struct{})
	go func() {
		<-asked
		go func() {
			s.Close()
			close(closed)
		}()
		<-s.Done()
		close(let)
	}()
	r, err := s.Run(t.Context(), session.Command{Text: "echo ran"})
	if r.Verdict != session.NotStarted || !errors.Is(err, session.ErrClosed) {
		t.Errorf("got %s %q, %v; want not_started, closed", r.Verdict, r.Stdout, err)
	}
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("Close does not return")
	}
	eventually(t, "no process left", func() bool { return len(processes(s.ID())) == 0 })
}

// halted is a terminal where a frame halts until an interrupt comes, which brings the
// prompt, and behind that the frame. That stands for a bash that is only about to run what
// it has read.
type halted struct {
	transport.Terminal
	halts *atomic.Bool

	mu    sync.Mutex // guards what follows
	frame []byte     // that halts
	seen  []byte     // of the prompt, once it was asked for
	asked bool
}

var (
	nonceOf = regexp.MustCompile(`_gwn=[0-9a-f]+`)
	prompt  = regexp.MustCompile("\x1eP[0-9a-f]+:0:")
)

func (h *halted) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.halts.Load() || h.asked:
	case h.frame == nil:
		h.frame = bytes.Clone(b)
		return len(b), nil
	case bytes.ContainsRune(b, 3):
		h.asked = true
		_, err := fmt.Fprintf(h.Terminal, " %s\n", nonceOf.Find(h.frame))
		return len(b), err
	}
	return h.Terminal.Write(b)
}

func (h *halted) Read(b []byte) (int, error) {
	n, err := h.Terminal.Read(b)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked && h.halts.Load() {
		if h.seen = append(h.seen, b[:n]...); prompt.Match(h.seen) {
			h.halts.Store(false)
			_, _ = h.Terminal.Write(h.frame) // the shell is there
		}
	}
	return n, err
}

// TestInterruptBeforeItIsRead: a command that begins behind the prompt that an interrupt
// has brought is interrupted like any other.
func TestInterruptBeforeItIsRead(t *testing.T) {
	var halts atomic.Bool
	s := openOn(t, altered{Transport: local.New(local.Config{}), terminal: func(t transport.Terminal) transport.Terminal {
		return &halted{Terminal: t, halts: &halts}
	}}, session.Config{Shell: "bash"})
	want(t, run(t, s, "echo first"), 0, "first\n", "")
	halts.Store(true)
	begun := time.Now()
	var refused error
	file := filepath.Join(t.TempDir(), "pid") // of what is detached, and no ^C meets
	text := "setsid -f sh -c 'echo $$ >" + file + "; exec sleep 30'; while ! [ -s " + file + " ]; do :; done; /bin/sleep 30"
	r, err := s.Run(t.Context(), session.Command{Text: text, Started: func() { refused = s.Interrupt(session.Int) }})
	if took := time.Since(begun); r.Verdict != session.Interrupted || sshdtest.Over(t, took, 2*time.Second) || refused != nil || r.Ended {
		t.Errorf("%s after %v, ended %v: %v; Interrupt = %v", r.Verdict, took, r.Ended, err, refused)
	}
	if halts.Load() {
		t.Error("nothing was left unread: this test tests nothing")
	}
	want(t, run(t, s, "kill $(cat "+file+") && echo fine"), 0, "fine\n", "")
}
