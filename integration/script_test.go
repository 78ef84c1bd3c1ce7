package integration

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/internal/sshdtest"
)

// deployment is a script of ten steps: a variable, a register, a retry, an
// answered prompt of sudo, a step of another user, a failure that is allowed.
const deployment = `
name: deploy
vars: {version: , base: app}
secrets: {password: file:password, token: cmd:cat token}
steps:
  - name: prepare
    run: |
      mkdir -p "$base/releases"
      cd "$base"
      release() { echo "$PWD/releases/$1"; }
  - name: what runs
    run: cat current 2>/dev/null || echo none
    register: before
  - name: fetch ${{ version }}
    retry: {times: 3, delay: 20ms}
    run: |
      tries=$((${tries-0} + 1))
      test "$tries" = 3
      mkdir "$(release "$version")"
  - name: nothing to do
    when: test "$before" = "$version"
    run: echo unreachable
  - name: configure
    cwd: releases/${{ version }}
    env: {TOKEN: "${{ token }}"}
    run: |
      printf '%s\n' "$TOKEN" >config
      cat config
      printf '%s' "$TOKEN" | base64
      set -x; : "$password"; { set +x; } 2>/dev/null
  - name: who am I
    run: sudo -k id -un
    answer: [{prompt: '^\[sudo\] password for ', send: secret:password}]
    expect: {stdout: {equals: root}}
  - name: as root
    sudo: true
    answer: [{prompt: '^\[sudo\] password for ', send: secret:password}]
    run: |
      echo "$(id -un) in $PWD, $version, before: $before"
      test "$password" = "$(cat "$OLDPWD/none" 2>/dev/null || printf %s "$password")"
    expect: {stdout: {matches: '^root in .*/app, ${{ version }}, before: '}}
  - name: a check that may fail
    run: ls /nonexistent
    on_fail: continue
  - name: switch
    run: |
      echo "$version" >current
      test "$FAIL" != "$NAME"
      echo switched
  - name: healthy
    until: test "$(cat current)" = "$version"
    retry: {times: 2}
    run: 'true'
always:
  - name: tidy
    run: rm -f releases/*/config; echo tidied from $PWD after $before
`

// deploy is a machine with three addresses, an account with a password for sudo,
// and a directory with the script, its secrets and an inventory.
type deploy struct {
	t                     *testing.T
	server                *sshdtest.Server
	dir, password, secret string
}

func newDeploy(t *testing.T) *deploy {
	t.Helper()
	if _, err := exec.LookPath("sudo"); err != nil {
		sshdtest.Skip(t, "%v", err)
	}
	d := &deploy{t: t, dir: t.TempDir(), password: "c0rrect horse'\"$", secret: "t0ken+/with=<odd>&chars"}
	d.server = sshdtest.Start(t, sshdtest.Options{
		Addresses: 3,
		Account:   &sshdtest.Account{Name: "deploy", Password: d.password, Sudoers: "deploy ALL=(ALL) ALL"},
	})
	d.file("password", d.password+"\n")
	d.file("token", d.secret)
	d.file("deploy.yaml", deployment)
	inventory := "hosts:\n"
	for i := range 3 {
		inventory += fmt.Sprintf("  web%d: {addr: 127.0.0.%d, port: %d, user: deploy, identity: %q, agent: false, host_key_policy: accept-new, env: {NAME: web%[1]d, FAIL: web3}, cwd: %[5]q}\n",
			i+1, i+1, d.server.Port, d.server.KeyFile, d.home(i+1))
		must(t, os.Mkdir(d.home(i+1), 0o777))
		must(t, os.Chmod(d.home(i+1), 0o777))
	}
	d.file("hosts.yaml", inventory)
	return d
}

// home is where a host's files go: all three are one machine.
func (d *deploy) home(n int) string { return filepath.Join(d.server.Home, fmt.Sprintf("web%d", n)) }

func (d *deploy) file(name, text string) {
	d.t.Helper()
	write(d.t, filepath.Join(d.dir, name), text, 0o600)
}

func (d *deploy) read(name string) string {
	d.t.Helper()
	return string(mustRead(d.t, filepath.Join(d.dir, name)))
}

// command is a call of gateway in the directory.
func (d *deploy) command(args ...string) *exec.Cmd {
	program, err := binary()
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // once the program is built, which may take that long
	d.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, append([]string{"--inventory", "hosts.yaml", "--log-level", "debug", "--log-file", "log"}, args...)...)
	cmd.Dir = d.dir
	cmd.Env = []string{"HOME=" + d.dir, "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0", "GITHUB_STEP_SUMMARY=summary.md"}
	return cmd
}

func (d *deploy) run(args ...string) (status int, stdout, stderr string) {
	d.t.Helper()
	o := outcomeOf(d.t, d.command(args...))
	return o.status, o.stdout, o.stderr
}

// secretForms are pieces of the secrets and of what programs make of them.
func (d *deploy) secretForms() []string {
	forms := []string{"c0rrect", "horse", "t0ken", "<odd>"}
	for _, secret := range []string{d.password, d.secret} {
		quoted, _ := json.Marshal(secret)
		forms = append(forms, strings.ReplaceAll(secret, "'", `'\''`), url.QueryEscape(secret), url.PathEscape(secret), string(quoted[1:len(quoted)-1]))
		for shift := range 3 {
			encoded := base64.StdEncoding.EncodeToString([]byte("abc"[:shift] + secret))
			forms = append(forms, encoded[4:12])
		}
	}
	return forms
}

func (d *deploy) clean(name, sink string) {
	d.t.Helper()
	for _, form := range d.secretForms() {
		if i := strings.Index(sink, form); i >= 0 {
			d.t.Errorf("%s has %q: …%s…", name, form, sink[max(0, i-80):min(len(sink), i+80)])
		}
	}
}

func TestDeployment(t *testing.T) {
	t.Parallel()
	d := newDeploy(t)
	args := []string{"run", "deploy.yaml", "--on", "web[1-3]", "--var", "version=1.4.2", "--report", "junit=junit.xml", "--report", "json=report.json", "--report", "jsonl=report.jsonl", "--report", "github"}
	status, stdout, stderr := d.run(append(args, "-v")...)
	if status != 1 {
		t.Errorf("status %d, want 1", status)
	}
	for _, host := range []string{"web1", "web2"} {
		for _, line := range []string{
			host + "  ok           1/11  prepare  (",
			host + "  ok           3/11  fetch 1.4.2  (", "[3 attempts]",
			host + "  skipped      4/11  nothing to do  (",
			host + "  ok           6/11  who am I  (", "  out| root\n", "  tty| [sudo] password for deploy: ",
			host + "  ok           7/11  as root  (",
			host + "  failed       8/11  a check that may fail  (",
			host + "  ok           9/11  switch  (",
			host + "  ok          10/11  healthy  (",
			host + "  ok          11/11  tidy  (", "tidied from " + d.server.Home + "/" + host + "/app after none",
		} {
			if !strings.Contains(stdout, line) {
				t.Errorf("no %q in\n%s", line, stdout)
			}
		}
	}
	line := 1 + strings.Count(deployment[:strings.Index(deployment, `test "$FAIL"`)], "\n")
	for _, want := range []string{fmt.Sprintf("script: line %d: exit status 1", line), "web3  ok          11/11  tidy"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if want := "gateway: 2 of 3 hosts ok in "; !strings.Contains(stderr, want) || !strings.Contains(stderr, fmt.Sprintf("\n  web3  failed       switch (line %d)\n", line)) {
		t.Errorf("stderr %q, want %s and the line", stderr, want)
	}
	if strings.Count(stdout, "********") < 9 {
		t.Errorf("hardly a mask in\n%s", stdout)
	}

	sinks := map[string]string{"stdout": stdout, "stderr": stderr}
	for _, name := range []string{"junit.xml", "report.json", "report.jsonl", "summary.md", "log"} {
		sinks[name] = d.read(name)
	}
	status, sinks["-o json"], _ = d.run("run", "deploy.yaml", "--on", "web1,web1", "--var", "version=1.4.3", "-o", "json")
	if status != 0 {
		t.Errorf("web1 alone: status %d: %s", status, sinks["-o json"])
	}
	_, sinks["-o jsonl"], _ = d.run("run", "deploy.yaml", "--on", "run:last", "--var", "version=1.4.4", "-o", "jsonl")
	_, sinks["dry run"], _ = d.run("run", "deploy.yaml", "--on", "web1", "--var", "version=1.4.3", "--dry-run")
	records, err := filepath.Glob(filepath.Join(d.dir, ".local/state/gateway/*/*"))
	if err != nil || len(records) == 0 {
		t.Errorf("no records: %v", err)
	}
	for _, file := range records {
		if text, err := os.ReadFile(file); err == nil {
			sinks[file] = string(text)
		}
	}
	for name, sink := range sinks {
		if sink == "" {
			t.Errorf("%s is empty", name)
		}
		d.clean(name, sink)
	}

	var results []struct {
		Host, Outcome string
		Steps         []struct {
			Name, Outcome string
			Line          int `json:"line"`
			FailedLine    int `json:"failed_line"`
			Attempts      int
		}
	}
	if err := json.Unmarshal([]byte(sinks["report.json"]), &results); err != nil || len(results) != 3 {
		t.Fatalf("%d results, %v", len(results), err)
	}
	for i, want := range []string{"ok", "ok", "failed"} {
		if r := results[i]; r.Outcome != want || len(r.Steps) != 11 || r.Steps[2].Attempts != 3 {
			t.Errorf("got %+v, want %s", r, want)
		}
	}
	if s := results[2].Steps[8]; s.FailedLine != line || s.Outcome != "failed" {
		t.Errorf("got %+v, want line %d", s, line)
	}
	// What is under always has run on all, and nothing else is left behind.
	if left, _ := filepath.Glob(filepath.Join(d.server.Home, "web*/app/releases/*/config")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	status, stdout, _ = d.run("hosts", "list", "run:last", "-o", "json")
	if status != 0 || strings.Count(stdout, `"name"`) != 1 {
		t.Errorf("run:last: %d, %s", status, stdout)
	}
}

func TestScriptCheckLooksAtSudo(t *testing.T) {
	t.Parallel()
	d := newDeploy(t)
	d.file("s.yaml", "secrets: {password: file:password}\nsteps:\n  - {name: a, sudo: true, run: touch /tmp/never, answer: [{prompt: '\\[sudo\\]', send: secret:password}]}\n")
	if status, stdout, stderr := d.run("run", "s.yaml", "--on", "web1", "--check"); status != 0 || !strings.Contains(stdout, "web1  ok      deploy  bash") {
		t.Errorf("%d, %s%s, want ok", status, stdout, stderr)
	}
	d.file("s.yaml", "steps:\n  - {name: a, sudo: true, run: touch /tmp/never}\n")
	if status, stdout, stderr := d.run("run", "s.yaml", "--on", "web1", "--check"); status != 3 || !strings.Contains(stdout, "sudo.needs_password") {
		t.Errorf("%d, %s%s, want sudo.needs_password", status, stdout, stderr)
	}
	if status, stdout, stderr := d.run("run", "s.yaml", "--on", "web1"); status != 1 || !strings.Contains(stdout, "no answer of the step fits\n  hint: give the step an answer") {
		t.Errorf("%d, %s%s, want a hint at answer", status, stdout, stderr)
	}
	d.file("password", "wrong one\n")
	d.file("s.yaml", "secrets: {password: file:password}\nsteps:\n  - {name: a, sudo: true, run: 'true', answer: [{prompt: '\\[sudo\\]', send: secret:password}]}\n")
	if status, stdout, stderr := d.run("run", "s.yaml", "--on", "web1"); status != 1 || !strings.Contains(stdout, "sudo.rejected") && !strings.Contains(stdout, "the password is wrong") {
		t.Errorf("%d, %s%s, want sudo.rejected", status, stdout, stderr)
	}
}

// sshd ends a terminal that no process has open, and sudo has it open only while
// it asks.
func TestSudoOverSSH(t *testing.T) {
	t.Parallel()
	d := newDeploy(t)
	d.file("hosts.yaml", strings.ReplaceAll(d.read("hosts.yaml"), "agent: false", "agent: false, sudo: {password: file:password}"))
	for range 3 {
		if status, stdout, stderr := d.run("exec", "web1", "--sudo", "--", "id -un; exit 7"); status != 7 || stdout != "root\n" {
			t.Fatalf("%d, %q, %s, want root and 7", status, stdout, stderr)
		}
	}
	if status, stdout, stderr := d.run("exec", "web1", "--sudo", "-o", "json", "--timeout", "300ms", "--", "trap '' INT; sleep 1000"); status != 124 || !strings.Contains(stdout, `"verdict":"timed_out"`) {
		t.Errorf("%d, %s%s, want 124", status, stdout, stderr)
	}
	if status, stdout, stderr := d.run("exec", "web1", "--sudo", "-o", "json", "--", "kill -KILL $$"); status != 137 || !strings.Contains(stdout, `"verdict":"signaled"`) {
		t.Errorf("%d, %s%s, want 137, signaled", status, stdout, stderr)
	}
}

// The inventory's password is masked, too, from when it is typed on.
func TestInventorysPasswordIsMasked(t *testing.T) {
	d := newDeploy(t)
	inventory := strings.ReplaceAll(d.read("hosts.yaml"), "agent: false", "agent: false, sudo: {password: file:password}")
	d.file("hosts.yaml", inventory)
	d.file("s.yaml", "steps:\n  - {name: a, run: sudo -k cat /etc/shadow >/dev/null && echo through}\n  - {name: b, sudo: true, run: \"cat "+filepath.Join(d.dir, "password")+"; base64 <"+filepath.Join(d.dir, "password")+"; id -un\"}\n")
	status, stdout, stderr := d.run("run", "s.yaml", "--on", "web[1-3]", "-v")
	if status != 0 || strings.Count(stdout, "  out| ********\n") != 6 || strings.Count(stdout, "through") != 3 || strings.Count(stdout, "  out| root\n") != 3 {
		t.Errorf("%d, %s%s, want the password masked", status, stdout, stderr)
	}
	d.clean("stdout", stdout)
}

// Whom the inventory has for sudo is one user, by name or not.
func TestSudoOfTheInventory(t *testing.T) {
	d := newDeploy(t)
	d.file("hosts.yaml", strings.ReplaceAll(d.read("hosts.yaml"), "agent: false", "agent: false, sudo: {password: file:password, user: deploy}"))
	d.file("s.yaml", "steps:\n  - {name: a, sudo: true, run: V=kept; id -un}\n  - {name: b, sudo: deploy, run: echo $V}\n")
	status, stdout, stderr := d.run("run", "s.yaml", "--on", "web1", "-o", "json")
	if status != 0 || strings.Count(stdout, `"sudo":"deploy"`) != 2 || !strings.Contains(stdout, `"stdout":"deploy\n"`) || !strings.Contains(stdout, `"stdout":"kept\n"`) {
		t.Errorf("%d, %s%s, want deploy, and one shell", status, stdout, stderr)
	}
}

// The login's home is its own: a step of another user runs where exec --sudo does.
func TestSudoFromHome(t *testing.T) {
	d := newDeploy(t)
	inventory := strings.ReplaceAll(d.read("hosts.yaml"), "agent: false", "agent: false, sudo: {password: file:password}")
	d.file("hosts.yaml", strings.ReplaceAll(inventory, fmt.Sprintf(", cwd: %q", d.home(1)), ""))
	d.file("s.yaml", "steps:\n  - {name: a, run: pwd}\n  - {name: b, sudo: nobody, run: 'id -un; pwd'}\n  - {name: c, run: 'mkdir -m 700 own; cd own'}\n  - {name: d, sudo: nobody, run: pwd}\n")
	status, there, stderr := d.run("exec", "web1", "--sudo=nobody", "--", "id -un; pwd")
	if status != 0 || !strings.HasPrefix(there, "nobody\n/") {
		t.Fatalf("%d, %s%s, want to be nobody somewhere", status, there, stderr)
	}
	status, stdout, stderr := d.run("run", "s.yaml", "--on", "web1", "-v")
	where := strings.ReplaceAll(strings.TrimSuffix("\n"+there, "\n"), "\n", "\n  out| ")
	for _, want := range []string{"  out| " + d.server.Home + "\n", where + "\n", `directory "` + d.server.Home + `/own" can't be entered on the machine`, "\n  hint: a step with sudo begins where the account's own shell is: give it a cwd"} {
		if status != 1 || !strings.Contains(stdout, want) {
			t.Errorf("%d, %s%s, want %q", status, stdout, stderr, want)
		}
	}
}

// The first signal ends the step, and what is under always runs before the end.
func TestScriptIsInterrupted(t *testing.T) {
	d := newDeploy(t)
	d.file("s.yaml", "steps:\n  - {name: a, run: echo $$ >begun; sleep 1000}\n  - {name: b, run: touch never}\nalways:\n  - {name: c, run: echo always >ended}\n")
	cmd := d.command("run", "s.yaml", "--on", "web[1-3]", "--report", "junit=junit.xml")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	for i := range 3 {
		eventually(t, "the step begins", func() bool {
			text, err := os.ReadFile(filepath.Join(d.home(i+1), "begun"))
			return err == nil && len(text) > 0
		})
	}
	send(t, cmd, syscall.SIGTERM)
	_ = cmd.Wait() // the status says it
	if status := cmd.ProcessState.ExitCode(); status != 143 {
		t.Errorf("status %d, want 143: %s", status, &out)
	}
	for i := range 3 {
		if _, err := os.Stat(filepath.Join(d.home(i+1), "ended")); err != nil {
			t.Errorf("always did not run: %v: %s", err, &out)
		}
		if _, err := os.Stat(filepath.Join(d.home(i+1), "never")); err == nil {
			t.Error("a step ran after the signal")
		}
	}
	if xml := d.read("junit.xml"); strings.Count(xml, `errors="1"`) != 3 || !strings.Contains(xml, `<skipped message="interrupted">`) {
		t.Errorf("got %s", xml)
	}
}

// The second signal does not wait for what is under always, kills it, and writes
// what is known.
func TestScriptIsLeft(t *testing.T) {
	t.Parallel()
	d := newDeploy(t)
	d.file("s.yaml", "steps:\n  - {name: a, run: echo done}\n  - {name: b, run: echo $$ >begun; sleep 1000}\nalways:\n  - {name: c, run: trap '' INT TERM; echo $$ >always; sleep 1000}\n")
	cmd := d.command("run", "s.yaml", "--on", "web[1-3]", "-o", "json", "--report", "junit=junit.xml", "--report", "json=report.json", "--report", "jsonl=report.jsonl")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	must(t, cmd.Start())
	shells := func(file string) (pids []int) {
		for i := range 3 {
			eventually(t, file+" begins", func() bool {
				text, err := os.ReadFile(filepath.Join(d.home(i+1), file))
				pid := 0
				if _, failed := fmt.Sscan(string(text), &pid); err != nil || failed != nil {
					return false
				}
				pids = append(pids, pid)
				return true
			})
		}
		return pids
	}
	var all []int
	var begun time.Time
	for _, file := range []string{"begun", "always"} {
		all = shells(file)
		begun = time.Now()
		send(t, cmd, syscall.SIGINT)
	}
	_ = cmd.Wait()                                                        // the status says it
	if took := time.Since(begun); sshdtest.Over(t, took, 3*time.Second) { // one, and a machine with other things to do
		t.Errorf("it took %v to leave", took)
	}
	if status := cmd.ProcessState.ExitCode(); status != 130 {
		t.Errorf("status %d, want 130: %s", status, &errs)
	}
	for _, pid := range all {
		eventually(t, "the shell is gone", func() bool { return syscall.Kill(pid, 0) != nil })
	}
	for name, text := range map[string]string{"stdout": out.String(), "report.json": d.read("report.json")} {
		var results []struct {
			Host, Outcome string
			Steps         []struct{ Name, Outcome string }
		}
		if err := json.Unmarshal([]byte(text), &results); err != nil || len(results) != 3 {
			t.Fatalf("%s: %v: %s", name, err, text)
		}
		for _, r := range results {
			if len(r.Steps) != 3 || r.Outcome != "interrupted" || r.Steps[0].Outcome != "ok" || r.Steps[1].Outcome != "interrupted" || r.Steps[2].Outcome == "ok" {
				t.Errorf("%s: got %+v", name, r)
			}
		}
	}
	if xml := d.read("junit.xml"); strings.Count(xml, "</testsuite>") != 3 || !strings.HasSuffix(xml, "</testsuites>\n") {
		t.Errorf("got %s", xml)
	}
	if lines := d.read("report.jsonl"); !strings.Contains(lines, `"event":"summary"`) {
		t.Errorf("got %s", lines)
	}
}
