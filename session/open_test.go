package session_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/gateway"
	"gateway/session"
	"gateway/transport/local"
)

// A caller that gives up is not told of a machine that does not answer.
func TestOpeningEnds(t *testing.T) {
	tr := local.New(local.Config{})
	defer tr.Close()
	mute := altered{Transport: tr, onTerminal: instead("exec sleep 60"), onPipe: instead("exec sleep 60")}
	gaveUp := errors.New("gave up")
	for name, test := range map[string]struct {
		after func(context.Context) (context.Context, context.CancelFunc)
		code  string
	}{
		"by the caller": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			timer := time.AfterFunc(200*time.Millisecond, func() { cancel(gaveUp) })
			return ctx, func() { timer.Stop(); cancel(nil) }
		}, "cmd.interrupted"},
		"by its time": {func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} }, "shell.no_sync"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := test.after(t.Context())
			defer cancel()
			_, err := session.Open(ctx, mute, session.Config{Shell: "bash", OpenTimeout: time.Second})
			if gateway.Code(err) != test.code || errors.Is(err, gaveUp) != (name == "by the caller") {
				t.Errorf("Open = %s, %v, want %s", gateway.Code(err), err, test.code)
			}
		})
	}
}

// What refuses a command often repeats it first: of what it says, that is not what counts.
func TestRefusedWithItsOwnWords(t *testing.T) {
	const words = "You can't: only git is served here."
	for name, says := range map[string]string{
		"as it came":     `printf "fatal: unrecognized command '%s'\n" "$2"; echo "` + words + `"`,
		"as echo has it": `printf "` + words + ` Not %b\n" "$2"`, // dash's echo makes newlines, and ends at \c
		"cut short":      `printf 'Rejected: %.40s\n' "$2"; echo "` + words + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			shell := filepath.Join(t.TempDir(), "git-shell")
			must(t, os.WriteFile(shell, []byte("#!/bin/sh\n"+says+"; exit 128\n"), 0o700))
			tr := local.New(local.Config{Shell: shell})
			defer tr.Close()
			_, err := session.Open(t.Context(), tr, session.Config{})
			if gateway.Code(err) != "shell.no_sync" || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "$d") || len(err.Error()) > 700 {
				t.Errorf("Open = %s, %v", gateway.Code(err), err)
			}
		})
	}
}

// Where there is no shell behind sudo, the machine says why, and not what was to run.
func TestSudoRefusedWithItsOwnWords(t *testing.T) {
	const words = "ask the duty manager"
	bin := t.TempDir()
	sudo := "#!/bin/sh\nfor x do :; done\nprintf 'sudo: " + words + ", not for /bin/sh -c %s\\n' \"$x\" >&2\nexit 1\n"
	must(t, os.WriteFile(filepath.Join(bin, "sudo"), []byte(sudo), 0o700))
	tr := local.New(local.Config{Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")}})
	defer tr.Close()
	for name, test := range map[string]struct {
		machine altered
		code    string
	}{
		"by sudo":            {altered{Transport: tr}, "sudo.rejected"},
		"by the login shell": {altered{Transport: tr, onPipe: instead("echo '" + words + "' >&2; exit 1")}, "shell.no_sync"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := session.Open(t.Context(), test.machine, session.Config{Sudo: &session.Sudo{}})
			if gateway.Code(err) != test.code || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "$HOME") {
				t.Errorf("Open = %s, %v, want %s and %q", gateway.Code(err), err, test.code, words)
			}
		})
	}
}

// A shell that waits for something else is not waited for where there is no side channel.
func TestOpeningWithoutASideChannel(t *testing.T) {
	t.Parallel()
	tr := local.New(local.Config{})
	defer tr.Close()
	// It wants a new password first, as sshd does.
	expired := altered{Transport: tr, onTerminal: instead("echo Current password:; exec sleep 60"), onPipe: instead("echo no terminal >&2; exit 1")}
	_, err := session.Open(t.Context(), expired, session.Config{Shell: "bash", OpenTimeout: time.Minute})
	if gateway.Code(err) != "shell.no_sync" || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Open = %s, %v", gateway.Code(err), err)
	}
	for _, said := range []string{"the side channel ended at once", "Current password:", "no terminal"} {
		if !strings.Contains(err.Error(), said) {
			t.Errorf("%v: no word of %q", err, said)
		}
	}
}

// TestPromptIsTheShellsAlone: programs do not have the engine's prompt in their environment,
// but in the shells that can't take a variable out of it.
func TestPromptIsTheShellsAlone(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		for range 2 { // the second frame is a stored one
			out := string(run(t, s, "/usr/bin/env | grep '^PS[0-9]=' || :").Stdout)
			kept := strings.HasSuffix(s.Shell(), "dash") || strings.Contains(s.Shell(), "busybox")
			if out != "" && !kept {
				t.Errorf("in the environment: %q", out)
			}
		}
	})
}

func TestOpenBringsTheSessionWhereItShouldBe(t *testing.T) {
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			s := open(t, session.Config{Shell: shell, Cwd: "/usr", Env: map[string]string{"A": "it's\n"}, Login: true})
			want(t, run(t, s, `pwd; sh -c 'echo "$A"'; echo $TERM $PAGER; env | grep -c ^_gw`), 1, "/usr\nit's\n\ndumb cat\n0\n", "")
		})
	}
	for code, config := range map[string]session.Config{
		"cmd.cwd":           {Cwd: "/nonexistent"},
		"shell.unsupported": {Shell: "python3"},
	} {
		tr := local.New(local.Config{})
		defer tr.Close()
		_, err := session.Open(t.Context(), tr, config)
		var coded interface{ ErrorCode() string }
		if !errors.As(err, &coded) || coded.ErrorCode() != code {
			t.Errorf("Open(%+v) = %v, want %s", config, err, code)
		}
	}
	lost := local.New(local.Config{Env: []string{"PATH=/nonexistent"}})
	defer lost.Close()
	if _, err := session.Open(t.Context(), lost, session.Config{}); gateway.Code(err) != "shell.unsupported" || !strings.Contains(err.Error(), "is in the PATH") {
		t.Errorf("Open where nothing is in the PATH = %v", err)
	}
	home := t.TempDir()
	must(t, os.WriteFile(filepath.Join(home, ".bash_profile"), []byte("echo not today; exit 4\n"), 0o600))
	leaving := local.New(local.Config{Env: []string{"HOME=" + home}})
	defer leaving.Close()
	if _, err := session.Open(t.Context(), leaving, session.Config{Shell: "bash", Login: true}); err == nil || !strings.Contains(err.Error(), "login profile ends the shell, with status 4") || !strings.Contains(err.Error(), "not today") {
		t.Errorf("Open with a profile that exits = %v", err)
	}
	must(t, os.WriteFile(filepath.Join(home, ".profile"), []byte("A=kept; . /nonexistent/env; exit 5\n"), 0o600))
	if s, err := session.Open(t.Context(), leaving, session.Config{Shell: "dash", Login: true}); err != nil {
		t.Errorf("Open with a profile that dash gives up = %v", err)
	} else {
		if r := run(t, s, "echo $A"); string(r.Stdout) != "kept\n" {
			t.Errorf("it has %q", r.Stdout)
		}
		s.Close()
	}
	must(t, os.WriteFile(filepath.Join(home, ".bash_profile"), []byte("readonly PS1='my prompt'\n"), 0o600))
	if _, err := session.Open(t.Context(), leaving, session.Config{Shell: "bash", Login: true, Env: map[string]string{"A": "x"}}); gateway.Code(err) != "shell.no_sync" || !strings.Contains(err.Error(), "makes PS1 or PS2 readonly") {
		t.Errorf("Open with a profile that keeps its prompt = %v", err)
	}
	tr := local.New(local.Config{})
	defer tr.Close()
	if _, err := session.Open(t.Context(), tr, session.Config{Shell: "/nonexistent/bash"}); err == nil {
		t.Error("Open with a missing shell = nil")
	}
}

// TestShellsSpelling: the blanks that an inventory has around and between the words are
// nobody's.
func TestShellsSpelling(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"busybox  ash", "bash ", " dash"} {
		s := open(t, session.Config{Shell: shell})
		want(t, run(t, s, "echo on"), 0, "on\n", "")
	}
	for _, shell := range []string{`"bash"`, "bash;", "fish", "bash -l"} {
		tr := local.New(local.Config{})
		defer tr.Close()
		if _, err := session.Open(t.Context(), tr, session.Config{Shell: shell}); gateway.Code(err) != "shell.unsupported" {
			t.Errorf("%q: Open = %v, want shell.unsupported", shell, err)
		}
	}
}

// TestOneProgramAtATime: where one of a session's two programs waits for the other's end, the
// link is not what is in the way.
func TestOneProgramAtATime(t *testing.T) {
	t.Parallel()
	never := instead("exec sleep 60")
	for name, test := range map[string]struct {
		machine altered
		one     bool
	}{
		"the shell alone":        {altered{onPipe: never}, true},
		"the side channel alone": {altered{onTerminal: never}, true},
		"neither":                {altered{onTerminal: never, onPipe: never}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := local.New(local.Config{})
			defer tr.Close()
			test.machine.Transport = tr
			for limit := 500 * time.Millisecond; ; limit *= 2 { // a machine that is busy takes longer for either
				_, err := session.Open(t.Context(), test.machine, session.Config{OpenTimeout: limit})
				if gateway.Code(err) != "shell.no_sync" {
					t.Fatalf("Open = %v, want shell.no_sync", err)
				}
				switch one := strings.Contains(gateway.Hint(err), "one at a time"); {
				case one == test.one:
					return
				case one || limit > 20*time.Second:
					t.Fatalf("Open = %v, hint %q, want one of them to have answered: %v", err, gateway.Hint(err), test.one)
				}
			}
		})
	}
}

// TestSudoThatAsksSomethingElse: what PAM or a program in front of sudo asks is named, and
// the link not blamed.
func TestSudoThatAsksSomethingElse(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	must(t, os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\nprintf 'Reason: ' >/dev/tty\nread -r reason </dev/tty\n"), 0o700))
	tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir(), "PATH=" + bin + ":" + os.Getenv("PATH")}})
	defer tr.Close()
	for limit := 500 * time.Millisecond; ; limit *= 2 { // a machine that is busy takes longer to ask
		_, err := session.Open(t.Context(), tr, session.Config{Sudo: &session.Sudo{}, OpenTimeout: limit})
		if gateway.Code(err) != "shell.no_sync" {
			t.Fatalf("Open = %v, want shell.no_sync", err)
		}
		if strings.Contains(err.Error(), `it said "Reason:"`) && strings.Contains(gateway.Hint(err), "PAM") {
			return
		}
		if limit > 20*time.Second {
			t.Fatalf("Open = %v, hint %q", err, gateway.Hint(err))
		}
	}
}
