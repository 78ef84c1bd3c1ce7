package session_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/gateway"
	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// left runs a command whose prompts are left to answer, which types.
func left(t *testing.T, s *session.Session, c session.Command, answer func(session.Prompt)) session.Result {
	t.Helper()
	prompts := make(chan session.Prompt, 16)
	c.Waiting = func(p *session.Prompt) {
		if p != nil {
			prompts <- *p
		}
	}
	c.Timeout = 20 * time.Second
	ended, end := context.WithCancel(t.Context())
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		for {
			select {
			case p := <-prompts:
				answer(p)
			case <-ended.Done():
				return
			}
		}
	}()
	r, err := s.Run(t.Context(), c)
	end()
	<-answered
	if err != nil && !errors.Is(err, session.ErrInterrupted) {
		t.Errorf("Run(%q) = %+v, %v", c.Text, r, err)
	}
	return r
}

func TestPromptIsLeftToWhoTypes(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		var asked []session.Prompt
		r := left(t, s, session.Command{Text: `printf 'name? ' >/dev/tty; read a </dev/tty; printf 'Password: ' >/dev/tty; read b </dev/tty; echo "$a/$b"`}, func(p session.Prompt) {
			asked = append(asked, p)
			if _, err := s.Write([]byte("me\n")); err != nil {
				t.Errorf("Write = %v", err)
			}
		})
		root := os.Getuid() == 0
		want := []session.Prompt{{Text: "name? ", Kind: session.LinePrompt, Root: root}, {Text: "Password: ", Kind: session.PasswordPrompt, Root: root}}
		if string(r.Stdout) != "me/me\n" || !slices.Equal(asked, want) {
			t.Errorf("got %q, asked %+v", r.Stdout, asked)
		}
	})
}

func TestPromptsOfTerminalPrograms(t *testing.T) {
	s := open(t, session.Config{Term: "xterm"})
	var asked []session.Prompt
	left(t, s, session.Command{TTY: true, Text: "seq 1 1000 | less"}, func(p session.Prompt) {
		asked = append(asked, p)
		if err := s.Press("q"); err != nil {
			t.Errorf("Press = %v", err)
		}
	})
	if len(asked) != 1 || asked[0].Kind != session.ScreenPrompt {
		t.Errorf("less: asked %+v, want a screen", asked)
	}
	asked = nil
	r := left(t, s, session.Command{TTY: true, Text: `printf 'Go on? [y/N] '; read a; echo "got $a"`}, func(p session.Prompt) {
		asked = append(asked, p)
		if _, err := s.Write([]byte("y\n")); err != nil {
			t.Errorf("Write = %v", err)
		}
	})
	if len(asked) != 1 || asked[0].Kind != session.LinePrompt || asked[0].Text != "Go on? [y/N] " || !strings.Contains(string(r.Stdout), "got y") {
		t.Errorf("read: asked %+v, said %q, want a line", asked, r.Stdout)
	}
}

func TestSecretIsSeenNowhere(t *testing.T) {
	t.Parallel()
	const secret = "correct horse"
	eachShell(t, func(t *testing.T, s *session.Session) {
		for _, text := range []string{
			`stty echo </dev/tty; printf 'Password: ' >/dev/tty; read p </dev/tty; stty -echo </dev/tty; echo "$p"; echo "corr"; echo "again $p" >&2; printf %s "$p"`,
			`printf 'Password: ' >/dev/tty; read p </dev/tty; printf 'corr' ; sleep 0.1; printf 'ect hor'; sleep 0.1; printf 'se\ncorr'`,
		} {
			var mu sync.Mutex
			var seen bytes.Buffer
			r := left(t, s, session.Command{Text: text, Merge: true, Output: func(_ session.Stream, b []byte) {
				mu.Lock()
				defer mu.Unlock()
				seen.Write(b)
			}}, func(session.Prompt) {
				if _, err := s.WriteSecret([]byte(secret + "\n")); err != nil {
					t.Errorf("WriteSecret = %v", err)
				}
			})
			all := seen.String() + string(r.Stdout) + string(r.Terminal)
			if strings.Contains(all, secret) || !strings.Contains(string(r.Stdout), "********") || !strings.Contains(string(r.Stdout), "corr") {
				t.Errorf("seen: %q", all)
			}
		}
		if r := run(t, s, "echo '"+secret+"'"); string(r.Stdout) != secret+"\n" {
			t.Errorf("the next command says %q, want it as it is", r.Stdout)
		}
	})
}

// TestSecretThatBeginsAnother: the second answer is what the first one begins with.
func TestSecretThatBeginsAnother(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		answers := []string{"release-2024.1-rc1\n", "release-2024.1\n"}
		r := left(t, s, session.Command{Text: `printf 'Password: ' >/dev/tty; read a </dev/tty; printf 'Password: ' >/dev/tty; read b </dev/tty; printf %s "$b"; sleep 0.2; printf ' %s ' "$a"; printf %s "${a%1}"`}, func(session.Prompt) {
			answer := answers[0]
			answers = answers[1:]
			if _, err := s.WriteSecret([]byte(answer)); err != nil {
				t.Errorf("WriteSecret = %v", err)
			}
		})
		if want := "******** ******** ********-rc"; string(r.Stdout) != want {
			t.Errorf("got %q, want %q", r.Stdout, want)
		}
	})
}

// spoolOf is a spool in memory.
type spoolOf struct{ bytes.Buffer }

func (*spoolOf) Close() error { return nil }
func (*spoolOf) Name() string { return "memory" }

func TestAnsweredPasswordIsSeenNowhere(t *testing.T) {
	t.Parallel()
	const secret = "correct horse"
	eachShell(t, func(t *testing.T, s *session.Session) {
		for _, tty := range []bool{false, true} {
			var mu sync.Mutex
			var seen, spooled spoolOf
			asked := 0
			r := runCommand(t, s, session.Command{
				Text: `printf 'Password: ' >/dev/tty; stty echo </dev/tty; read p </dev/tty; stty -echo </dev/tty; echo "it is $p" >/dev/tty; printf 'Name: ' >/dev/tty; read n </dev/tty; echo "$n"; seq 1 200`,
				TTY:  tty, Limit: 256,
				Spool: func(session.Stream) session.Spool { return &spooled },
				Output: func(_ session.Stream, b []byte) {
					mu.Lock()
					defer mu.Unlock()
					seen.Write(b)
				},
				Answer: func(_ context.Context, p session.Prompt) (string, error) {
					if asked++; p.Kind == session.PasswordPrompt {
						return secret, nil
					}
					return "someone", nil
				},
			})
			all := seen.String() + spooled.String() + string(r.Stdout) + string(r.Stderr) + string(r.Terminal)
			if strings.Contains(all, secret) || !strings.Contains(all, "it is ********") || !strings.Contains(all, "someone") || asked != 2 || r.Spool == "" {
				t.Errorf("terminal %v: asked %d times, seen: %q", tty, asked, all)
			}
		}
	})
}

func TestSessionWithoutTerminal(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			s := open(t, session.Config{Shell: shell, NoTerminal: true})
			if s.Terminal() {
				t.Error("it has a terminal")
			}
			run(t, s, "cd /; v=kept")
			r := run(t, s, "pwd; echo $v >&2; test -t 0 || (exit 3)")
			if string(r.Stdout) != "/\n" || string(r.Stderr) != "kept\n" || r.ExitCode != 3 || r.Streams != session.Split {
				t.Errorf("got %+v", r)
			}
			if r, _ := s.Run(t.Context(), session.Command{Text: "echo part; sleep 1000", Timeout: 200 * time.Millisecond}); r.Verdict != session.TimedOut || string(r.Stdout) != "part\n" {
				t.Errorf("got %s %q, want timed_out with its part", r.Verdict, r.Stdout)
			}
			if r := run(t, s, "pwd; echo $v"); string(r.Stdout) != "/\nkept\n" {
				t.Errorf("afterwards %q", r.Stdout)
			}
		})
	}
}

// TestLastBytesAreTakenLate has a reader that is slow: the shell reads the next
// line by then, and the deadline passes. Neither makes another end of it.
func TestLastBytesAreTakenLate(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		for _, tty := range []bool{false, true} {
			last := session.Stderr
			if tty {
				last = session.Stdout
			}
			slow := session.Command{Text: "echo out; echo err >&2", TTY: tty, Output: func(from session.Stream, _ []byte) {
				if from == last {
					time.Sleep(500 * time.Millisecond)
				}
			}}
			for _, slow.Timeout = range []time.Duration{0, 250 * time.Millisecond} {
				r, err := s.Run(t.Context(), slow)
				if said := string(r.Stdout) + string(r.Stderr); err != nil || r.Verdict != session.Exited || r.ExitCode != 0 || strings.ReplaceAll(said, "\r", "") != "out\nerr\n" {
					t.Errorf("tty %v, a timeout of %v: Run = %+v, %v", tty, slow.Timeout, r, err)
				}
			}
		}
		want(t, run(t, s, "echo fine"), 0, "fine\n", "")
	})
}

// goesOn asks, does not wait for long, and does something else in silence.
const goesOn = `cd "$DIR"; printf 'Go on? ' >/dev/tty; timeout --foreground 1 head -n 1 </dev/tty >/dev/null; : >gone; until [ -e told ]; do sleep 0.02; done; echo done`

// isThere waits until a command has made a file.
func isThere(t *testing.T, path string) {
	t.Helper()
	eventually(t, path+" is there", func() bool { _, err := os.Stat(path); return err == nil })
}

// An answer that comes when the command has gone on would be the shell's next command.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	const late = "touch ran\n"
	check := func(t *testing.T, s *session.Session, r session.Result) {
		if string(r.Stdout) != "done\n" {
			t.Errorf("stdout %q", r.Stdout)
		}
		if r, err := s.Run(t.Context(), session.Command{Text: "echo *"}); err != nil || string(r.Stdout) != "gone told\n" {
			t.Errorf("%q, %v: the shell has run it", r.Stdout, err)
		}
	}
	tell := func(t *testing.T, dir string) {
		if err := os.WriteFile(filepath.Join(dir, "told"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	t.Run("written", func(t *testing.T) {
		eachShell(t, func(t *testing.T, s *session.Session) {
			dir := t.TempDir()
			r := left(t, s, session.Command{Text: goesOn, Env: map[string]string{"DIR": dir}}, func(session.Prompt) {
				isThere(t, filepath.Join(dir, "gone"))
				if _, err := s.Write([]byte(late)); gateway.Code(err) != "usage" {
					t.Errorf("Write = %v", err)
				}
				tell(t, dir)
			})
			check(t, s, r)
		})
	})
	t.Run("answered", func(t *testing.T) {
		eachShell(t, func(t *testing.T, s *session.Session) {
			dir := t.TempDir()
			asked := 0
			var later *time.Timer
			r, err := s.Run(t.Context(), session.Command{Text: goesOn, Env: map[string]string{"DIR": dir}, Timeout: 20 * time.Second, Answer: func(context.Context, session.Prompt) (string, error) {
				asked++
				isThere(t, filepath.Join(dir, "gone"))
				later = time.AfterFunc(time.Second, func() { tell(t, dir) }) // the answer has come by then
				return strings.TrimSpace(late), nil
			}})
			later.Stop()
			if err != nil || asked != 1 {
				t.Errorf("%+v, %v, asked %d times", r, err, asked)
			}
			check(t, s, r)
		})
	})
}

// What a shell without a terminal has become may have closed its streams: it has not ended.
func TestProgramInPlaceOfAShellWithoutTerminal(t *testing.T) {
	for _, text := range []string{"exec sleep 60", "exec sleep 60 >/dev/null 2>&1", "exec >/dev/null 2>&1; sleep 60"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			s := open(t, session.Config{NoTerminal: true})
			begun := time.Now()
			r, err := s.Run(t.Context(), session.Command{Text: text, Timeout: 300 * time.Millisecond})
			if r.Verdict != session.TimedOut || gateway.Code(err) != "cmd.timeout" || sshdtest.Over(t, time.Since(begun), 5*time.Second) {
				t.Errorf("%s after %v, %v", r.Verdict, time.Since(begun), err)
			}
		})
	}
}

// What a caller did not take in time is not the next command's when he does.
func TestWhatIsTakenTooLateIsNobodys(t *testing.T) {
	t.Parallel()
	s := open(t, session.Config{})
	blocked, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	begun := time.Now()
	r, err := s.Run(t.Context(), session.Command{
		Text: "echo out; seq 2000 >&2", Timeout: 300 * time.Millisecond,
		Output: func(from session.Stream, _ []byte) {
			if from == session.Stderr {
				once.Do(func() { close(blocked) })
				<-release
			}
		},
	})
	<-blocked
	let := sync.OnceFunc(func() { close(release) })
	defer let()
	if took := time.Since(begun); !r.Cut || r.Ended || sshdtest.Over(t, took, 9*time.Second) {
		t.Fatalf("%+v after %v, %v, want a result that is cut", r, took, err)
	}
	next := make(chan session.Result, 1)
	go func() {
		r, _ := s.Run(t.Context(), session.Command{Text: "echo a; echo b >&2; sleep 0.3; echo c"})
		next <- r
	}()
	let()
	if r := <-next; string(r.Stdout) != "a\nc\n" || string(r.Stderr) != "b\n" {
		t.Errorf("the next one has %q and %.50q", r.Stdout, r.Stderr)
	}
}

// What only looked like the beginning of a secret does not go to a caller who has not
// taken yet what came before it.
func TestOneOutputAtATime(t *testing.T) {
	t.Parallel()
	s := open(t, session.Config{})
	var calls, most atomic.Int32
	release := make(chan struct{})
	let := sync.OnceFunc(func() { close(release) })
	defer let()
	time.AfterFunc(15*time.Second, let)
	begun := time.Now()
	r, err := s.Run(t.Context(), session.Command{
		Text: `printf 'Password: ' >/dev/tty; read p </dev/tty; printf 'first corr' >&2; sleep 60`, Timeout: 2 * time.Second,
		Waiting: func(p *session.Prompt) {
			if p != nil {
				if _, err := s.WriteSecret([]byte("correct horse\n")); err != nil {
					t.Errorf("WriteSecret = %v", err)
				}
			}
		},
		Output: func(from session.Stream, b []byte) {
			if from != session.Stderr {
				return
			}
			most.Store(max(most.Load(), calls.Add(1)))
			defer calls.Add(-1)
			<-release
		},
	})
	if r.Verdict != session.TimedOut || !r.Cut || most.Load() != 1 || sshdtest.Over(t, time.Since(begun), 12*time.Second) {
		t.Errorf("%s after %v, cut %v, %d calls at once, %v", r.Verdict, time.Since(begun), r.Cut, most.Load(), err)
	}
}

// lateKeys is a terminal where what is typed takes its time, once: the machine is busy, or a
// packet was lost.
type lateKeys struct {
	transport.Terminal
	late *atomic.Bool
}

func (k lateKeys) Write(b []byte) (int, error) {
	if !k.late.Swap(false) {
		return k.Terminal.Write(b)
	}
	typed := bytes.Clone(b)
	time.AfterFunc(time.Second, func() { _, _ = k.Terminal.Write(typed) })
	return len(b), nil
}

// TestShellThatReadsItsCommandIsNoPrompt: it waits for what is on its way to it.
func TestShellThatReadsItsCommandIsNoPrompt(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		for _, tty := range []bool{false, true} {
			t.Run(shell+map[bool]string{true: " on the terminal"}[tty], func(t *testing.T) {
				t.Parallel()
				tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}})
				var late atomic.Bool
				s := openOn(t, altered{Transport: tr, terminal: func(t transport.Terminal) transport.Terminal { return lateKeys{t, &late} }}, session.Config{Shell: shell})
				late.Store(true)
				r, err := s.Run(t.Context(), session.Command{Text: "echo fine", TTY: tty, Answer: func(context.Context, session.Prompt) (string, error) {
					return "", errors.New("nobody to ask")
				}})
				if err != nil || r.Verdict != session.Exited || strings.TrimSpace(string(r.Stdout)) != "fine" {
					t.Errorf("%+v, %v", r, err)
				}
			})
		}
	}
}
