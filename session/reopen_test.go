package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/gateway"
	"gateway/session"
	"gateway/transport/local"
)

func TestReopen(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, _ *session.Session) {
		shell := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
		s := open(t, session.Config{Shell: strings.ReplaceAll(shell, "_", " "), Reopen: true, Env: map[string]string{"A": "config"}})
		run(t, s, "cd /usr; export B='two \"words\" $x' C=3; D=4; unset A; export A=changed")
		run(t, s, "sleep 0.3 >/dev/null 2>&1 &") // the next one gets a keeper of its own
		r, err := s.Run(t.Context(), session.Command{Text: "export B=lost; exit 7"})
		if err != nil || !r.Ended || r.ExitCode != 7 {
			t.Fatalf("got %d, ended %v, %v, want 7 and the end", r.ExitCode, r.Ended, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		fresh, err := s.Reopen(ctx)
		if err != nil {
			t.Fatalf("Reopen = %v", err)
		}
		defer fresh.Close()
		if fresh.ID() != s.ID() {
			t.Errorf("it is called %s, want %s", fresh.ID(), s.ID())
		}
		want(t, run(t, fresh, `pwd; printf '%s|' "$A" "$B" "$C" "${D-}"; sh -c 'echo $A'`), 0, "/usr\nchanged|two \"words\" $x|3||changed\n", "")
	})
}

// TestReopenOfAClosedSession: nothing runs in it that could be waited for.
func TestReopenOfAClosedSession(t *testing.T) {
	s := open(t, session.Config{Reopen: true})
	s.Close()
	if fresh, err := s.Reopen(t.Context()); !errors.Is(err, session.ErrClosed) {
		t.Errorf("Reopen = %v, %v, want %v", fresh, err, session.ErrClosed)
	}
}

// TestReopenAfterAnInterrupt: the interrupt meets the shell while it writes down
// what is exported. It does that again.
func TestReopenAfterAnInterrupt(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "dash"} {
		t.Run(shell, func(t *testing.T) {
			word := fmt.Sprintf("word-%d", time.Now().UnixNano())
			s := open(t, session.Config{Shell: shell, Reopen: true})
			runs := func(s *session.Session, c session.Command) session.Result {
				t.Helper()
				r, err := s.Run(t.Context(), c)
				if err != nil && r.Verdict != session.TimedOut {
					t.Fatalf("%q: %v", c.Text, err)
				}
				return r
			}
			runs(s, session.Command{Text: "export A=" + word})
			r := runs(s, session.Command{
				Text: `for f in $(ls -d "$XDG_RUNTIME_DIR"/.gw-*/x /tmp/.gw-*/x /dev/shm/.gw-*/x "$HOME"/.gw-*/x 2>/dev/null); do
					grep -q "$A" $f 2>/dev/null && : >|$f && echo half; done; sleep 60`,
				Timeout: time.Second,
			})
			if string(r.Stdout) != "half\n" {
				t.Fatalf("the file was not found: %q %q", r.Stdout, r.Stderr)
			}
			fresh, err := s.Reopen(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer fresh.Close()
			if r := runs(fresh, session.Command{Text: "echo $A"}); string(r.Stdout) != word+"\n" {
				t.Errorf("what was exported is %q, want %s", r.Stdout, word)
			}
		})
	}
}

// TestReopenOfWhatWasCut: variables that were not kept are no silent loss.
func TestReopenOfWhatWasCut(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		for what, kept := range map[string]string{"nothing was kept": "", "half of a variable": "export A='b", "one of two": "export A=b\n"} {
			t.Run(shell+" "+what, func(t *testing.T) {
				t.Parallel()
				s, runtime := openIn(t, session.Config{Shell: shell, Reopen: true})
				run(t, s, "export A=b C=d")
				if r := run(t, s, "exit 7"); !r.Ended {
					t.Fatalf("%+v, want the end", r)
				}
				files, _ := filepath.Glob(filepath.Join(runtime, ".gw-*", "x"))
				if len(files) != 1 {
					t.Fatalf("%q, want one file", files)
				}
				must(t, os.WriteFile(files[0], []byte(kept), 0o600))
				fresh, err := s.Reopen(t.Context())
				if err == nil {
					fresh.Close()
				}
				if gateway.Code(err) != "session.closed" || !strings.Contains(err.Error(), "exported") {
					t.Errorf("Reopen = %v", err)
				}
			})
		}
	}
}

// TestReopenBehindASlowDisk: what is exported is written down behind a command's marks, and
// that may take its time. The fresh shell begins when it is over.
func TestReopenBehindASlowDisk(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			runtime := t.TempDir()
			opens := func() {}
			tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir(), "XDG_RUNTIME_DIR=" + runtime}})
			s := openOn(t, altered{Transport: tr, onTerminal: func(command string) string { opens(); return command }}, session.Config{Shell: shell, Reopen: true})
			run(t, s, "export A=old")
			var files []string
			eventually(t, "what is exported has been written down", func() bool {
				files, _ = filepath.Glob(filepath.Join(runtime, ".gw-*", "x"))
				if len(files) != 1 {
					return false
				}
				kept, _ := os.ReadFile(files[0])
				return bytes.HasSuffix(kept, []byte("_gwe=1"))
			})
			must(t, errors.Join(os.Remove(files[0]), syscall.Mkfifo(files[0], 0o600)))
			run(t, s, "export A=new") // its shell now waits until somebody reads
			opens = func() {
				select {
				case <-s.Done():
				default:
					t.Error("a fresh shell is opened while the old one writes down what is exported")
				}
				_ = os.Remove(files[0])
			}
			disk := make(chan []byte, 1)
			go func() {
				kept, _ := os.ReadFile(files[0])
				disk <- kept
			}()
			fresh, err := s.Reopen(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			fresh.Close()
			select {
			case kept := <-disk:
				if !bytes.Contains(kept, []byte("new")) {
					t.Errorf("%q was written down", kept)
				}
			case <-time.After(10 * time.Second):
				t.Error("nothing was written down")
			}
		})
	}
}

// TestReopenWithoutRoomForExports: to keep them is no reason for a shell to die.
func TestReopenWithoutRoomForExports(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s := open(t, session.Config{Shell: shell, Reopen: true})
			for range 3 {
				want(t, run(t, s, "ulimit -f 0"), 0, "", "")
				want(t, run(t, s, "echo fine"), 0, "fine\n", "")
			}
			if r, err := s.Run(t.Context(), session.Command{Text: "sleep 60", Timeout: 100 * time.Millisecond}); r.Verdict != session.TimedOut || r.Ended {
				t.Errorf("%+v, %v", r, err)
			}
			want(t, run(t, s, "echo fine"), 0, "fine\n", "")
		})
	}
}

// TestReopenWhereItBegan: the directory that a session began in may be gone.
func TestReopenWhereItBegan(t *testing.T) {
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	s := openOn(t, local.New(local.Config{}), session.Config{Cwd: dir, Reopen: true})
	run(t, s, "export K=kept; cd /; rmdir "+dir)
	if r, _ := s.Run(t.Context(), session.Command{Text: "exit 3"}); !r.Ended {
		t.Fatalf("got %+v", r)
	}
	fresh, err := s.Reopen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	want(t, run(t, fresh, "pwd; echo $K"), 0, fmt.Sprintf("/\n%s\n", "kept"), "")
}
