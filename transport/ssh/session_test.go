package ssh_test

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"gateway/internal/sshdtest"
	"gateway/transport"
	"gateway/transport/ssh"
)

func terminal(t testing.TB, tr *ssh.Transport, command string) transport.Terminal {
	t.Helper()
	term, err := tr.Terminal(t.Context(), command, transport.TerminalOptions{})
	if err != nil {
		t.Fatalf("Terminal(%q) = %v", command, err)
	}
	t.Cleanup(func() { term.Close() })
	return term
}

func TestNoTerminal(t *testing.T) {
	for name, options := range map[string]sshdtest.Options{
		"PermitTTY no": {Config: []string{"PermitTTY no"}},
		"restrict":     {AuthorizedOptions: "restrict"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := dial(t, config(sshdtest.Start(t, options)))
			term := terminal(t, tr, "test -t 0 || echo none; echo err >&2; exit 4")
			if got := read(t, term); !strings.Contains(got, "none\n") || !strings.Contains(got, "err\n") {
				t.Errorf("output = %q, want none and err", got)
			}
			if exit, err := term.Wait(); exit.Code != 4 || err != nil {
				t.Errorf("Wait = %+v, %v", exit, err)
			}
			loud := terminal(t, tr, "head -c 8000000 /dev/zero >&2; echo done")
			if got := len(read(t, loud)); got != 8000005 {
				t.Errorf("%d bytes, want 8000005", got)
			}
			_, err := tr.Terminal(t.Context(), "", transport.TerminalOptions{Interactive: true})
			wantCode(t, err, "session.pty_refused", "web1")
		})
	}
}

func TestDrivenShells(t *testing.T) {
	tr := dial(t, config(sshdtest.Start(t, sshdtest.Options{})))
	for _, shell := range []string{"bash --norc -i", "bash --norc --noediting -i", "dash -i"} {
		t.Run(shell, func(t *testing.T) {
			program, _, _ := strings.Cut(shell, " ")
			if _, err := exec.LookPath(program); err != nil {
				sshdtest.Skip(t, "no %s here: %v", program, err)
			}
			term := terminal(t, tr, "PS1= ENV= exec "+shell)
			if _, err := io.WriteString(term, "echo 'a\tb'; echo \"$TERM\"; exit 3\n"); err != nil {
				t.Fatal(err)
			}
			got := read(t, term)
			if strings.Contains(got, "\r") || strings.Contains(got, "exit 3") || !strings.Contains(got, "\ndumb\n") {
				t.Errorf("output = %q, want no echo and no carriage return", got)
			}
			if exit, err := term.Wait(); exit.Code != 3 || err != nil {
				t.Errorf("Wait = %+v, %v", exit, err)
			}
		})
	}
}

func TestForcedCommand(t *testing.T) {
	tr := dial(t, config(sshdtest.Start(t, sshdtest.Options{Config: []string{"ForceCommand echo forced"}})))
	if got := output(t, tr, "echo mine"); got != "forced\n" {
		t.Errorf("output = %q", got)
	}
}

// A login that ends behind the authentication is one that the server's log says more of.
func TestClosedBehindTheLogin(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o777)) // which sshd does not accept
	tr := dial(t, config(sshdtest.Start(t, sshdtest.Options{
		Account: &sshdtest.Account{Name: "gwtest"}, Config: []string{"ChrootDirectory " + dir},
	})))
	_, err := tr.Pipe(t.Context(), "true")
	if hint := wantCode(t, err, "ssh.closed").Hint; !strings.Contains(hint, "ChrootDirectory") {
		t.Errorf("hint = %q", hint)
	}
}

func TestSubsystem(t *testing.T) {
	t.Run("sftp", func(t *testing.T) {
		tr := dial(t, config(sshdtest.Start(t, sshdtest.Options{})))
		pipe, err := tr.Subsystem(t.Context(), "sftp")
		if err != nil {
			t.Fatal(err)
		}
		// SSH_FXP_INIT, version 3; the answer is SSH_FXP_VERSION.
		if _, err := pipe.Stdin.Write([]byte{0, 0, 0, 5, 1, 0, 0, 0, 3}); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 5)
		if _, err := io.ReadFull(pipe.Stdout, answer); err != nil || answer[4] != 2 {
			t.Errorf("answer = %v, %v", answer, err)
		}
		pipe.Close()
	})
	t.Run("none", func(t *testing.T) {
		_, err := dial(t, config(sshdtest.Start(t, sshdtest.Options{NoSftp: true}))).Subsystem(t.Context(), "sftp")
		wantCode(t, err, "file.no_subsystem", "web1")
	})
}

func TestDropbear(t *testing.T) {
	s := sshdtest.StartDropbear(t, sshdtest.Options{})
	tr := dial(t, config(s))
	pipe := pipe(t, tr, "cat; echo err >&2; exit 3")
	if _, err := io.WriteString(pipe.Stdin, "in\n"); err != nil {
		t.Fatal(err)
	}
	pipe.Stdin.Close()
	if got := read(t, pipe.Stdout) + read(t, pipe.Stderr); got != "in\nerr\n" {
		t.Errorf("output = %q", got)
	}
	if exit, err := pipe.Wait(); exit.Code != 3 || err != nil {
		t.Errorf("Wait = %+v, %v", exit, err)
	}
	term := terminal(t, tr, "tty >/dev/null && echo yes")
	if got := read(t, term); got != "yes\n" {
		t.Errorf("output = %q", got)
	}
}
