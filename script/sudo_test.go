package script_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/sshdtest"
)

// A step of another user begins where the main shell is. Where that is a home that
// nobody else can enter, it says nothing about the step, unless an earlier one has
// gone there.
func TestSudoFromAPrivateHome(t *testing.T) {
	if os.Getuid() != 0 {
		sshdtest.Skip(t, "another user without a password needs root")
	}
	if _, err := exec.LookPath("sudo"); err != nil {
		sshdtest.Skip(t, "%v", err)
	}
	dir := sshdtest.SharedDir(t)
	home, other := filepath.Join(dir, "home"), filepath.Join(dir, "other")
	for _, private := range []string{home, other} {
		if err := os.Mkdir(private, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	text := "vars: {o: '" + other + `'}
steps:
  - {name: a, sudo: nobody, run: 'id -un; pwd; cd /usr; x=kept'}
  - {name: b, sudo: nobody, env: {E: env}, run: 'pwd; echo "$x $E"', until: 'test "$E" = env', retry: {times: 1}}
  - {name: c, sudo: nobody, cwd: sub, run: pwd, on_fail: continue}
  - {name: d, sudo: nobody, cwd: /tmp, run: pwd}
  - {name: e, run: cd "$o"}
  - {name: f, sudo: nobody, env: {E: env}, run: pwd, on_fail: continue}
  - {name: g, sudo: nobody, cwd: /usr, run: 'pwd; echo "${E-}"'}
  - {name: h, run: cd /tmp}
  - {name: i, sudo: nobody, run: pwd}
  - {name: j, run: cd "$OLDPWD/../home"}
  - {name: k, sudo: nobody, run: pwd}
`
	origin := `(/|/nonexistent)` // the home of nobody, where there is one
	denied := func(dir string) string {
		return `failed \(ignored\) \[cmd.cwd: script: directory "` + regexp.QuoteMeta(dir) + `" can't be entered on the machine.*\]`
	}
	want := regexp.MustCompile(`\Aa: ok "nobody\\n` + origin + `\\n"
b: ok "` + origin + `\\nkept env\\n"
c: ` + denied(home+"/sub") + `
d: ok "/tmp\\n"
e: ok
f: ` + denied(other) + `
g: ok "/usr\\n\\n"
h: ok
i: ok "/tmp\\n"
j: ok
k: ok "` + origin + `\\n"
ok\z`)
	for _, shell := range []string{"bash", "dash", "zsh", "busybox ash"} {
		t.Run(shell, func(t *testing.T) {
			name, _, _ := strings.Cut(shell, " ")
			if _, err := exec.LookPath(name); err != nil {
				sshdtest.Skip(t, "%v", err)
			}
			shells.Store(t, shell)
			r := runner(t, text, nil)
			open := r.Open
			r.Open = func(ctx context.Context, host string, o gateway.Options) (*gateway.Session, error) {
				o.Cwd = home
				return open(ctx, host, o)
			}
			got := r.Host(t.Context(), "localhost")
			if s := summary(got); !want.MatchString(s) {
				t.Errorf("got\n%s\nwant\n%s", s, want)
			}
			for _, step := range got.Steps {
				if hint := gateway.Hint(step.Err); step.Err != nil && !strings.Contains(hint, "give it a cwd") {
					t.Errorf("%s: the hint is %q", step.Name, hint)
				}
			}
		})
	}
}

// Three wrong passwords lock an account: what sudo has refused is not typed for the next
// step as well.
func TestSudoPasswordIsTypedOnce(t *testing.T) {
	bin := t.TempDir()
	asked := filepath.Join(bin, "asked")
	sudo := "#!/bin/sh\nprintf '%s' \"$2\" >/dev/tty\nread -r p </dev/tty\necho \"$p\" >>" + asked + "\necho 'Sorry, try again.' >/dev/tty\nexit 1\n"
	if err := os.WriteFile(filepath.Join(bin, "sudo"), []byte(sudo), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("GWTEST_SUDO", "wrong one")
	inventory, err := hosts.Parse("hosts.yaml", []byte("hosts: {localhost: {sudo: {password: env:GWTEST_SUDO}}}"))
	if err != nil {
		t.Fatal(err)
	}
	g := gateway.New(gateway.Config{Inventory: inventory})
	defer g.Close()
	r := runner(t, "steps:\n  - {name: a, sudo: true, run: id}\nalways:\n  - {name: b, run: id, sudo: true}\n  - {name: c, run: id, sudo: nobody}\n", nil)
	r.Open = g.Open
	result := r.Host(t.Context(), "localhost")
	for _, step := range result.Steps {
		if step.Outcome != fleet.Failed || gateway.Code(step.Err) != "sudo.rejected" {
			t.Errorf("%s: %s, %v, want sudo.rejected", step.Name, step.Outcome, step.Err)
		}
	}
	if again := result.Steps[1].Err.Error(); !strings.HasPrefix(again, "script: sudo's password was refused, and is not typed again: ") {
		t.Errorf("got %q", again)
	}
	if typed, err := os.ReadFile(asked); err != nil || string(typed) != "wrong one\nwrong one\n" {
		t.Errorf("typed %q, %v, want it once for root and once for nobody", typed, err)
	}
}
