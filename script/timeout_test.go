package script_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// What the runner itself types for a step is bounded, too: a directory may be on a
// machine that does not answer. The functions stand for that, and for less time
// than that would take.
func TestOwnTimeout(t *testing.T) {
	// slow hangs on the way to a directory, and says nothing of it.
	const slow = `cd() { command cd "$@" && case $PWD in /usr) sleep 20;; esac; }`
	for _, test := range []struct {
		name, text string
		own        time.Duration
		want       string
	}{
		{
			name: "cwd and env have the step's time",
			text: "steps:\n  - {name: a, run: 'cd /; " + slow + "'}\n  - {name: b, cwd: /usr, env: {A: x}, timeout: 100ms, run: echo b, on_fail: continue}\n  - {name: c, run: 'echo $PWD ${A-none}'}\n",
			want: "a: ok\nb: timed_out (ignored) [cmd.timeout: script: cwd: session: command ended after its timeout of 100ms]\nc: ok \"/ none\\n\"\nok",
		},
		{
			name: "without one, the runner's", own: 300 * time.Millisecond,
			text: "steps:\n  - {name: a, run: 'cd /; " + slow + "'}\n  - {name: b, cwd: /usr, run: echo b}\n",
			want: "a: ok\nb: timed_out [cmd.timeout: script: cwd: session: command ended after its timeout of 300ms]\ntimed_out",
		},
		{
			name: "on the way back", own: 300 * time.Millisecond,
			text: "steps:\n  - {name: a, run: 'cd /usr; " + slow + "'}\n  - {name: b, cwd: /, timeout: 20s, run: echo b}\nalways:\n  - {name: c, timeout: 20s, run: 'echo $PWD; type cd'}\n",
			want: "a: ok\nb: timed_out \"b\\n\" [cmd.timeout: script: put cwd and env back: session: command ended after its timeout of 300ms]\nc: ok \"/usr\\ncd is a shell builtin\\n\"\ntimed_out",
		},
		{
			name: "a variable", own: 2 * time.Second, // which is for those at the beginning, too
			text: "steps:\n  - {name: a, run: \"trap 'case $BASH_COMMAND in x=*) sleep 20;; esac' DEBUG\\necho a\", register: x}\n",
			want: "a: timed_out \"a\\n\" [cmd.timeout: script: set variables: session: command ended after its timeout of 2s]\ntimed_out",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := runner(t, test.text, nil)
			r.OwnTimeout = test.own
			if got := summary(r.Host(t.Context(), "localhost")); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// A shell that could not be put back is no place for a further step, whatever kept
// it from that, and it says so also where the step before had an error of its own.
func TestNotPutBack(t *testing.T) {
	for run, b := range map[string]string{
		"echo b":  `"b\\n" \[cmd.needs_input: script: put cwd and env back: .*\]`,
		"'false'": `\[script.failed: script: line 6: exit status 1\]`,
	} {
		r := runner(t, "steps:\n  - name: a\n    run: |\n      cd /\n      cd() { [ \"$*\" != '-- /' ] || read x </dev/tty; command cd \"$@\"; }\n"+
			"  - {name: b, cwd: /usr, run: "+run+", on_fail: continue}\n  - {name: c, run: pwd}\nalways:\n  - {name: d, run: pwd}\n", nil)
		got := summary(r.Host(t.Context(), "localhost"))
		want := regexp.MustCompile(`\Aa: ok
b: failed \(ignored\) ` + b + `
c: failed \[session.closed: script: the session is given up after an earlier step: put cwd and env back: session: command waits for input.*\]
d: ok "/\\n"
failed\z`)
		if !want.MatchString(got) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// The shell of another user has the step's time to open.
func TestTimeoutOfSudo(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\nexec sleep 20\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	r := runner(t, "steps:\n  - {name: a, sudo: true, timeout: 200ms, run: id, on_fail: continue}\n  - {name: b, run: echo b}\n", nil)
	got := summary(r.Host(t.Context(), "localhost"))
	want := "a: timed_out (ignored) [cmd.timeout: script: sudo ended after its timeout of 200ms]\nb: ok \"b\\n\"\nok"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
