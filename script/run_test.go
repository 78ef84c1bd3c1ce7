package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/redact"
	"gateway/script"
	"gateway/session"
)

// runner returns a runner for this machine; secrets are values, not references.
func runner(t *testing.T, text string, secrets map[string]string) *script.Runner {
	t.Helper()
	s, err := script.Parse("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	g := gateway.New(gateway.Config{Warn: func(m string) { t.Log("warning:", m) }})
	t.Cleanup(func() { g.Close() })
	r := &script.Runner{Script: s, Secrets: secrets, Mask: redact.New(), Open: func(ctx context.Context, host string, o gateway.Options) (*gateway.Session, error) {
		o.Shell = shellOf(t)
		return g.Open(ctx, host, o)
	}}
	for _, secret := range secrets {
		r.Mask.Add(secret)
	}
	return r
}

var shells sync.Map // by test

func shellOf(t *testing.T) string {
	if shell, ok := shells.Load(t); ok {
		return shell.(string)
	}
	return "bash"
}

// summary says of each step how it went and what it wrote.
func summary(r script.Result) string {
	var lines []string
	for _, s := range r.Steps {
		line := fmt.Sprintf("%s: %s", s.Name, s.Outcome)
		if s.Ignored {
			line += " (ignored)"
		}
		if s.Reason != "" {
			line += " (" + s.Reason + ")"
		}
		if s.Attempts > 1 {
			line += fmt.Sprintf(" in %d", s.Attempts)
		}
		if len(s.Stdout) > 0 {
			line += fmt.Sprintf(" %q", s.Stdout)
		}
		if s.Err != nil {
			line += " [" + gateway.Code(s.Err) + ": " + s.Err.Error() + "]"
		}
		lines = append(lines, line)
	}
	return strings.Join(append(lines, string(r.Outcome)), "\n")
}

func TestRun(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{
			"one shell", "vars: {v: it's}\nsteps:\n  - {name: a, run: \"cd /\\nf() { echo \\\"$v $PWD $x\\\"; }\\nx=1\"}\n  - {name: b, run: f}\n",
			[]string{"a: ok", `b: ok "it's / 1\n"`, "ok"},
		},
		{
			"the first statement that fails", "steps:\n  - name: a\n    run: |\n      echo one\n      if true; then\n        (exit 3)\n      fi\n      echo two\n  - {name: b, run: a}\nalways:\n  - {name: c, run: echo c}\n",
			[]string{`a: failed "one\n" [script.failed: script: line 5: exit status 3]`, "b: skipped (an earlier step failed)", `c: ok "c\n"`, "failed"},
		},
		{
			"keep going", "steps:\n  - {name: a, run: \"false\\necho two\", keep_going: true}\n",
			[]string{`a: ok "two\n"`, "ok"},
		},
		{
			"text that can't be split", "steps:\n  - {name: a, run: \"echo one; false; case x in\"}\n",
			[]string{"a: failed ", "failed"},
		},
		{
			"expectations", "vars: {w: a.b}\nsteps:\n  - {name: a, run: 'exit_with() { return 3; }; exit_with', expect: {exit: [3, 4]}}\n" +
				"  - {name: b, run: echo a.b, expect: {stdout: {contains: '${{ w }}', matches: '^${{ w }}$', equals: a.b}}, on_fail: continue}\n" +
				"  - {name: c, run: echo axb, expect: {stdout: {matches: '${{ w }}'}}, on_fail: continue}\n" +
				"  - {name: d, run: echo x >&2, expect: {stderr: {equals: y}}, on_fail: continue}\n" +
				"  - {name: e, run: echo x, expect: {stdout: {contains: y}}, on_fail: continue}\n" +
				"  - {name: f, run: 'true', expect: {exit: 1}}\n",
			[]string{
				"a: ok", `b: ok "a.b\n"`,
				"c: failed (ignored) \"axb\\n\" [script.failed: script: stdout does not match \"a.b\"]",
				`d: failed (ignored) [script.failed: script: stderr is not "y"]`,
				`e: failed (ignored) "x\n" [script.failed: script: stdout does not contain "y"]`,
				`f: failed [script.failed: script: exit status 0, not 1]`, "failed",
			},
		},
		{
			"register", "steps:\n  - {name: a, run: 'echo; echo \" two  words \"', register: x}\n  - {name: b, run: 'echo \"<$x>\"'}\n  - {name: 'c ${{ x }}', run: 'echo $X', env: {X: '${{ x }}!'}}\n  - {name: d, run: 'echo ${X-none}'}\n",
			[]string{`a: ok "\n two  words \n"`, `b: ok "<two  words>\n"`, `c two  words: ok "two words!\n"`, `d: ok "none\n"`, "ok"},
		},
		{
			"register of a failure that is allowed", "steps:\n  - {name: a, run: 'echo x; false', register: x, on_fail: continue}\n  - {name: b, run: 'echo \"<$x>\"'}\n",
			[]string{`a: failed (ignored) "x\n" [script.failed: script: line 2: exit status 1]`, `b: ok "<x>\n"`, "ok"},
		},
		{
			"register what can't be", "steps:\n  - {name: a, run: 'printf \"a\\000b\"', register: x}\n",
			[]string{`a: failed "a\x00b" [script.invalid: script: register x: stdout holds a NUL byte, which no shell can keep]`, "failed"},
		},
		{
			"when", "steps:\n  - {name: a, run: echo a, when: 'test 1 = 2', register: x}\n  - {name: b, run: 'set -eu; echo \"<$x>\"', when: 'echo noise; true'}\n  - {name: c, run: a, when: 'false'}\n  - {name: d, run: echo d, when: 'nosuchprogram x'}\n",
			[]string{"a: skipped (when: test 1 = 2)", `b: ok "<>\n"`, "c: skipped (when: false)", "d: failed [script.invalid: script: when: the test could not be run: status 127: bash: nosuchprogram: ", "failed"},
		},
		{
			"until", "steps:\n  - {name: a, run: 'n=$((n+1)); echo $n', until: 'test $n = 3', retry: {times: 5}}\n  - {name: b, run: 'true', until: 'false', retry: {times: 2, delay: 1ms}}\n",
			[]string{`a: ok in 3 "3\n"`, "b: failed in 3 [script.failed: script: until is not met: false]", "failed"},
		},
		{
			"until looks at what it registers", "steps:\n  - {name: a, run: 'n=$((n+1)); echo $n', register: st, until: 'test \"$st\" = 3', retry: {times: 5}}\n" +
				"  - {name: b, run: echo x, register: st, until: 'false', retry: {times: 1}, on_fail: continue}\n  - {name: c, run: echo $st}\n",
			[]string{`a: ok in 3 "3\n"`, "b: failed (ignored) in 2", `c: ok "x\n"`, "ok"},
		},
		{
			"tests that take too long", "steps:\n  - {name: a, run: 'true', when: sleep 60, timeout: 100ms, on_fail: continue}\n" +
				"  - {name: b, run: 'true', until: sleep 60, timeout: 100ms, retry: {times: 3}, on_fail: continue}\n" +
				"  - {name: c, run: 'n=$((n+1))', until: 'test $n = 2 || sleep 60', timeout: 100ms, idempotent: true, retry: {times: 3}}\n",
			[]string{
				"a: timed_out (ignored) [cmd.timeout: script: when: session: command ended after its timeout of 100ms]",
				"b: timed_out (ignored) [cmd.timeout: script: until: session: command ended after its timeout of 100ms]", "c: ok in 2", "ok",
			},
		},
		{
			"retry", "steps:\n  - {name: a, run: 'n=$((n+1)); test $n = 2', retry: {times: 2}}\n  - {name: b, run: 'n=$((n+1)); sleep 60', timeout: 100ms, retry: {times: 3}, on_fail: continue}\n" +
				"  - {name: c, run: 'n=$((n+1)); test $n = 5 || sleep 60', timeout: 100ms, idempotent: true, retry: {times: 3}}\n  - {name: d, run: 'echo $n'}\n",
			[]string{"a: ok in 2", "b: timed_out (ignored) [cmd.timeout: session: command ended after its timeout of 100ms]", "c: ok in 2", `d: ok "5\n"`, "ok"},
		},
		{
			"directory and environment", "steps:\n  - {name: a, run: cd /usr}\n  - name: b\n    cwd: bin\n    env: {A: '1', PATH: /usr/bin}\n    run: |\n      echo $PWD $A $PATH\n      A=2\n      cd /\n      echo $PWD $A; sh -c 'echo $A'\n" +
				"  - {name: c, run: 'echo $PWD ${A-none}'}\n  - {name: d, run: 'true', cwd: /nope}\n",
			[]string{"a: ok", `b: ok "/usr/bin 1 /usr/bin\n/ 2\n2\n"`, `c: ok "/usr none\n"`, `d: failed [cmd.cwd: script: directory "/nope" can't be entered on the machine: bash: cd:`, "failed"},
		},
		{
			"what became empty", "vars: {v: ''}\nsteps:\n  - {name: a, run: 'false', register: x, on_fail: continue}\n  - {name: b, run: id, sudo: '${{ x }}', on_fail: continue}\n" +
				"  - {name: c, run: pwd, cwd: '${{ x }}${{ v }}'}\n",
			[]string{
				"a: failed (ignored)", "b: failed (ignored) [script.invalid: script: sudo: ${{ x }} is empty]",
				"c: failed [script.invalid: script: cwd: ${{ x }}${{ v }} is empty]", "failed",
			},
		},
		{
			"environment put back", "steps:\n  - {name: a, run: 'P=plain; export E=exported'}\n  - {name: b, run: 'echo $P $E $N', env: {P: 1, E: 2, N: 3}}\n  - {name: c, run: \"echo $P $E ${N-unset}; sh -c 'echo ${P-plain} $E'\"}\n",
			[]string{"a: ok", `b: ok "1 2 3\n"`, `c: ok "plain exported unset\nplain exported\n"`, "ok"},
		},
		{
			"the shell ends", "steps:\n  - {name: a, run: 'exit 0'}\n  - {name: b, run: 'true'}\nalways:\n  - {name: c, run: echo c}\n",
			[]string{"a: ok", "b: failed [session.closed: script: the session has ended]", `c: ok "c\n"`, "failed"},
		},
		{
			"set -e", "vars: {v: x}\nsteps:\n  - {name: a, run: 'cd /; set -e; false'}\nalways:\n  - {name: c, run: echo $v $PWD}\n",
			[]string{"a: failed [script.failed: script: line 3: exit status 1]", `c: ok "x /\n"`, "failed"},
		},
		{
			"set -e in a directory of its own", "steps:\n  - {name: a, run: cd /usr}\n  - {name: b, cwd: bin, run: \"set -e\\nfalse\", retry: {times: 2}}\nalways:\n  - {name: c, cwd: lib, run: pwd}\n  - {name: d, run: pwd}\n",
			[]string{"a: ok", "b: failed in 3 [script.failed: script: line 3: exit status 1]", `c: ok "/usr/lib\n"`, `d: ok "/usr\n"`, "failed"},
		},
		{
			"always ends its shell", "vars: {v: x}\nsteps:\n  - {name: a, run: 'true'}\nalways:\n  - {name: b, run: \"set -e\\nfalse\"}\n  - {name: c, run: exit 0}\n  - {name: d, run: echo $v}\n",
			[]string{"a: ok", "b: failed [script.failed: script: line 5: exit status 1]", "c: ok", `d: ok "x\n"`, "failed"},
		},
		{
			"a directory that is gone", "vars: {v: x}\nsteps:\n  - {name: a, run: 'cd \"$(mktemp -d)\"; rm -rf \"$PWD\"; exit 0'}\n" +
				"always:\n  - {name: b, run: echo b}\n  - {name: c, cwd: /usr, run: 'echo $v $PWD'}\n  - {name: d, cwd: sub, run: echo d}\n",
			[]string{"a: ok", `b: failed [cmd.cwd: script: directory "/`, `c: ok "x /usr\n"`, `d: failed [cmd.cwd: script: directory "/`, "failed"},
		},
		{
			"a directory that is gone before a retry", "steps:\n  - {name: a, run: 'cd \"$(mktemp -d)\"; rm -rf \"$PWD\"; exit 1', retry: {times: 1}, on_fail: continue}\n  - {name: b, run: pwd}\nalways:\n  - {name: c, run: pwd}\n  - {name: d, cwd: '~', run: echo d}\n",
			[]string{"a: failed (ignored) [script.failed: script: line 2: exit status 1; the next attempt could not begin: script: directory \"/", "b: failed [cmd.cwd: ", "c: failed [cmd.cwd: ", `d: ok "d\n"`, "failed"},
		},
		{
			"a directory that another step removes", "steps:\n  - {name: a, run: 'D=$(mktemp -d); cd \"$D\"'}\n  - {name: b, cwd: /usr, run: 'rmdir \"$D\"; pwd'}\n" +
				"  - {name: c, run: pwd, on_fail: continue}\n  - {name: d, cwd: lib, run: pwd, on_fail: continue}\n  - {name: e, cwd: /, run: pwd}\n" +
				"  - {name: f, cwd: /, run: mkdir \"$D\"}\n  - {name: g, run: 'test \"$PWD\" = \"$D\" && rmdir \"$D\"'}\n",
			[]string{"a: ok", `b: ok "/usr\n"`, `c: failed (ignored) [cmd.cwd: script: directory "/`, `d: failed (ignored) [cmd.cwd: script: directory "/`, `e: ok "/\n"`, "f: ok", "g: ok", "ok"},
		},
		{
			"always fails", "steps:\n  - {name: a, run: 'true'}\nalways:\n  - {name: b, run: 'false'}\n  - {name: c, run: echo c}\n",
			[]string{"a: ok", "b: failed [script.failed: script: line 4: exit status 1]", `c: ok "c\n"`, "failed"},
		},
		{
			"answers", "secrets: {p: env:X}\nsteps:\n  - name: a\n    run: |\n      { printf 'Go on? '; read a; printf 'Pass: '; read b; } </dev/tty >/dev/tty; test \"$b\" = hunter2 && echo $a $b\n" +
				"    answer: [{prompt: '^Go on', send: 'yes'}, {prompt: '^Pass: $', send: secret:p}]\n" +
				"  - {name: b, run: \"{ printf 'Else: '; read x; } </dev/tty >/dev/tty\", answer: [{prompt: '^Pass', send: x}]}\n",
			[]string{`a: ok "yes ********\n"`, "b: failed [cmd.needs_input: ", "failed"},
		},
		{
			"a secret is not exported", "secrets: {p: env:X}\nsteps:\n  - {name: a, run: 'env | grep hunter; test ${#p} = 7 && echo $p | base64', keep_going: true}\n  - {name: 'b ${{ p }}', run: 'echo $Q', env: {Q: '${{ p }}'}}\n",
			[]string{`a: ok "********\n"`, `b ********: ok "********\n"`, "ok"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := runner(t, test.text, map[string]string{"p": "hunter2"})
			got := summary(r.Host(t.Context(), "localhost"))
			rest := got
			for _, want := range test.want {
				_, after, ok := strings.Cut("\n"+rest, "\n"+want)
				if !ok {
					t.Fatalf("got\n%s\nwant in it %s", got, want)
				}
				rest = after
			}
		})
	}
}

// Everything that the runner itself types works in every shell.
func TestShells(t *testing.T) {
	const text = `
vars: {v: "a'b\"$c\nd"}
secrets: {p: env:X}
steps:
  - {name: g, run: 'true', when: 'test -f x)', on_fail: continue}
  - {name: h, run: 'true', until: 'test 1 = 1; done', retry: {times: 2}, on_fail: continue}
  - {name: i, run: "cd /usr; R=1; readonly R"}
  - {name: j, cwd: /, env: {A: '1', R: '2', S: '3'}, run: echo j, on_fail: continue}
  - {name: k, run: 'echo "$PWD ${A-none} $R ${S-none}"'}
  - {name: a, run: 'set -eu; set -f; cd /usr; echo "$v"', register: x}
  - {name: b, cwd: bin, env: {A: "x'y"}, when: test "$x" = "$v", run: 'echo "$PWD $A"'}
  - {name: c, run: 'n=0; echo "$PWD ${A-none} $p"'}
  - {name: d, run: n=$((n+1)), until: test $n = 2, retry: {times: 2}}
  - {name: e, run: 'true', when: 'false'}
  - name: f
    run: |
      echo one
      (exit 4)
`
	for _, shell := range []string{"bash", "dash", "zsh", "ksh93", "mksh", "busybox ash", "yash"} {
		t.Run(shell, func(t *testing.T) {
			if program, _, _ := strings.Cut(shell, " "); program != "" {
				if _, err := exec.LookPath(program); err != nil {
					t.Fatalf("%v", err)
				}
			}
			t.Parallel()
			shells.Store(t, shell)
			r := runner(t, text, map[string]string{"p": "hun'ter 2"})
			// What a shell says about its syntax is its own.
			got := regexp.MustCompile("(could not be run).*").ReplaceAllString(summary(r.Host(t.Context(), "localhost")), "$1")
			want := "g: failed (ignored) [script.invalid: script: when: the test could not be run\nh: failed (ignored) [script.invalid: script: until: the test could not be run\n" +
				"i: ok\nj: failed (ignored) [script.invalid: script: the shell (" + strings.TrimSuffix(shell, " ash") + ") refuses the variable R]\nk: ok \"/usr none 1 none\\n\"\n" +
				"a: ok \"a'b\\\"$c\\nd\\n\"\nb: ok \"/usr/bin x'y\\n\"\nc: ok \"/usr none ********\\n\"\nd: ok in 2\ne: skipped (when: false)\n" +
				"f: failed \"one\\n\" [script.failed: script: line 18: exit status 4]\nfailed"
			if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestVariableThatTheShellRefuses(t *testing.T) {
	r := runner(t, "vars: {a: x, BASH_VERSINFO: y}\nsteps: [{run: 'true'}]\n", nil)
	got := r.Host(t.Context(), "localhost")
	if got.Outcome != fleet.NotStarted || !strings.Contains(fmt.Sprint(got.Err), "the shell (bash) refuses the variable BASH_VERSINFO") {
		t.Errorf("got %s, %v", got.Outcome, got.Err)
	}
}

// Who a step finds out is not known when none has run.
func TestCheckLeavesOutRegisteredUsers(t *testing.T) {
	r := runner(t, "steps:\n  - {run: echo x, register: u}\n  - {run: id, sudo: 'no-such-user-${{ u }}'}\n", nil)
	if got := r.Check(t.Context(), "localhost"); got.Outcome != fleet.OK {
		t.Errorf("got %s, %v", got.Outcome, got.Err)
	}
}

// A test that the host's shell can't read is found before any step runs, and nothing
// of it is run. One that an earlier step may make readable is none.
func TestCheckReadsTests(t *testing.T) {
	const odd = "steps:\n  - run: 'true'\n  - name: b\n    KEY: |\n      test 1 = 1\n      done\n    run: 'true'\n    retry: {times: 1}\n"
	for _, shell := range []string{"bash", "dash", "zsh", "ksh93", "mksh", "busybox ash", "yash"} {
		for text, want := range map[string]string{
			strings.Replace(odd, "KEY", "when", 1):                                     "s.yaml:4:11: step b: when: ",
			strings.Replace(odd, "KEY", "until", 1):                                    "s.yaml:4:12: step b: until: ",
			"steps:\n  - {run: 'true', when: '# nothing'}\n":                           "s.yaml:2:25: step true: when: ",
			"steps:\n  - {run: 'true', when: 'true; }; >F; { true'}\n":                 "",
			"steps:\n  - {run: 'true', when: 'true; }; then >F; fi; >F; done'}\n":      "s.yaml:2:25: step true: when: ",
			"steps:\n  - {run: 'true', when: 'nosuchprogram'}\n":                       "",
			"steps:\n  - {run: 'shopt -s extglob', when: 'case b in !(a)) ;; esac'}\n": "",
		} {
			if shell != "bash" && (strings.Contains(text, "extglob") || strings.Contains(text, "# nothing")) {
				continue
			}
			t.Run(shell, func(t *testing.T) {
				shells.Store(t, shell)
				ran := filepath.Join(t.TempDir(), "ran")
				got := runner(t, strings.ReplaceAll(text, ">F", ">"+ran), nil).Check(t.Context(), "localhost")
				if why := fmt.Sprint(got.Err); want == "" && got.Err != nil || !strings.HasPrefix(why, want) || want != "" && gateway.Code(got.Err) != "script.invalid" {
					t.Errorf("%s: got %v, want %s", text, why, want)
				}
				if _, err := os.Stat(ran); err == nil {
					t.Errorf("%s: it ran", text)
				}
			})
		}
	}
}

func TestHostThatIsNotReached(t *testing.T) {
	r := runner(t, "steps: [{name: a, run: 'true'}]\nalways: [{name: b, run: 'true'}]\n", nil)
	got := r.Host(t.Context(), "nope")
	if s := summary(got); s != "a: skipped (the host was not reached)\nb: skipped (the host was not reached)\nnot_started" || gateway.Code(got.Err) != "inventory.unknown_host" {
		t.Errorf("got %s, %v", s, got.Err)
	}
}

// Where the run's end came before anything of the script ran, that is why, and not
// what a layer below makes of it.
func TestEndedBeforeItBegins(t *testing.T) {
	const left = "a: skipped (the host was not reached)\nb: skipped (the host was not reached)\nskipped"
	for _, test := range []struct {
		name         string
		opens, check bool
		want         string
	}{
		{"while connecting", false, false, left},
		{"with the session just open", true, false, left},
		{"while connecting for a check", false, true, "skipped"},
	} {
		t.Run(test.name, func(t *testing.T) {
			why := errors.New("a host failed")
			ctx, cancel := context.WithCancelCause(t.Context())
			r := runner(t, "steps: [{name: a, run: 'true'}]\nalways: [{name: b, run: 'true'}]\n", nil)
			open := r.Open
			r.Open = func(_ context.Context, host string, o gateway.Options) (*gateway.Session, error) {
				cancel(why)
				if test.opens {
					return open(t.Context(), host, o)
				}
				return nil, errors.New("the shell does not answer")
			}
			run := r.Host
			if test.check {
				run = r.Check
			}
			result := run(ctx, "localhost")
			if got := summary(result); got != test.want || result.Err == nil || result.Err.Error() != why.Error() {
				t.Errorf("got %s, %v, want %s, %v", got, result.Err, test.want, why)
			}
		})
	}
}

// The first interrupt ends the step, and what is under always runs.
func TestInterrupt(t *testing.T) {
	r := runner(t, "steps:\n  - {name: a, run: 'x=1; echo begun; sleep 60'}\n  - {name: b, run: 'true'}\nalways:\n  - {name: c, run: 'echo $x'}\n", nil)
	ctx, cancel := context.WithCancel(t.Context())
	r.Observe.Output = func(_ string, _ *script.StepResult, from session.Stream, b []byte) {
		if from == session.Stdout && strings.Contains(string(b), "begun") {
			cancel()
		}
	}
	result := r.Host(ctx, "localhost")
	if result.Duration == 0 || result.Steps[0].Duration == 0 {
		t.Errorf("it took %v, its first step %v", result.Duration, result.Steps[0].Duration)
	}
	got := summary(result)
	want := "a: interrupted \"begun\\n\" [cmd.interrupted: "
	if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "\nb: skipped (interrupted)\nc: ok \"1\\n\"\ninterrupted") {
		t.Errorf("got\n%s\nwant %s", got, want)
	}
}

// Where the interrupt meets no step, the host has the error.
func TestInterruptBetweenSteps(t *testing.T) {
	r := runner(t, "steps:\n  - {name: a, run: 'true'}\n  - {name: b, run: 'true'}\nalways:\n  - {name: c, run: 'true'}\n", nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("told to stop")
	r.Observe.End = func(_ string, s *script.StepResult) {
		if s.Name == "a" {
			cancel(why)
		}
	}
	result := r.Host(ctx, "localhost")
	want := "a: ok\nb: skipped (interrupted)\nc: ok\ninterrupted"
	if got := summary(result); got != want || result.Err == nil || result.Err.Error() != why.Error() {
		t.Errorf("got\n%s, %v, want\n%s, %v", got, result.Err, want, why)
	}
}

// What the interrupted step itself ends the shell for is still cleaned up behind.
func TestInterruptEndsTheShell(t *testing.T) {
	r := runner(t, "vars: {v: x}\nsteps:\n  - {name: a, run: \"trap 'exit 130' INT; echo begun; while :; do sleep 0.05; done\"}\nalways:\n  - {name: b, run: 'echo $v'}\n", nil)
	ctx, cancel := context.WithCancel(t.Context())
	r.Observe.Output = func(_ string, _ *script.StepResult, from session.Stream, b []byte) {
		if from == session.Stdout && strings.Contains(string(b), "begun") {
			cancel()
		}
	}
	got := summary(r.Host(ctx, "localhost"))
	if !strings.HasPrefix(got, "a: interrupted ") || !strings.HasSuffix(got, "\nb: ok \"x\\n\"\ninterrupted") {
		t.Errorf("got\n%s", got)
	}
}

// A session in which the variables could not be set is not used.
func TestNoSessionWithoutItsVariables(t *testing.T) {
	r := runner(t, "vars: {v: x}\nsteps:\n  - {name: a, run: exit 0}\nalways:\n  - {name: b, run: 'echo \"<$v>\"'}\n  - {name: c, run: 'echo \"<$v>\"'}\n", nil)
	open, opened := r.Open, 0
	r.Open = func(ctx context.Context, host string, o gateway.Options) (*gateway.Session, error) {
		s, err := open(ctx, host, o)
		if opened++; err == nil && opened == 2 {
			s.Run(ctx, gateway.Command{Text: "readonly v"})
		}
		return s, err
	}
	got := summary(r.Host(t.Context(), "localhost"))
	want := "a: ok\nb: failed [script.invalid: script: the shell (bash) refuses the variable v]\nc: ok \"<x>\\n\"\nfailed"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A session that can't be opened again is an attempt like others: what a step has
// rebooted takes its time.
func TestRetryWithoutASession(t *testing.T) {
	const (
		dies   = "run: '[ -e F ] && echo b || { : >F; kill -9 $$; }', retry: {times: 3, delay: 1ms}"
		opened = "a: ok\nb: ok in 2 \"b\\n\"\n"
	)
	for _, test := range []struct {
		name, text string
		refused    int
		want       string
	}{
		{"a step", "steps:\n  - {name: a, run: 'true'}\n  - {name: b, " + dies + "}\n", 2, opened + "ok"},
		{"for ever", "steps:\n  - {name: a, run: 'true'}\n  - {name: b, " + dies + "}\n", 99, "a: ok\nb: failed [script.failed: script: line 3: the shell died of signal KILL; the next attempt could not begin: tcp.refused]\nfailed"},
		{"always", "steps:\n  - {name: a, run: 'exit 0'}\nalways:\n  - {name: b, run: echo b, retry: {times: 3, delay: 1ms}}\n", 3, "a: ok\nb: ok \"b\\n\"\nok"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := runner(t, strings.ReplaceAll(test.text, "F", filepath.Join(t.TempDir(), "died")), nil)
			open, opened := r.Open, 0
			r.Open = func(ctx context.Context, host string, o gateway.Options) (*gateway.Session, error) {
				if opened++; opened > 1 && opened <= 1+test.refused {
					return nil, errors.New("tcp.refused")
				}
				return open(ctx, host, o)
			}
			if got := summary(r.Host(t.Context(), "localhost")); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// What could not begin may be tried again.
func TestRetryOfWhatHasNotStarted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := runner(t, "steps:\n  - {name: a, fetch: {src: "+file+", dst: "+file+"/in}, retry: {times: 2}}\n", nil)
	got := r.Host(t.Context(), "localhost")
	if s := got.Steps[0]; s.Outcome != fleet.Failed || s.Verdict != session.NotStarted || s.Attempts != 3 {
		t.Errorf("got %+v, want three attempts that did not begin", s)
	}
}

// What a path is stays so, and no other attempt copies it; a file that is missing may
// come yet.
func TestRetryOfCopies(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.Mkdir(filepath.Join(dir, "dir"), 0o700), os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		step, code string
		attempts   int
	}{
		{"fetch: {src: D/dir, dst: D/got}", "file.is_directory", 1},
		{"fetch: {src: D/fifo, dst: D/got}", "file.special", 1},
		{"copy: {src: D/file, dst: D/file/}", "file.not_directory", 1},
		{"copy: {src: D/file, dst: '${{ x }}'}", "script.invalid", 1},
		{"fetch: {src: D/none, dst: D/got}", "file.not_found", 3},
		{"copy: {src: D/file, dst: D/none/file}", "file.not_found", 3},
	} {
		r := runner(t, "steps:\n  - {run: 'true', register: x}\n  - {"+strings.ReplaceAll(test.step, "D/", dir+"/")+", retry: {times: 2}}\n", nil)
		s := r.Host(t.Context(), "localhost").Steps[1]
		if gateway.Code(s.Err) != test.code || s.Attempts != test.attempts {
			t.Errorf("%s: %d attempts, %s (%v), want %d and %s", test.step, s.Attempts, gateway.Code(s.Err), s.Err, test.attempts, test.code)
		}
	}
}

// Of a host that is given up, or in which gateway panics, all is told once: what
// has ended as it did, and nothing behind the end.
func TestGivenUp(t *testing.T) {
	for _, panics := range []bool{false, true} {
		t.Run(fmt.Sprint("panics: ", panics), func(t *testing.T) {
			r := runner(t, "steps:\n  - {name: a, run: echo a}\n  - {name: b, run: echo begun; sleep 60}\n  - {name: c, run: echo c}\nalways:\n  - {name: d, run: echo d}\n", nil)
			var mu sync.Mutex
			var told []string
			begun := make(chan bool)
			begin := sync.OnceFunc(func() { close(begun) })
			r.Observe.Begin = func(_ string, s *script.StepResult) {
				if s.Name == "b" && panics {
					begin()
					panic("oh")
				}
			}
			r.Observe.Output = func(_ string, s *script.StepResult, _ session.Stream, b []byte) {
				if s.Name == "b" {
					begin()
				}
			}
			r.Observe.End = func(_ string, s *script.StepResult) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, s.Name+" "+string(s.Outcome))
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan bool)
			go func() {
				defer close(ended)
				defer func() { recover() }()
				r.Host(ctx, "localhost")
			}()
			<-begun
			if panics {
				<-ended
			}
			got := r.Failed("localhost", fleet.Unknown, errors.New("given up"))
			cancel()
			<-ended
			const reason = "it is not known whether it ran"
			if s, want := summary(got), "a: ok \"a\\n\"\nb: unknown [internal: given up]\nc: skipped ("+reason+")\nd: skipped ("+reason+")\nunknown"; s != want {
				t.Errorf("got\n%s\nwant\n%s", s, want)
			}
			if got.Err != nil || got.User == "" || got.Steps[1].Verdict != session.Unknown {
				t.Errorf("got %+v", got)
			}
			if want := "a ok, b unknown, c skipped, d skipped"; strings.Join(told, ", ") != want {
				t.Errorf("told %q, want %s", told, want)
			}
		})
	}
}

// A host that has only to close its session when it is given up has its result,
// and nothing is told twice.
func TestGivenUpBehindItsEnd(t *testing.T) {
	closing := filepath.Join(t.TempDir(), "closing")
	r := runner(t, "steps:\n  - {name: a, run: \"trap ': >"+closing+"; sleep 60' EXIT\"}\n  - {name: b, run: echo b}\n", nil)
	told := make(chan string, 10)
	r.Observe.End = func(_ string, s *script.StepResult) { told <- s.Name + " " + string(s.Outcome) }
	ended := make(chan script.Result)
	go func() { ended <- r.Host(t.Context(), "localhost") }()
	for {
		if _, err := os.Stat(closing); err == nil {
			break
		}
		runtime.Gosched()
	}
	got, want := r.Failed("localhost", fleet.Unknown, errors.New("given up")), <-ended
	if summary(got) != summary(want) || got.Outcome != fleet.OK || got.Started != want.Started || got.Err != nil {
		t.Errorf("got\n%s\nwant\n%s", summary(got), summary(want))
	}
	if a, b := <-told, <-told; a != "a ok" || b != "b ok" || len(told) > 0 {
		t.Errorf("told %s, %s, and %d more", a, b, len(told))
	}
}

func TestStartAt(t *testing.T) {
	r := runner(t, "vars: {v: 1}\nsteps:\n  - {name: a, run: 'true', register: x}\n  - {name: 'b ${{ v }}', run: 'echo \"<$x>\"'}\n", nil)
	r.StartAt = "b 1"
	if got := summary(r.Host(t.Context(), "localhost")); got != "a: skipped (--start-at)\nb 1: ok \"<>\\n\"\nok" {
		t.Errorf("got\n%s", got)
	}
}

// The name that a step gets from its shell text says what the shell gets, which is
// not the variable's value; the file that a copy is called after has it.
func TestNameFromShellText(t *testing.T) {
	r := runner(t, "vars: {v: 1}\nsteps:\n  - run: \": '${{ v }}'\"\n  - {copy: {src: 'run_test${{ v }}', dst: x}, when: 'false'}\n", nil)
	want := []string{": '${{ v }}'", "copy run_test1"}
	for i, step := range r.Host(t.Context(), "localhost").Steps {
		if step.Name != want[i] || r.Plan(hosts.Host{Name: "localhost"}, "").Steps[i].Name != want[i] {
			t.Errorf("got %s, want %s", step.Name, want[i])
		}
	}
}

// No sink has a secret in it, however it is written.
func TestNothingShowsASecret(t *testing.T) {
	const secret = "c0rrect horse'\"$"
	text := `
secrets: {p: env:X}
steps:
  - name: a ${{ p }}
    run: |
      printf '%s' "$p"; printf '%s\n' "$p" >&2; printf '%s' "$p" | base64; printf '%s\n' "$p" >/dev/tty
      set -x; : "$p"; set +x
      printf '%q\n' "$p"
      { printf %s "${p%hor*}"; sleep 0.1; printf '%s\n' "${p#"${p%hor*}"}"; }
      cd "/tmp/$p" || echo "no $p" >&2; (exit 3)
    on_fail: continue
  - {name: b, run: 'true', cwd: '/${{ p }}', on_fail: continue}
  - {name: c, run: "{ printf 'For %s: ' \"$p\"; read x; } </dev/tty >/dev/tty", on_fail: continue}
  - {name: d, run: echo x, expect: {stdout: {contains: '${{ p }}'}}, on_fail: continue}
  - {name: e, run: 'echo "$p"', when: 'nosuch "$p"'}
`
	r := runner(t, text, map[string]string{"p": secret})
	var live strings.Builder
	var mu sync.Mutex
	r.Observe.Output = func(_ string, _ *script.StepResult, _ session.Stream, b []byte) {
		mu.Lock()
		defer mu.Unlock()
		live.Write(b)
	}
	result := r.Host(t.Context(), "localhost")
	data, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	for name, sink := range map[string]string{"JSON": string(data), "live": live.String(), "summary": summary(result)} {
		for _, form := range []string{"c0rrect", "horse", "YzBycmVjd", "aG9yc2", "c0rrec"} {
			if i := strings.Index(sink, form); i >= 0 {
				t.Errorf("%s has %q: …%s", name, form, sink[max(0, i-60):min(len(sink), i+60)])
			}
		}
		if strings.Count(sink, redact.Mask) < 5 {
			t.Errorf("%s has hardly a mask: %s", name, sink)
		}
	}
}

// A long stream is cut between characters, and the count of what is left out is
// that of what is not there.
func TestLongOutputStaysText(t *testing.T) {
	r := runner(t, "steps:\n  - {name: a, run: \"printf a; yes ö | head -n 300000 | tr -d '\\\\n'; printf b\"}\n", nil)
	s := r.Host(t.Context(), "localhost").Steps[0]
	half := strings.Repeat("ö", 131071)
	if want := "a" + half + "\n[75716 bytes left out]\n" + half + "b"; s.Err != nil || string(s.Stdout) != want || s.StdoutBytes != 600002 {
		out := string(s.Stdout)
		t.Errorf("%v: %d bytes are %d: %.5q…%q", s.Err, s.StdoutBytes, len(out), out, out[max(0, len(out)-5):])
	}
}

// Quoted in a message, a secret is no form of itself that a mask knows.
// What is no text comes in base64, whatever stream it is on.
func TestBytesThatAreNoText(t *testing.T) {
	r := runner(t, `steps: [{name: a, run: 'printf "x\\377y"; printf "x\\377y" >&2; printf "x\\377y" >/dev/tty'}]`, nil)
	got, err := json.Marshal(r.Host(t.Context(), "localhost").Steps[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"stdout_base64":"eP95"`, `"stderr_base64":"eP95"`, `"terminal_base64":"eP95"`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A step that was left out stays so when the run ends as its directory is put back.
func TestEndedBehindWhen(t *testing.T) {
	dir := t.TempDir()
	back, ended := filepath.Join(dir, "back"), filepath.Join(dir, "ended")
	r := runner(t, "steps:\n  - name: a\n    run: |\n      cd /\n      cd() { command cd \"$@\"; case $PWD in /) : >"+back+"; until [ -e "+ended+" ]; do sleep 0.01; done;; esac; }\n"+
		"  - {name: b, cwd: /usr, run: echo b, when: 'false'}\n", nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // ends with the test at the latest
		for t.Context().Err() == nil {
			if _, err := os.Stat(back); err == nil {
				cancel()
				_ = os.WriteFile(ended, nil, 0o600)
				return
			}
			runtime.Gosched()
		}
	}()
	if got, want := summary(r.Host(ctx, "localhost")), "a: ok\nb: skipped (when: false)\nok"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestMessagesShowNoSecret(t *testing.T) {
	const secret = "eyJh.bGci+x\u00a0\ay"
	text := `
secrets: {p: env:X}
steps:
  - {name: a, run: echo x, expect: {stdout: {matches: '^tok=${{ p }}$'}}, on_fail: continue}
  - {name: b, run: echo x, expect: {stdout: {contains: 'tok=${{ p }}'}}, on_fail: continue}
  - {name: c, run: echo x, expect: {stdout: {equals: 'tok=${{ p }}'}}, on_fail: continue}
  - {name: d, run: 'true', cwd: '/nope/${{ p }}', on_fail: continue}
`
	r := runner(t, text, map[string]string{"p": secret})
	got := summary(r.Host(t.Context(), "localhost"))
	for _, want := range []string{`does not match "^tok=********$"`, `does not contain "tok=********"`, `is not "tok=********"`, `directory "/nope/********" can't be entered`} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant in it %s", got, want)
		}
	}
}

// What reports take out of a text must not put a secret together.
func TestColoursHideNoSecret(t *testing.T) {
	text := `
secrets: {p: env:X}
steps:
  - {name: a, run: 'printf "\\033[31mred\\033[m $p\\n"'}
  - {name: b, run: 'printf "\\033[1mhun\\033[m\\033[Kter2\\n"; printf "hunt\\000er2" >&2'}
`
	r := runner(t, text, map[string]string{"p": "hunter2"})
	got := r.Host(t.Context(), "localhost")
	if s := summary(got); !strings.HasPrefix(s, "a: ok \"\\x1b[31mred\\x1b[m ********\\n\"\nb: ok \"********\\n\"\n") || string(got.Steps[1].Stderr) != "********" {
		t.Errorf("got\n%s, stderr %q", s, got.Steps[1].Stderr)
	}
}

func TestReadSecrets(t *testing.T) {
	t.Setenv("GOOD", "long enough")
	t.Setenv("SHORT", "abc")
	t.Setenv("ENDED", "\nabc\r\n\n") // of which a mask counts three
	for reference, want := range map[string]string{
		"env:GOOD":    "",
		"env:SHORT":   "s.yaml:1:14: secret p: shorter than 4 bytes",
		"env:ENDED":   "s.yaml:1:14: secret p: shorter than 4 bytes",
		"env:MISSING": "s.yaml:1:14: secret p: env:MISSING: the variable is not set",
		"file:nope":   "s.yaml:1:14: secret p: file:" + mustAbs(t, "nope") + ": no such file or directory",
		"cmd:false":   "s.yaml:1:14: secret p: cmd:…: exit status 1",

		`cmd:printf "abcd\000"`: "s.yaml:1:14: secret p: holds a NUL byte, which no shell can read",
	} {
		s, err := script.Parse("s.yaml", []byte("secrets: {p: '"+reference+"'}\nsteps: [{run: a}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		values, err := s.ReadSecrets(t.Context())
		if want == "" {
			if err != nil || values["p"] != "long enough" {
				t.Errorf("%s: %v, %v", reference, values, err)
			}
			continue
		}
		if err == nil || err.Error() != want || gateway.Code(err) != "secret.unreadable" || gateway.Hint(err) == "" && !strings.Contains(want, "NUL") {
			t.Errorf("%s: %v, want %s", reference, err, want)
		}
	}
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}
