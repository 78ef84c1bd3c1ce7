package daemon_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/gateway"
)

// asksAsSudo stands for sudo: it asks on the terminal, and has another shell for
// who knows the password.
const asksAsSudo = `#!/bin/sh
while [ "$1" != -- ]; do
	[ "$1" != -p ] || prompt=$2
	shift
done
shift
printf %s "$prompt" >/dev/tty
read -r password </dev/tty
[ "$password" = hunter22 ] || exit 1
exec "$@"
`

// A session in which nobody calls sudo needs no password for it.
func TestSudoPasswordThatIsNotThere(t *testing.T) {
	c := start(t, daemon.Config{})("")
	s, err := c.Open(t.Context(), api.Open{Target: localhost, SudoPassword: "env:GATEWAY_NOT_SET"}, gateway.Caller{Secret: gateway.Secret})
	if err != nil {
		t.Fatalf("Open = %v", err)
	}
	if r := run(t, c, s.ID, "echo on"); string(r.Stdout) != "on\n" {
		t.Errorf("%+v", r)
	}
}

// Whoever has answered sudo at the opening is not there any more when the
// session gets a fresh shell: a reference is resolved again, a person can't be
// asked.
func TestFreshShellUnderSudo(t *testing.T) {
	bin := t.TempDir()
	must(t, os.WriteFile(filepath.Join(bin, "sudo"), []byte(asksAsSudo), 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	file := filepath.Join(bin, "password")
	must(t, os.WriteFile(file, []byte("hunter22\n"), 0o600))
	var kind string
	person := gateway.Caller{
		Ask: func(_ context.Context, q gateway.Question) (string, error) {
			kind = q.Kind
			return "hunter22", nil
		},
		Secret: func(ctx context.Context, reference string) (string, error) {
			if reference == "env:OF_THE_CALLER" {
				return "hunter22", nil
			}
			return gateway.Secret(ctx, reference)
		},
	}
	for _, test := range []struct {
		name, reference string
		fresh           bool
	}{
		{"a person", "", false},
		{"a file", "file:" + file, true},
		{"a command", "cmd:echo hunter22", true},
		{"a variable of the caller", "env:OF_THE_CALLER", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := start(t, daemon.Config{})("")
			opened := func() api.Session {
				s, err := c.Open(t.Context(), api.Open{Target: localhost, Reopen: true, Sudo: &api.Sudo{Password: test.reference}}, person)
				if err != nil {
					t.Fatalf("Open = %v", err)
				}
				return s
			}
			reset, typed := opened(), opened()
			if err := c.Reset(t.Context(), reset.ID); (err == nil) != test.fresh || err != nil && gateway.Code(err) != "sudo.needs_password" {
				t.Errorf("Reset = %v", err)
			}
			if r := run(t, c, typed.ID, "exit 3"); r.Reopened != test.fresh {
				t.Errorf("exit = %+v", r)
			}
			for _, s := range []api.Session{reset, typed} {
				if test.fresh {
					if r := run(t, c, s.ID, "echo on"); string(r.Stdout) != "on\n" {
						t.Errorf("in the fresh shell: %+v", r)
					}
					continue
				}
				eventually(t, "a session without a shell is over", func() bool {
					s, err := c.Session(t.Context(), s.ID)
					return err == nil && s.State == api.Closed
				})
			}
		})
	}
	if kind != gateway.AskPassword {
		t.Errorf("the person was asked for a %s, want a password", kind)
	}
}
