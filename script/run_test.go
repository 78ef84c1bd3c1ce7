package script_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/hosts"
	"gateway/script"
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
	r := &script.Runner{Script: s, Secrets: secrets, Observe: make([]script.Observer, 1), Open: func(ctx context.Context, host string, o gateway.Options) (*gateway.Session, error) {
		o.Shell = shellOf(t)
		return g.Open(ctx, host, o)
	}}
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
			"under set -x", "steps:\n  - {name: a, run: 'set -x'}\n  - {name: b, run: echo b, cwd: /nope, on_fail: continue}\n  - {name: c, run: echo c, when: nosuchprogram}\n",
			[]string{
				"a: ok", `b: failed (ignored) [cmd.cwd: script: directory "/nope" can't be entered on the machine: bash: cd: /nope: `,
				"c: failed [script.invalid: script: when: the test could not be run: status 127: bash: nosuchprogram: ", "failed",
			},
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
				"  - {name: b, run: 'true', until: sleep 60, timeout: 1s, retry: {times: 3}, on_fail: continue}\n" +
				"  - {name: c, run: 'n=$((n+1))', until: 'test $n = 2 || sleep 60', timeout: 1s, idempotent: true, retry: {times: 3}}\n",
			[]string{
				"a: timed_out (ignored) [cmd.timeout: script: when: session: command ended after its timeout of 100ms]",
				"b: timed_out (ignored) [cmd.timeout: script: until: session: command ended after its timeout of 1s]", "c: ok in 2", "ok",
			},
		},
		{
			"retry", "steps:\n  - {name: a, run: 'n=$((n+1)); test $n = 2', retry: {times: 2}}\n  - {name: b, run: 'n=$((n+1)); sleep 60', timeout: 1s, retry: {times: 3}, on_fail: continue}\n" +
				"  - {name: c, run: 'n=$((n+1)); test $n = 5 || sleep 60', timeout: 1s, idempotent: true, retry: {times: 3}}\n  - {name: d, run: 'echo $n'}\n",
			[]string{"a: ok in 2", "b: timed_out (ignored) [cmd.timeout: session: command ended after its timeout of 1s]", "c: ok in 2", `d: ok "5\n"`, "ok"},
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
				"  - {name: b, run: \"{ printf 'Else: '; read x; } </dev/tty >/dev/tty\", answer: [{prompt: '^Pass', send: x}], on_fail: continue}\n" +
				"  - {name: c, run: \"{ printf 'Pass: '; read x; printf 'Pass: '; read x; } </dev/tty >/dev/tty\", answer: [{prompt: '^Pass', send: secret:p}], on_fail: continue}\n" +
				"  - {name: d, run: \"{ printf 'Pass: '; read x; } </dev/tty >/dev/tty\"}\n",
			[]string{
				`a: ok "yes ********\n"`,
				`b: failed (ignored) [cmd.needs_input: session: command waits for input at "Else: ": no answer of the step fits]`,
				`c: failed (ignored) [cmd.needs_input: session: command waits for input at "Pass: ": secret:p was typed once, and the same is asked again: it is wrong, or another program asks]`,
				`d: failed [cmd.needs_input: session: command waits for input at "Pass: ": nobody to ask]`, "failed",
			},
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
