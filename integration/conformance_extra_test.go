package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// These cases need more than one session, or a machine of their own; their
// names start with the id.

// here is this machine, with a home of the test's own.
func here(t *testing.T) transport.Transport {
	t.Helper()
	tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}})
	t.Cleanup(func() { tr.Close() })
	return tr
}

// eachConformant runs test in a session of each shell on this machine.
func eachConformant(t *testing.T, test func(*testing.T, *session.Session)) {
	t.Helper()
	eachConformantOn(t, here, test)
}

// eachConformantOn does so on another machine.
func eachConformantOn(t *testing.T, machine func(*testing.T) transport.Transport, test func(*testing.T, *session.Session)) {
	t.Helper()
	for _, shell := range allShells {
		t.Run(shell, func(t *testing.T) {
			s := open(t, machine(t), session.Config{Shell: shell})
			defer s.Close()
			test(t, s)
		})
	}
}

// replies runs a command that ends by itself, and wants its stdout.
func replies(t *testing.T, s *session.Session, text, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := s.Run(ctx, session.Command{Text: text})
	if err != nil || r.Verdict != session.Exited || string(r.Stdout) != want {
		t.Errorf("%.60q: got %s %d %.300q %.300q, %v; want %.300q", text, r.Verdict, r.ExitCode, r.Stdout, r.Stderr, err, want)
	}
}

// B50: the longest text there may be.
func TestB50LongestText(t *testing.T) {
	eachConformant(t, func(t *testing.T, s *session.Session) {
		const frame = "v=''; echo ${#v}"
		replies(t, s, strings.Replace(frame, "''", "'"+strings.Repeat("x", 4<<20-len(frame))+"'", 1), fmt.Sprintln(4<<20-len(frame)))
		replies(t, s, "echo ${#v}", fmt.Sprintln(4<<20-len(frame)))
	})
}

// C7: two sessions with the same variable, at the same time.
func TestC7SessionsApart(t *testing.T) {
	tr := here(t)
	for _, shell := range allShells {
		t.Run(shell, func(t *testing.T) {
			var all sync.WaitGroup
			for i := range 3 {
				s := open(t, tr, session.Config{Shell: shell})
				all.Go(func() {
					for round := range 10 {
						replies(t, s, fmt.Sprintf("V=%d.%d; export V; cd /", i, round), "")
						replies(t, s, "echo $V; sh -c 'echo $V'; pwd", fmt.Sprintf("%d.%d\n%d.%d\n/\n", i, round, i, round))
					}
				})
			}
			all.Wait()
		})
	}
}

// C39, D8, F4: a second command is refused and does not run, and what waits
// for input does not get its text.
func TestC39OneCommandAtATime(t *testing.T) {
	eachConformant(t, func(t *testing.T, s *session.Session) {
		dir := t.TempDir()
		r := start(t, s, session.Command{Text: "echo up; read x; echo \"got $x\"", TTY: true})
		second, err := s.Run(t.Context(), session.Command{Text: ": >" + dir + "/ran"})
		if second.Verdict != session.NotStarted || !errors.Is(err, session.ErrBusy) {
			t.Errorf("second command: %s, %v, want not_started and ErrBusy", second.Verdict, err)
		}
		s.Write([]byte("an answer\n"))
		if got, err := r.wait(t, 10*time.Second); err != nil || string(got.Stdout) != "up\ngot an answer\n" {
			t.Errorf("first command: %q, %v", got.Stdout, err)
		}
		if !empty(dir) {
			t.Error("the second command ran")
		}
		replies(t, s, "echo on", "on\n")
	})
}

// C40: three sessions do not wait for each other: each of their commands ends only
// once all of them run.
func TestC40SessionsInParallel(t *testing.T) {
	tr, dir := here(t), t.TempDir()
	var sessions [3]*session.Session
	for i := range sessions {
		sessions[i] = open(t, tr, session.Config{})
	}
	var all sync.WaitGroup
	for i, s := range sessions {
		all.Go(func() {
			replies(t, s, fmt.Sprintf("cd %s; : >%d; until [ -e 0 -a -e 1 -a -e 2 ]; do sleep 0.01; done; echo on", dir, i), "on\n")
		})
	}
	all.Wait()
}

// E22, C36: sessions leave neither descriptors nor processes behind.
func TestE22ManySessions(t *testing.T) {
	tr := here(t)
	cycle := func() {
		s, err := session.Open(t.Context(), tr, session.Config{Shell: "dash"})
		if err != nil {
			t.Fatal(err)
		}
		replies(t, s, "echo on", "on\n")
		s.Close()
	}
	cycle()
	before := len(descriptors(os.Getpid()))
	for range 200 {
		cycle()
	}
	eventually(t, "no more descriptors than before", func() bool { return len(descriptors(os.Getpid())) <= before })
	eventually(t, "no zombie", func() bool {
		files, _ := filepath.Glob("/proc/self/task/*/children")
		for _, file := range files {
			children, _ := os.ReadFile(file)
			for pid := range strings.FieldsSeq(string(children)) {
				stat, _ := os.ReadFile("/proc/" + pid + "/stat")
				if bytes.Contains(stat, []byte(") Z ")) {
					return false
				}
			}
		}
		return true
	})
}

// E24: what is typed while nothing runs disturbs nothing that follows.
func TestE24InterruptWithNothingRunning(t *testing.T) {
	eachConformant(t, func(t *testing.T, s *session.Session) {
		replies(t, s, "V=kept; cd /usr", "")
		for range 3 {
			s.Write([]byte("\x03"))
			replies(t, s, "echo $V; pwd", "kept\n/usr\n")
		}
	})
}

// E27: a session that is closed under a flood ends at once, and so does what
// wrote it.
func TestE27CloseUnderFlood(t *testing.T) {
	for _, place := range machines(t, t.TempDir()) {
		t.Run(place.name, func(t *testing.T) {
			tag := tag(t)
			s := open(t, place.open(t), session.Config{})
			r := start(t, s, session.Command{Text: "export " + tag + "; echo up; yes & yes >&2", Limit: 1000})
			begun := time.Now()
			s.Close()
			if got, err := r.wait(t, 10*time.Second); !got.Ended || err == nil && got.Verdict != session.Signaled {
				t.Errorf("got %s %d, ended %v, %v", got.Verdict, got.ExitCode, got.Ended, err)
			}
			if took := time.Since(begun); sshdtest.Over(t, took, 10*time.Second) {
				t.Errorf("Close took %v", took)
			}
			gone(t, tag)
		})
	}
}

// G28: whatever the account's rc files do, the first result is clean.
func TestG28StartupFiles(t *testing.T) {
	rc := "echo NOISE; echo NOISE >&2; stty echo 2>/dev/null; PS1='rc$ '; alias printf=false; read -r question </dev/tty; exec sleep 60\n"
	env := write(t, filepath.Join(t.TempDir(), "env"), rc, 0o600)
	server := sshdtest.Start(t, sshdtest.Options{
		Config: []string{"PermitUserEnvironment yes"}, AuthorizedOptions: `environment="ENV=` + env + `"`,
	})
	for _, name := range []string{".bashrc", ".zshrc", ".kshrc", ".mkshrc", ".yashrc"} {
		text := rc
		if name == ".bashrc" {
			// bash under sshd reads it before anything of ours: it may be noisy, but
			// nobody survives its exec.
			text = "echo NOISE; echo NOISE >&2; PS1='rc$ '; PROMPT_COMMAND='echo P'; alias printf=false; set -o vi\n"
		}
		write(t, filepath.Join(server.Home, name), text, 0o600)
	}
	tr := dial(t, server, server.Port)
	for _, shell := range allShells {
		t.Run(shell, func(t *testing.T) {
			s := open(t, tr, session.Config{Shell: shell, Env: map[string]string{"ENV": server.Home + "/.kshrc"}})
			replies(t, s, "echo out", "out\n")
			replies(t, s, "printf next", "next")
		})
	}
}

// G28: an rc file that takes the session away is a start that failed, in time.
func TestG28StartupFileThatTakesTheSession(t *testing.T) {
	t.Parallel()
	for name, rc := range map[string]string{"exit": "exit 3\n", "exec": "exec sleep 60\n", "question": "read -r x\n"} {
		t.Run(name, func(t *testing.T) {
			server := sshdtest.Start(t, sshdtest.Options{Account: &sshdtest.Account{Shell: "/bin/bash"}})
			write(t, filepath.Join(server.Home, ".bashrc"), rc, 0o600)
			begun := time.Now()
			s, err := session.Open(t.Context(), dial(t, server, server.Port), session.Config{OpenTimeout: 2 * time.Second})
			if err == nil {
				replies(t, s, "echo on", "on\n") // the file was not read
				s.Close()
				return
			}
			var coded interface{ ErrorCode() string }
			if !errors.As(err, &coded) || sshdtest.Over(t, time.Since(begun), 10*time.Second) {
				t.Errorf("Open = %v after %v, want an error with a code", err, time.Since(begun))
			}
		})
	}
}

// H7: the session's shell is another one than the account's login shell.
func TestH7LoginShells(t *testing.T) {
	for _, shell := range []string{"/usr/bin/fish", "/usr/bin/tcsh", "/usr/bin/ksh93", "/usr/bin/mksh", "/usr/bin/yash", "/usr/bin/zsh"} {
		t.Run(filepath.Base(shell), func(t *testing.T) {
			if _, err := os.Stat(shell); err != nil {
				sshdtest.Skip(t, "no %s here: %v", shell, err)
			}
			server := sshdtest.Start(t, sshdtest.Options{Account: &sshdtest.Account{Shell: shell}})
			tr := dial(t, server, server.Port)
			for _, shell := range []string{"bash", "dash"} {
				s := open(t, tr, session.Config{Shell: shell, Cwd: "/usr", Env: map[string]string{"A": "it's !x $y"}})
				replies(t, s, `echo "$A"; pwd; echo "wow!!"; sh -c 'echo $0'`, "it's !x $y\n/usr\nwow!!\nsh\n")
				r, err := s.Run(t.Context(), session.Command{Text: "cat; echo err >&2; exit 5", Stdin: strings.NewReader("in\n")})
				if err != nil || r.ExitCode != 5 || string(r.Stdout) != "in\n" || string(r.Stderr) != "err\n" {
					t.Errorf("got %d %q %q, %v", r.ExitCode, r.Stdout, r.Stderr, err)
				}
				s.Close()
			}
		})
	}
}
