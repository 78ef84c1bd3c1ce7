package session_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// TestKindsOfPrompts runs programs that ask, and wants to know soon what for.
func TestKindsOfPrompts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, needs, text string
		tty, echo         bool
		prompt            session.Prompt
		answer            string
	}{
		{"getpass", "python3", `python3 -c 'import getpass; getpass.getpass("Password of the vault: ")'`, false, false, session.Prompt{Text: "Password of the vault: ", Kind: session.PasswordPrompt}, "x\n"},
		{"getpass on the terminal", "python3", `python3 -c 'import getpass; getpass.getpass("Vault: ")'`, true, true, session.Prompt{Text: "Vault: ", Kind: session.PasswordPrompt}, "x\n"},
		{"openssl", "openssl", "openssl passwd -6", false, false, session.Prompt{Text: "Password: ", Kind: session.PasswordPrompt}, "\x03"},
		{"ssh-keygen", "ssh-keygen", `cd "$HOME" && ssh-keygen -q -t ed25519 -f key`, false, false, session.Prompt{Text: "Enter passphrase (empty for no passphrase): ", Kind: session.PasswordPrompt}, "\x03"},
		{"read -s", "", `read -r -s -p 'Value: ' x`, true, true, session.Prompt{Text: "Value: ", Kind: session.PasswordPrompt}, "x\n"},
		{"read", "", `read -r -p 'Value: ' x`, true, true, session.Prompt{Text: "Value: ", Kind: session.LinePrompt}, "x\n"},
		{"a question about a password", "", `read -r -p 'Reset the password? [y/N] ' x`, true, false, session.Prompt{Text: "Reset the password? [y/N] ", Kind: session.LinePrompt}, "n\n"},
		{"a question that ends its line", "", "echo 'Enter a name:'; read x </dev/tty", false, false, session.Prompt{Text: "Enter a name:", Kind: session.LinePrompt}, "x\n"},
		{"no question", "", "sleep 0.3; read x </dev/tty", false, false, session.Prompt{Kind: session.LinePrompt}, "x\n"},
		{"a question on stderr", "", "printf 'Go on? ' >&2; read x </dev/tty", false, false, session.Prompt{Text: "Go on? ", Kind: session.LinePrompt}, "y\n"},
		{"a question behind progress", "", `printf '10%%\r90%%\rdone \033[1mGo on?\033[0m '; read x`, true, false, session.Prompt{Text: "done Go on? ", Kind: session.LinePrompt}, "y\n"},
		{"sendfile", "busybox", `printf 'Name: ' >&2; busybox cat /dev/tty | cat`, false, false, session.Prompt{Text: "Name: ", Kind: session.LinePrompt}, "x\n\x04"},
		{"a single key", "", "read -r -n1 -p 'Continue? ' x", true, false, session.Prompt{Text: "Continue? ", Kind: session.LinePrompt}, "y"},
		{"a single key without a word", "", "read -r -n1 x", true, false, session.Prompt{Kind: session.ScreenPrompt}, "y"},
		{"a shell with a line editor", "", "PS1='repl> ' bash --norc -i", true, false, session.Prompt{Text: "repl> ", Kind: session.LinePrompt}, "exit\n"},
		{"a REPL", "python3", "python3 -q", true, false, session.Prompt{Text: ">>> ", Kind: session.LinePrompt}, "exit()\n"},
		{"a pager on the alternate screen", "less", "seq 1 100 | less", true, false, session.Prompt{Text: ":", Kind: session.ScreenPrompt}, "q"},
		{"a pager without", "less", "seq 1 100 | less -X", true, false, session.Prompt{Text: ":", Kind: session.ScreenPrompt}, "q"},
		{"the end of a file in a pager", "less", "seq 1 3 | less -X", true, false, session.Prompt{Text: "(END)", Kind: session.ScreenPrompt}, "q"},
		{"an editor", "vim", `vim -u NONE -n`, true, false, session.Prompt{Kind: session.ScreenPrompt}, "\x1b:q!\r"},
		{"top", "top", "top", true, false, session.Prompt{Kind: session.ScreenPrompt}, "q"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(test.needs); test.needs != "" && err != nil {
				sshdtest.Skip(t, "%v", err)
			}
			s := open(t, session.Config{Shell: "bash", Term: "xterm"})
			var asked []session.Prompt
			r := left(t, s, session.Command{Text: test.text, TTY: test.tty, Echo: test.echo}, func(p session.Prompt) {
				if asked = append(asked, p); len(asked) > 1 && test.answer != "\x03" {
					return
				}
				if _, err := s.Write([]byte(test.answer)); err != nil {
					t.Errorf("Write = %v", err)
				}
			})
			for i := range asked { // OpenSSH 10 names the file
				asked[i].Text = strings.Replace(asked[i].Text, ` for "key"`, "", 1)
			}
			if len(asked) == 0 || asked[0].Kind != test.prompt.Kind || asked[0].Text != test.prompt.Text && !(test.tty && test.prompt.Text == "") {
				t.Errorf("asked %+v, want %+v; it said %q", asked, test.prompt, r.Stdout)
			}
		})
	}
}

// TestPromptIsNoticedSoon: half a second, if the machine has time.
func TestPromptIsNoticedSoon(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		for _, text := range []string{"printf 'Name: ' >/dev/tty; read x </dev/tty", "echo Name; sleep 0.4; echo Name; read x </dev/tty", "read x </dev/tty"} {
			best := time.Hour
			for tries := 0; tries < 10 && best > 500*time.Millisecond; tries++ {
				var mu sync.Mutex
				said := time.Now()
				noted := func() { mu.Lock(); said = time.Now(); mu.Unlock() }
				left(t, s, session.Command{Text: text, Started: noted, Output: func(session.Stream, []byte) { noted() }}, func(session.Prompt) {
					mu.Lock()
					best = min(best, time.Since(said))
					mu.Unlock()
					_, _ = s.Write([]byte("x\n"))
				})
			}
			if best > 500*time.Millisecond {
				t.Errorf("%s: noticed after %v", text, best)
			}
		}
	})
}

// TestNoFalsePrompts runs what falls silent, in the middle of a line or behind
// noise on the terminal, while nobody reads.
func TestNoFalsePrompts(t *testing.T) {
	t.Parallel()
	texts := []string{
		"set -x; sleep 0.6; set +x",
		"set -v\nsleep 0.6; set +v",
		"printf 'half a line'; sleep 0.6",
		"printf 'Password: ' >/dev/tty; sleep 0.6; echo >/dev/tty",
		"sleep 0.2 & sleep 0.6",
		`printf '\r\nBroadcast message from root@far (pts/9) (now):\r\n\r\nhello\r\n' >/dev/tty; sleep 0.6`,
		`f=$HOME/fifo; mkfifo "$f"; (sleep 0.6; echo on >"$f") & read x <"$f"; rm "$f"`,
		"sh -c 'sleep 0.6; echo on' | cat",
		"i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done",
	}
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s := open(t, session.Config{Shell: shell})
			all := texts
			if shell == "bash" || shell == "ksh" || shell == "zsh" {
				all = append(all[:len(all):len(all)], "trap : DEBUG; sleep 0.6; trap - DEBUG")
			}
			for _, text := range all {
				left(t, s, session.Command{Text: text, Merge: true}, func(p session.Prompt) { t.Errorf("%s: asked %+v", text, p) })
			}
			left(t, s, session.Command{TTY: true, Text: strings.Join([]string{"printf 'Password: '; sleep 0.6", "echo; sleep 0.6", "sleep 0.4 | cat"}, ";")}, func(p session.Prompt) { t.Errorf("on the terminal: asked %+v", p) })
		})
	}
}

// TestProgressIsNoPrompt: a program on the terminal that has its line unfinished while it polls,
// as curl and wget do, need not poll the terminal.
func TestProgressIsNoPrompt(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		sshdtest.Skip(t, "%v", err)
	}
	s := open(t, session.Config{Shell: "bash"})
	text := `python3 -c 'import select; print("working... ", end="", flush=True); select.select([], [], [], 1); print("done")'`
	r := left(t, s, session.Command{Text: text, TTY: true}, func(p session.Prompt) { t.Errorf("asked %+v", p) })
	want(t, r, 0, "working... done\n", "")
}

// TestWriterIsNoReader: a command that waits for room on the terminal asks nothing.
func TestWriterIsNoReader(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		for _, tty := range []bool{false, true} {
			free := make(chan struct{})
			later := time.AfterFunc(1500*time.Millisecond, func() { close(free) })
			defer later.Stop()
			r := left(t, s, session.Command{
				Text: "seq 1 20000 >/dev/tty", TTY: tty, Limit: 1 << 20,
				Output: func(session.Stream, []byte) { <-free },
			}, func(p session.Prompt) { t.Errorf("tty %v: asked %+v", tty, p) })
			if said := string(r.Stdout) + string(r.Terminal); strings.Count(said, "\n") != 20000 || !strings.HasSuffix(strings.TrimSpace(said), "\n20000") {
				t.Errorf("tty %v: %d bytes", tty, len(said))
			}
		}
	})
}

// stalling is a terminal that can be kept from being read.
type stalling struct {
	transport.Terminal
	free chan chan struct{} // has what to wait for
}

func (t stalling) Read(b []byte) (int, error) {
	n, err := t.Terminal.Read(b)
	select {
	case free := <-t.free:
		<-free
	default:
	}
	return n, err
}

// TestWriterOnALinkThatStalls: the machine shows that it does not read.
func TestWriterOnALinkThatStalls(t *testing.T) {
	t.Parallel()
	if scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil && os.Geteuid() != 0 && string(scope) != "0\n" {
		sshdtest.Skip(t, "it does not, to this user")
	}
	stall := make(chan chan struct{}, 1)
	s := openOn(t, altered{Transport: local.New(local.Config{}), terminal: func(t transport.Terminal) transport.Terminal {
		return stalling{t, stall}
	}}, session.Config{})
	free := make(chan struct{})
	time.AfterFunc(1500*time.Millisecond, func() { close(free) })
	stall <- free
	left(t, s, session.Command{Text: "seq 1 20000 >/dev/tty"}, func(p session.Prompt) { t.Errorf("asked %+v", p) })
}

func TestWaitingForInput(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"prompt on the terminal": `printf "name? " >/dev/tty; read a </dev/tty; echo "got $a"`,
		"prompt on stderr":       `printf "name? " >&2; read a </dev/tty; echo "got $a"`,
		"program":                `sh -c 'printf "name? " >/dev/tty; read a </dev/tty; echo "got $a"'`,
	} {
		t.Run(name, func(t *testing.T) {
			eachShell(t, func(t *testing.T, s *session.Session) {
				begun := time.Now()
				r, err := s.Run(t.Context(), session.Command{Text: text})
				if r.Verdict != session.Interrupted || !errors.Is(err, session.ErrNeedsInput) || r.Prompt != "name? " {
					t.Errorf("got %s, prompt %q, %v, want interrupted at the prompt", r.Verdict, r.Prompt, err)
				}
				if took := time.Since(begun); sshdtest.Over(t, took, 8*time.Second) { // a quarter of a second on an idle machine
					t.Errorf("took %v", took)
				}
				r, err = s.Run(t.Context(), session.Command{Text: text, Answer: func(_ context.Context, p session.Prompt) (string, error) {
					if p.Text != "name? " || p.Kind != session.LinePrompt {
						t.Errorf("asked %+v", p)
					}
					return "it is I", nil
				}})
				if err != nil || string(r.Stdout) != "got it is I\n" {
					t.Errorf("got %q, %v, want the answer", r.Stdout, err)
				}
			})
		})
	}
}

// TestPromptIsNoNotice ends a job while a prompt stands on the terminal, where
// zsh says so at once.
func TestPromptIsNoNotice(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		r, err := s.Run(t.Context(), session.Command{Text: `sleep 0.05 & printf "name? " >/dev/tty; read a </dev/tty`})
		if !errors.Is(err, session.ErrNeedsInput) || r.Prompt != "name? " {
			t.Errorf("got %s, prompt %q, %v", r.Verdict, r.Prompt, err)
		}
	})
}

func TestSilenceIsNoPrompt(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		for _, text := range []string{
			"printf 'working... '; sleep 0.6; echo done",
			"printf 'working... ' >/dev/tty; sleep 0.6; echo done",
			"set -x; sleep 0.4; echo done; set +x",
			"sleep 1.5 | cat; echo done",
		} {
			r, err := s.Run(t.Context(), session.Command{Text: text, Answer: func(_ context.Context, p session.Prompt) (string, error) {
				t.Errorf("%s: asked %+v", text, p)
				return "", io.EOF
			}})
			if err != nil || !strings.HasSuffix(string(r.Stdout), "done\n") {
				t.Errorf("%s: got %q, %v", text, r.Stdout, err)
			}
		}
	})
}
