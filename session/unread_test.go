package session_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gateway/session"
)

// unread runs a command on the terminal that reads nothing of what it is typed,
// in a directory of its own, whose name it returns. Of what the terminal has no room for,
// it reads the first line, so that the rest is under way when it ends.
func unread(t *testing.T, s *session.Session, setup, typed string) string {
	t.Helper()
	dir := t.TempDir()
	gate := filepath.Join(dir, "gate")
	run(t, s, "cd '"+dir+"'; mkfifo gate")
	run(t, s, setup)
	written := make(chan struct{})
	text, much := "x=1; read y <gate || :", len(typed) > 4096
	if much {
		text += "; head -n 1"
	}
	r := runCommand(t, s, session.Command{Text: text, TTY: true, Timeout: 20 * time.Second, Started: func() {
		go func() {
			defer close(written)
			f, err := os.OpenFile(gate, os.O_WRONLY, 0) // once it runs
			if err != nil {
				t.Error(err)
				return
			}
			if much {
				f.Close()
			} else {
				defer f.Close()
			}
			if _, err := s.WriteSecret([]byte(typed)); err != nil {
				t.Error(err)
			}
		}()
	}})
	if r.ExitCode != 0 || r.Verdict != session.Exited {
		t.Fatalf("got %+v", r)
	}
	if !much {
		<-written
	}
	return dir
}

// wantNext wants the next command to be clean, and that the shell ran nothing of
// what was typed.
func wantNext(t *testing.T, s *session.Session, dir string) {
	t.Helper()
	for _, next := range []session.Command{{Text: "echo next", Timeout: 10 * time.Second}, {Text: "echo next", TTY: true, Timeout: 10 * time.Second}} {
		r := runCommand(t, s, next)
		if strings.TrimSpace(string(r.Stdout)) != "next" || len(r.Terminal) > 0 || len(r.Stderr) > 0 {
			t.Errorf("the next command says %q and %q, and the terminal %q", r.Stdout, r.Stderr, r.Terminal)
		}
	}
	want(t, run(t, s, `echo "$x"`), 0, "1\n", "")
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("the shell ran what was left")
	}
}

// TestUnreadIsNoCommand: what a command on the terminal left unread is not run by
// the shell, and nobody sees it.
func TestUnreadIsNoCommand(t *testing.T) {
	t.Parallel()
	for name, typed := range map[string]string{
		"line":               "touch ran\n",
		"lines":              strings.Repeat("touch ran\n", 30),
		"part of a line":     "touch ran",
		"line behind an end": "\x04touch ran\n",
		"open quote":         "touch ran; '\n",
		"bytes":              "touch ran\n\x01\x80\xff\x1eP\n\x7f\x15touch ran\n",
		"more than fits":     strings.Repeat("touch ran; : a paste that nobody reads\n", 3000),
	} {
		t.Run(name, func(t *testing.T) {
			eachShell(t, func(t *testing.T, s *session.Session) { wantNext(t, s, unread(t, s, ":", typed)) })
		})
	}
}

// TestUnreadInAnyState: whatever state the session is in.
func TestUnreadInAnyState(t *testing.T) {
	t.Parallel()
	for _, setup := range []string{
		"set -x; set +x", "set -e", "set -u", "set -C", "set -a", "set -f", "IFS=0123456789abcdef", "TMOUT=30",
		"trap : INT", "trap '' INT", "trap 'echo trapped >/dev/null' EXIT", "grep() { :; }", "alias grep=: command=: break=: while=: do=:",
		"PATH=/none",
	} {
		t.Run(setup, func(t *testing.T) {
			eachShell(t, func(t *testing.T, s *session.Session) {
				wantNext(t, s, unread(t, s, setup, "touch ran\n/usr/bin/touch ran\n"))
			})
		})
	}
}

// TestNoticeIsNobodys: what the shell says when it reads commands again, behind a
// command on the terminal, is not the next one's.
func TestNoticeIsNobodys(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		for range 3 {
			runCommand(t, s, session.Command{Text: "sleep 0.05 & sleep 0.3", TTY: true})
			if r := runCommand(t, s, session.Command{Text: "echo next"}); len(r.Terminal) > 0 {
				t.Errorf("the terminal of the next command says %q", r.Terminal)
			}
		}
	})
}

// TestUnreadSecret: a prompt gets more than is read, which the shell takes; nobody
// is to see what it says of that.
func TestUnreadSecret(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"printf 'Password: ' >/dev/tty; read p </dev/tty",
		"printf 'Password: ' >/dev/tty; head -c 4 </dev/tty >/dev/null",
	} {
		eachShell(t, func(t *testing.T, s *session.Session) {
			for _, tty := range []bool{false, true} {
				left(t, s, session.Command{Text: text}, func(session.Prompt) {
					if _, err := s.WriteSecret([]byte("first\ns3cretword\n")); err != nil {
						t.Errorf("WriteSecret = %v", err)
					}
				})
				r := runCommand(t, s, session.Command{Text: "echo next", TTY: tty})
				all := string(bytes.Join([][]byte{r.Stdout, r.Stderr, r.Terminal}, nil))
				if strings.ReplaceAll(all, "\r", "") != "next\n" {
					t.Errorf("the next command says %q", all)
				}
			}
		})
	}
}

// TestTerminalBehindPrompt has a job write to the terminal when the shell reads
// commands again, before Run knows that: the reader is slow.
func TestTerminalBehindPrompt(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		name := filepath.Join(t.TempDir(), "done")
		must(t, unix.Mkfifo(name, 0o600))
		done, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer done.Close()
		must(t, done.SetReadDeadline(time.Now().Add(20*time.Second)))
		late := sync.OnceFunc(func() {
			if _, err := done.Read(make([]byte, 1)); err != nil {
				t.Error(err)
			}
		})
		r := runCommand(t, s, session.Command{
			// What the shell starts behind the text's end is this grep, see discard.
			Text:   "(sh -c 'until pgrep -P $1 -x grep; do sleep 0.01; done; echo late >/dev/tty; echo >" + name + "' - $$ >/dev/null 2>&1 &); echo out",
			TTY:    true,
			Output: func(session.Stream, []byte) { late() },
		})
		if said := string(r.Stdout); !strings.Contains(said, "out") || strings.Contains(said, "late") {
			t.Errorf("the result has %q, want nothing of what came behind the prompt", said)
		}
		want(t, run(t, s, "echo fine"), 0, "fine\n", "")
	})
}

// TestKeysThatNobodyRead: on a terminal in raw mode ^C is a character as any other. What
// a deadline has typed there is no command of the shell's, which errexit would end.
func TestKeysThatNobodyRead(t *testing.T) {
	t.Parallel()
	for _, modes := range []string{"raw", "raw echo", "echo", "-icanon echo"} {
		program := filepath.Join(t.TempDir(), "program")
		text := "#!/bin/sh\nstty " + modes + " </dev/tty\nexec sleep 1000\n"
		must(t, os.WriteFile(program, []byte(text), 0o755))
		t.Run(modes, func(t *testing.T) {
			eachShell(t, func(t *testing.T, s *session.Session) {
				run(t, s, "V=kept")
				if strings.HasPrefix(modes, "raw") { // else ^C meets the shell, which errexit may end
					run(t, s, "set -e")
				}
				r, err := s.Run(t.Context(), session.Command{Text: program + "||:", Timeout: 500 * time.Millisecond})
				if r.Verdict != session.TimedOut || r.Ended {
					t.Fatalf("got %+v, %v, want it timed out and a session", r, err)
				}
				// busybox ash asks the terminal where its cursor is.
				if strings.Trim(string(r.Terminal), "^C\\\n\x1b[6n") != "" {
					t.Errorf("Terminal = %q, want the keys at most", r.Terminal)
				}
				for range 2 {
					r := run(t, s, "echo $V")
					want(t, r, 0, "kept\n", "")
					if len(r.Terminal) > 0 {
						t.Errorf("Terminal = %q behind it", r.Terminal)
					}
				}
			})
		})
	}
}

// TestEchoThatAProgramLeaves: a script that has asked for a password ends with stty echo.
// The next frame is no output, and the echo is taken back with it, or a few commands later
// where it is shown as a line is that is edited, which a busy machine may do late.
func TestEchoThatAProgramLeaves(t *testing.T) {
	t.Parallel()
	for _, modes := range []string{"echo", "-icanon echo"} {
		program := filepath.Join(t.TempDir(), "program")
		must(t, os.WriteFile(program, []byte("#!/bin/sh\nstty "+modes+" </dev/tty\n"), 0o755))
		t.Run(modes, func(t *testing.T) {
			eachShell(t, func(t *testing.T, s *session.Session) {
				run(t, s, program)
				for i := range 8 {
					r := run(t, s, "echo one")
					if want := "one\n"; string(r.Stdout) != want || len(r.Stderr) > 0 {
						t.Errorf("got %q, %q", r.Stdout, r.Stderr)
					}
					drawn := strings.Contains(s.Shell(), "busybox") || strings.HasSuffix(s.Shell(), "ksh")
					if bytes.Contains(r.Terminal, []byte("_gw")) && !(drawn && i < 5) {
						t.Errorf("command %d: Terminal = %q", i, r.Terminal)
					}
				}
			})
		})
	}
}

// TestModesThatACommandLeaves: whatever the terminal has made of what is typed, it makes
// nothing of it for the next command.
func TestModesThatACommandLeaves(t *testing.T) {
	t.Parallel()
	for _, modes := range []string{
		"inlcr", "igncr -icrnl", "iuclc", "istrip", "intr a", "quit c", "erase e", "werase h", "kill o", "eof X", "stop e start ^A",
	} {
		t.Run(modes, func(t *testing.T) {
			eachShell(t, func(t *testing.T, s *session.Session) {
				want(t, run(t, s, "stty "+modes+" </dev/tty"), 0, "", "")
				want(t, run(t, s, "echo Xü; (exit 3)"), 3, "Xü\n", "")
				runCommand(t, s, session.Command{Text: "stty " + modes, TTY: true})
				want(t, run(t, s, "echo Xü; (exit 3)"), 3, "Xü\n", "")
			})
		})
	}
}

// TestModesWithoutUTF8: an stty that does not know one of the words does nothing at all.
func TestModesWithoutUTF8(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "stty"), []byte("#!/bin/sh\ncase \"$*\" in *iutf8*) exit 1;; esac\nPATH=${PATH#*:} exec stty \"$@\"\n"), 0o700))
	eachShell(t, func(t *testing.T, s *session.Session) {
		want(t, run(t, s, "PATH="+dir+":$PATH"), 0, "", "")
		want(t, run(t, s, "stty iuclc </dev/tty"), 0, "", "")
		want(t, run(t, s, "echo X; (exit 3)"), 3, "X\n", "")
	})
}
