package script_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"gateway/gateway"
	"gateway/script"
)

// wrong are scripts with one mistake each: what is said about it, and where.
var wrong = []struct {
	name, text, want, hint string
	// loose: a JSON schema can't say it.
	loose bool
}{
	{"empty", "", "s.yaml:1:1: no steps", "steps: [{run: …}]", false},
	{"no steps", "name: x\n", "s.yaml:1:1: no steps", "", false},
	{"empty steps", "steps: []\n", "s.yaml:1:1: no steps", "", true},
	{"not YAML", "steps:\n  - run: [a\n", "s.yaml:2:3: not YAML: ", "indent with blanks, and close brackets and quotes", true},
	{"a tab", "steps:\n\t- run: a\n", "s.yaml:2:2: not YAML: ", "", true},
	{"list", "- run: a\n", "s.yaml:1:1: must be a mapping of keys to values, not a list", "", false},
	{"second document", "steps: [{run: a}]\n---\nsteps: []\n", "s.yaml:2:1: a second document in the file", "", true},
	{"unknown key", "stesp:\n  - run: a\n", `s.yaml:1:1: unknown key "stesp"`, "did you mean steps?", false},
	{"hosts", "hosts: all\nsteps: [{run: a}]\n", `s.yaml:1:1: unknown key "hosts"`, "the hosts are named on the command line: --on SELECTOR", false},
	{"unknown key of a step", "steps:\n  - run: a\n    regsiter: x\n", `s.yaml:3:5: step 1: unknown key "regsiter"`, "did you mean register?", false},
	{"another tool's key", "steps:\n  - run: a\n    become: true\n", `s.yaml:3:5: step 1: unknown key "become"`, "did you mean sudo?", false},
	{"key twice", "steps:\n  - run: a\n    run: b\n", `s.yaml:3:5: step 1: "run" is already at line 2`, "", true},
	{"a list as key", "steps:\n  - run: a\n    ? [name]\n    : x\n", "s.yaml:3:7: step 1: a key must be plain text", "", true},
	{"merge", "steps:\n  - &a {run: a}\n  - {<<: *a, name: x}\n", "s.yaml:3:6: step 2 (x): << is not supported: write the keys out", "", true},
	{"no run", "steps:\n  - name: nothing\n", "s.yaml:2:5: step 1 (nothing): has none of run, copy and fetch", "say what it does: run: TEXT, copy: {src: …, dst: …} or fetch: {src: …, dst: …}", false},
	{"run and copy", "steps:\n  - run: a\n    copy: {src: a, dst: b}\n", "s.yaml:3:5: step 1: run and copy in one step", "make two steps of it", false},
	{"copy and fetch", "steps:\n  - fetch: {src: a, dst: b}\n    copy: {src: a, dst: b}\n", "s.yaml:2:5: step 1: copy and fetch in one step", "make two steps of it", false},
	{"retry as a number", "steps:\n  - {run: a, retry: 3}\n", "s.yaml:2:21: step 1: retry: must be a mapping of keys to values, not text", "its keys are times, delay", false},
	{"copy as text", "steps:\n  - copy: a b\n", "s.yaml:2:11: step 1: copy: must be a mapping of keys to values, not text", "", false},
	{"copy without dst", "steps:\n  - copy: {src: a}\n", "s.yaml:2:11: step 1: copy: has no dst", "copy: {src: PATH, dst: PATH}", false},
	{"fetch without src", "steps:\n  - fetch: {dst: a}\n", "s.yaml:2:12: step 1: fetch: has no src", "fetch: {src: PATH, dst: PATH}", false},
	{"empty src", "steps:\n  - copy: {src: '', dst: a}\n", "s.yaml:2:17: step 1: copy: src: is empty", "leave the key out", false},
	{"undefined in src", "steps:\n  - copy: {src: \"${{ nope }}\", dst: a}\n", "s.yaml:2:17: step 1: copy: src: undefined variable nope", "", true},
	{"another tool's dest", "steps:\n  - copy: {src: a, dest: b}\n", `s.yaml:2:20: step 1: copy: unknown key "dest"`, "did you mean dst?", false},
	{"mode", "steps:\n  - copy: {src: a, dst: b, mode: u+x}\n", `s.yaml:2:34: step 1: copy: mode: "u+x" is no mode such as 0644`, `mode: "0644"`, false},
	{"exclude", "steps:\n  - copy: {src: a, dst: b, exclude: ['[']}\n", `s.yaml:2:38: step 1: copy: exclude: "[" is no pattern`, "", true},
	{"no exclude", "steps:\n  - copy: {src: a, dst: b, exclude: []}\n", "s.yaml:2:37: step 1: copy: exclude: is empty", "leave the key out", false},
	{"copy with register", "steps:\n  - copy: {src: a, dst: b}\n    register: x\n", "s.yaml:3:5: step 1: register does not go with copy", "beside copy there may be name, when, until, retry, idempotent, timeout, on_fail, cwd", false},
	{"copy with sudo", "steps:\n  - copy: {src: a, dst: b}\n    sudo: true\n", "s.yaml:3:5: step 1: sudo does not go with copy", "copy it to where the login may write, and move it in a step with run and sudo", false},
	{"fetch with expect", "steps:\n  - fetch: {src: a, dst: b}\n    expect: {exit: 3}\n", "s.yaml:3:5: step 1: expect does not go with fetch", "", false},
	{"fetch with answer", "steps:\n  - fetch: {src: a, dst: b}\n    answer: [{prompt: x, send: y}]\n", "s.yaml:3:5: step 1: answer does not go with fetch", "", false},
	{"copy with env", "steps:\n  - copy: {src: a, dst: b}\n    env: {A: b}\n", "s.yaml:3:5: step 1: env does not go with copy", "", false},
	{"copy with keep_going", "steps:\n  - copy: {src: a, dst: b}\n    keep_going: true\n", "s.yaml:3:5: step 1: keep_going does not go with copy", "", false},
	{"empty run", "steps:\n  - run: ''\n", "s.yaml:2:10: step 1: run: is empty", "", false},
	{"null run", "steps:\n  - run:\n", "s.yaml:2:9: step 1: run: has no value", `write "" for an empty text`, false},
	{"list as run", "steps:\n  - run: [a, b]\n", "s.yaml:2:10: step 1: run: must be a single value, not a list", "", false},
	{"step without a dash", "steps:\n  run: a\n", "s.yaml:2:3: steps: must be a list, not a mapping", "put - before each item", false},
	{"step as text", "steps:\n  - make\n", "s.yaml:2:5: step 1: must be a mapping of keys to values, not text", "", false},
	{"NUL", "steps:\n  - run: \"a\\0b\"\n", "s.yaml:2:10: step 1: run: holds a NUL byte, which no shell can read", "", true},
	{"name twice", "steps:\n  - {name: a, run: a}\n  - {name: a, run: b}\n", "s.yaml:3:5: step 2 (a): a step at line 2 has the same name", "each name may stand once: --start-at and reports go by it", true},
	{"name twice, in always", "steps:\n  - {name: a, run: a}\nalways:\n  - {name: a, run: b}\n", "s.yaml:4:5: always 1 (a): a step at line 2 has the same name", "", true},
	{"empty name", "steps:\n  - {name: '', run: b}\n", "s.yaml:2:12: step 1: name: is empty", "leave the key out", false},
	{"name of two lines", "steps:\n  - {name: \"a\\nb\", run: b}\n", "s.yaml:2:12: step 1 (a b): name: must be one line", "", false},
	{"duration", "steps:\n  - run: a\n    timeout: soon\n", `s.yaml:3:14: step 1: timeout: "soon" is not a duration`, "90s, 1m30s, or whole seconds", false},
	{"negative duration", "steps:\n  - {run: a, timeout: -3s}\n", `s.yaml:2:23: step 1: timeout: "-3s" is not a duration`, "", false},
	{"no duration", "steps:\n  - {run: a, timeout: 0}\n", "s.yaml:2:23: step 1: timeout: must be more than 0", "leave the key out", true},
	{"exit", "steps:\n  - {run: a, expect: {exit: 256}}\n", `s.yaml:2:29: step 1: expect: exit: "256" is not a whole number within 0–255`, "", false},
	{"exit in a list", "steps:\n  - {run: a, expect: {exit: [0, no]}}\n", `s.yaml:2:33: step 1: expect: exit: "no" is not a whole number within 0–255`, "", false},
	{"no exit", "steps:\n  - {run: a, expect: {exit: []}}\n", "s.yaml:2:29: step 1: expect: exit: is empty", "leave the key out", false},
	{"expectation", "steps:\n  - run: a\n    expect:\n      stdout: {contain: x}\n", `s.yaml:4:16: step 1: expect: stdout: unknown key "contain"`, "did you mean contains?", false},
	{"no expectation", "steps:\n  - run: a\n    expect: {stdout: {}}\n", "s.yaml:3:22: step 1: expect: stdout: needs one of contains, matches, equals", "", true},
	{"empty expectation", "steps:\n  - run: a\n    expect: {stdout: {contains: ''}}\n", "s.yaml:3:33: step 1: expect: stdout: contains: is empty", "leave the key out", true},
	{"pattern", "steps:\n  - run: a\n    expect: {stderr: {matches: '(a'}}\n", `s.yaml:3:32: step 1: expect: stderr: matches: "(a" is not a regular expression: missing closing ): `, "put the pattern in single quotes, and a backslash before what stands for itself", true},
	{"prompt", "steps:\n  - run: a\n    answer: [{prompt: '[sudo', send: x}]\n", `s.yaml:3:23: step 1: answer: prompt: "[sudo" is not a regular expression: missing closing ]: `, "", true},
	{"answer without prompt", "steps:\n  - run: a\n    answer: [{send: x}]\n", "s.yaml:3:14: step 1: answer: has no prompt", "an answer is {prompt: PATTERN, send: TEXT}", false},
	{"answer without text", "steps:\n  - run: a\n    answer: [{prompt: x}]\n", "s.yaml:3:14: step 1: answer: has no send", "", false},
	{"answer of two lines", "steps:\n  - run: a\n    answer: [{prompt: x, send: \"a\\n\"}]\n", "s.yaml:3:32: step 1: answer: send: must be one line", "the newline at its end is added", true},
	{"answer as mapping", "steps:\n  - run: a\n    answer: {prompt: x, send: y}\n", "s.yaml:3:13: step 1: answer: must be a list, not a mapping", "put - before each item", false},
	{"unknown secret", "secrets: {token: env:T}\nsteps:\n  - run: a\n    answer: [{prompt: x, send: secret:tokne}]\n", `s.yaml:4:32: step 1: answer: send: no secret named "tokne"`, "did you mean token?", true},
	{"secret itself", "secrets:\n  token: hunter2hunter2\nsteps: [{run: a}]\n", "s.yaml:2:10: secrets: token must be a reference, never the secret itself", "write env:NAME, file:PATH or cmd:COMMAND", false},
	{"secret as list", "secrets:\n  token: [hunter2]\nsteps: [{run: a}]\n", "s.yaml:2:10: secrets: token must be a reference", "write env:NAME, file:PATH or cmd:COMMAND", false},
	{"secret's name", "secrets: {a-b: env:T}\nsteps: [{run: a}]\n", `s.yaml:1:11: secrets: "a-b" is not a variable's name`, "letters, digits and _, not a digit first", false},
	{"variable's name", "vars: {1a: x}\nsteps: [{run: a}]\n", `s.yaml:1:8: vars: "1a" is not a variable's name`, "", false},
	{"name of the shell's own", "vars: {PATH: x}\nsteps: [{run: a}]\n", "s.yaml:1:8: vars: PATH has a meaning of its own", "choose another name", true},
	{"variable and secret", "vars: {a: x}\nsecrets: {a: env:X}\nsteps: [{run: a}]\n", "s.yaml:2:11: secrets: a is already declared at line 1", "", true},
	{"variable as list", "vars: {a: [x]}\nsteps: [{run: a}]\n", "s.yaml:1:11: vars: must be a single value, not a list", "", false},
	{"register a variable", "vars: {a: x}\nsteps: [{run: a, register: a}]\n", "s.yaml:2:28: step 1: register: a is already declared at line 1", "", true},
	{"register's name", "steps: [{run: a, register: a.b}]\n", `s.yaml:1:28: step 1: register: "a.b" is not a variable's name`, "", false},
	{"undefined variable", "vars: {version: x}\nsteps:\n  - run: a\n    cwd: /srv/${{ verison }}\n", "s.yaml:4:10: step 1: cwd: undefined variable verison", "did you mean version?", true},
	{"undefined in env", "steps:\n  - run: a\n    env:\n      A: ${{ nope }}\n", "s.yaml:4:10: step 1: env: undefined variable nope", "declare it under vars, or register it in an earlier step", true},
	{"undefined in a variable", "vars:\n  a: ${{ b }}\n  b: x\nsteps: [{run: a}]\n", "s.yaml:2:6: vars: undefined variable b", "", true},
	{"registered later", "steps:\n  - {run: a, cwd: \"${{ x }}\"}\n  - {run: a, register: x}\n", "s.yaml:2:19: step 1: cwd: variable x is set by the step at line 3, after this one", "", true},
	{"not a variable", "steps:\n  - run: a\n    cwd: ${{ a.b }}\n", "s.yaml:3:10: step 1: cwd: ${{ without a variable's name and }}", "write ${{ NAME }}", true},
	{"on_fail", "steps: [{run: a, on_fail: abrot}]\n", `s.yaml:1:27: step 1: on_fail: "abrot" is neither abort nor continue`, "did you mean abort?", false},
	{"links", "steps: [{copy: {src: a, dst: b, links: folow}}]\n", `s.yaml:1:40: step 1: copy: links: "folow" is none of keep, follow and skip`, "did you mean follow?", false},
	{"boolean", "steps: [{run: a, keep_going: yes}]\n", `s.yaml:1:30: step 1: keep_going: "yes" is neither true nor false`, "", false},
	{"sudo", "steps: [{run: a, sudo: 'a b'}]\n", `s.yaml:1:24: step 1: sudo: "a b" is not a user's name`, "true, or a user's name", true},
	{"base64", "vars: {a: !!binary aGVsbG8=}\nsteps: [{run: a}]\n", `s.yaml:1:11: vars: must be a single value, not something tagged "!!binary"`, "", true},
	{"sudo as YAML 1.1 has it", "steps: [{run: a, sudo: Yes}, {run: a, sudo: 'on'}]\n", `s.yaml:1:24: step 1: sudo: "Yes" is not a user's name`, "true, or a user's name", true},
	{"when as YAML 1.1 has it", "steps: [{run: a, when: yes}, {run: a, when: 'yes'}]\n", `s.yaml:1:24: step 1: when: "yes" is neither true nor false`, "true, false, or a command such as test -e FILE", true},
	{"until that no shell has", "steps: [{run: a, until: True, retry: {times: 1}}, {run: a, when: false}]\n", `s.yaml:1:25: step 1: until: "True" is neither true nor false`, "", true},
	{"retry", "steps: [{run: a, retry: {times: 0}}]\n", `s.yaml:1:33: step 1: retry: times: "0" is not a whole number within 1–1000`, "", false},
	{"retry without times", "steps: [{run: a, retry: {delay: 1s}}]\n", "s.yaml:1:9: step 1: retry has no times", "", false},
	{"until without retry", "steps: [{run: a, until: b}]\n", "s.yaml:1:9: step 1: until needs retry, which says how often", "retry: {times: 30, delay: 2s}", false},
	{"env's name", "steps: [{run: a, env: {a-b: x}}]\n", `s.yaml:1:24: step 1: env: "a-b" is not a variable's name`, "", false},
}

func TestWrong(t *testing.T) {
	for _, test := range wrong {
		t.Run(test.name, func(t *testing.T) {
			_, err := script.Parse("s.yaml", []byte(test.text))
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Fatalf("Parse = %v, want %s", err, test.want)
			}
			if hint := gateway.Hint(err); test.hint != "" && hint != test.hint {
				t.Errorf("hint %q, want %q", hint, test.hint)
			}
			if code := gateway.Code(err); code != "script.invalid" {
				t.Errorf("code %s", code)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the secret is in %v", err)
			}
		})
	}
}

func TestSeveralMistakes(t *testing.T) {
	_, err := script.Parse("s.yaml", []byte("nmae: x\nsteps:\n  - {run: a, timeout: x}\n  - {name: b}\n"))
	want := "s.yaml:1:1: unknown key \"nmae\": did you mean name?\n" +
		"s.yaml:3:23: step 1: timeout: \"x\" is not a duration: 90s, 1m30s, or whole seconds\n" +
		"s.yaml:4:5: step 2 (b): has none of run, copy and fetch: say what it does: run: TEXT, copy: {src: …, dst: …} or fetch: {src: …, dst: …}"
	if err == nil || err.Error() != want {
		t.Errorf("Parse = %v, want\n%s", err, want)
	}
	_, err = script.Parse("s.yaml", []byte("steps:\n"+strings.Repeat("  - {name: a}\n", 30)))
	if err == nil || !strings.Contains(err.Error(), "\nand ") {
		t.Errorf("Parse = %v, want a count of the rest", err)
	}
}

func TestAliasesAreBounded(t *testing.T) {
	text := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		text += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+",", 9) + "*" + string(c-1) + "]\n"
	}
	if _, err := script.Parse("s.yaml", []byte("steps: [{run: a}]\nvars:\n  v: x\n"+text)); err == nil {
		t.Error("Parse = nil")
	}
	many := "steps:\n  - &s {run: a, env: {A: b}}\n" + strings.Repeat("  - *s\n", 1<<16)
	if _, err := script.Parse("s.yaml", []byte(many)); err == nil || !strings.Contains(err.Error(), "aliases make the file too large") {
		t.Errorf("Parse = %.300v, want too large", err)
	}
	steps := "steps:\n  - &s {run: a}\n" + strings.Repeat("  - *s\n", 3)
	if s, err := script.Parse("s.yaml", []byte(steps)); err != nil || len(s.Steps) != 4 {
		t.Errorf("Parse = %v, want four steps", err)
	}
}

func TestParse(t *testing.T) {
	s, err := script.Load("../script.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Warnings) > 0 {
		t.Errorf("warnings %q", s.Warnings)
	}
	if len(s.Steps) != 8 || len(s.Always) != 2 || s.Name != "deploy" || !s.Vars[0].Wanted || s.Vars[1].Value != "/srv/app" {
		t.Fatalf("got %+v", s)
	}
	first, fetch, conf, migrate := s.Steps[0], s.Steps[2], s.Steps[3], s.Steps[4]
	if first.Line != 17 || first.LineOf(1) != 19 || first.LineOf(2) != 20 {
		t.Errorf("step at %d, its lines at %d and %d, want 17, 19, 20", first.Line, first.LineOf(1), first.LineOf(2))
	}
	if fetch.Retry != (script.Retry{Times: 3, Delay: 5 * time.Second}) || fetch.Timeout != 2*time.Minute || !fetch.Idempotent || fetch.Name != "fetch ${{ version }}" {
		t.Errorf("got %+v", fetch)
	}
	if !reflect.DeepEqual(migrate.Expect.Exit, []int{0, 3}) || migrate.Answers[0].Text != "yes" || !migrate.Answers[0].Prompt.MatchString("Type yes to go on: ") {
		t.Errorf("got %+v", migrate)
	}
	if c := conf.Copy; c.Fetch || c.Src != "deploy/app.conf" || c.Dst != "${{ app }}/app.conf" || *c.Mode != 0o640 || !s.Always[0].Copy.Fetch {
		t.Errorf("got %+v", c)
	}
	if a := s.Steps[6].Answers[0]; a.Secret != "sudo_password" || !s.Steps[5].Sudo.On || !s.Steps[1].Continue {
		t.Errorf("got %+v", s.Steps)
	}
	home, _ := os.UserHomeDir()
	if want := "file:" + filepath.Join(home, ".secrets/sudo"); s.Secrets[1].Reference != want {
		t.Errorf("reference %s, want %s", s.Secrets[1].Reference, want)
	}
}

func TestLinesOfFoldedText(t *testing.T) {
	s, err := script.Parse("dir/s.yaml", []byte("secrets: {a: file:b}\nsteps:\n  - run: >\n      a\n      b\n  - run: a; b\n  - run: |2\n\n       a\n      b\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := []int{s.Steps[0].LineOf(2), s.Steps[1].LineOf(1), s.Steps[2].LineOf(3)}; !reflect.DeepEqual(got, []int{3, 6, 10}) {
		t.Errorf("lines %v, want 3, 6, 10", got)
	}
	if r := s.Secrets[0].Reference; !strings.HasSuffix(r, "/dir/b") || !strings.HasPrefix(r, "file:/") {
		t.Errorf("reference %s, want one beside the script", r)
	}
}

func TestVariableInShellText(t *testing.T) {
	s, err := script.Parse("s.yaml", []byte("vars: {v: x}\nsteps:\n  - run: echo ${{ v }} ${{ other }}\n"))
	want := `s.yaml:3:10: step 1: run: ${{ v }} in shell text is not expanded: variables are the shell's own, write "$v"`
	if err != nil || len(s.Warnings) != 1 || s.Warnings[0] != want {
		t.Errorf("got %q, %v, want %s", s.Warnings, err, want)
	}
}

// The host's name is no variable of the shell: the advice is another one.
func TestHostInShellText(t *testing.T) {
	s, err := script.Parse("s.yaml", []byte("steps:\n  - run: echo ${{ host }}\n"))
	want := `s.yaml:2:10: step 1: run: ${{ host }} in shell text is not expanded: declare a variable with that value under vars`
	if err != nil || len(s.Warnings) != 1 || s.Warnings[0] != want {
		t.Errorf("got %q, %v, want %s", s.Warnings, err, want)
	}
}

func TestGiven(t *testing.T) {
	s, err := script.Parse("s.yaml", []byte("vars:\n  version:\n  app: x\nsteps: [{run: a}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		given      map[string]string
		want, hint string
	}{
		{map[string]string{"version": "1"}, "", ""},
		{nil, "s.yaml:2:3: variable version has no value", "give it one: --var version=VALUE"},
		{map[string]string{"vresion": "1"}, "s.yaml: --var vresion: the script declares no such variable", "did you mean version?"},
		{map[string]string{"version": "1", "ap": ""}, "s.yaml: --var ap: the script declares no such variable", "did you mean app?"},
		{map[string]string{"version": "1", "unlike": ""}, "s.yaml: --var unlike: the script declares no such variable", "its vars: version, app"},
	} {
		err := s.Given(test.given)
		if err == nil && test.want != "" || err != nil && err.Error() != test.want || gateway.Hint(err) != test.hint {
			t.Errorf("Given(%v) = %v, %q, want %s, %q", test.given, err, gateway.Hint(err), test.want, test.hint)
		}
	}
}

func TestWhatIsMissingIsToldAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.yaml")
	s, err := script.Parse(file, []byte("vars: {a: , b: , c: }\nsteps:\n  - copy: {src: nope, dst: x}\n  - copy: {src: no, dst: x}\n  - fetch: {src: x, dst: x}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for want, given := range map[string]map[string]string{
		file + ": --var d: the script declares no such variable: did you mean a, b or c?\n" +
			file + ": --var e: the script declares no such variable: did you mean a, b or c?": {"d": "", "e": ""},
		file + ":1:8: variable a has no value: give it one: --var a=VALUE\n" +
			file + ":1:13: variable b has no value: give it one: --var b=VALUE": {"c": ""},
	} {
		if err := s.Given(given); err == nil || err.Error() != want {
			t.Errorf("Given(%v) = %v, want\n%s", given, err, want)
		}
	}
	r := &script.Runner{Script: s}
	want := file + ":3:17: step copy nope: copy: src: " + filepath.Dir(file) + "/nope: no such file or directory: a relative path begins where the script is\n" +
		file + ":4:17: step copy no: copy: src: " + filepath.Dir(file) + "/no: no such file or directory: a relative path begins where the script is"
	if err := r.CheckCopies([]string{"one", "two", "three"}); err == nil || err.Error() != want {
		t.Errorf("CheckCopies = %v, want\n%s", err, want)
	}
}

// Some lines can say what no memory holds.
func TestVariablesAreBounded(t *testing.T) {
	text := "vars:\n  a: '1234567890'\n"
	for c := 'b'; c <= 'z'; c++ {
		text += fmt.Sprintf("  %c: ${{ %c }}${{ %c }}\n", c, c-1, c-1)
	}
	s, err := script.Parse("s.yaml", []byte(text+"steps: [{run: a}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Given(nil); err == nil || err.Error() != "s.yaml:20:3: with variable s, the values of all are larger than 4 MiB" {
		t.Errorf("Given = %v, want too large", err)
	}
	if err := s.Given(map[string]string{"s": ""}); err != nil {
		t.Errorf("Given = %v, want none with a value that stands for nothing", err)
	}
}

func TestLoadSaysWhy(t *testing.T) {
	_, err := script.Load("nope.yaml")
	var wrong *script.Error
	if !errors.As(err, &wrong) || err.Error() != "nope.yaml: no such file or directory" {
		t.Errorf("Load = %v", err)
	}
}

func FuzzParse(f *testing.F) {
	example, err := os.ReadFile("../script.example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	for _, test := range wrong {
		f.Add([]byte(test.text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := script.Parse("s.yaml", data)
		if err != nil {
			if !strings.Contains(err.Error(), "s.yaml:") {
				t.Errorf("no place in %v", err)
			}
			return
		}
		for _, step := range s.Steps {
			if (step.Run == "") == (step.Copy == nil) || step.Name == "" || step.Line == 0 || step.Copy == nil && step.LineOf(1) == 0 {
				t.Errorf("got %+v", step)
			}
		}
	})
}

// The schema accepts what the parser accepts, and refuses what it refuses,
// except for what a schema can't say.
func TestSchema(t *testing.T) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(script.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(text string) error {
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			return err
		}
		return resolved.Validate(value)
	}
	examples, err := filepath.Glob("../*script*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatal("no examples", err)
	}
	for _, file := range examples {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(string(text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, text := range []string{
		"steps: [{run: a, timeout: 90, retry: {times: 3, delay: 1.5s}, sudo: true}]",
		"steps: [{run: 1, timeout: 1m30s, sudo: postgres, expect: {exit: [0, 1], stdout: {equals: ''}}}]",
		"steps: [{copy: {src: a, dst: b/, recursive: true, mode: \"0644\", preserve: true, links: follow, exclude: [.git, '*.o'], checksum: true, resume: true}, when: a, cwd: /}]",
		"steps: [{name: b, fetch: {src: a, dst: b, mode: 644}, until: a, retry: {times: 3}, idempotent: true, timeout: 3s, on_fail: continue}]",
		"vars: {a: 1, b: true, c: }\nsteps: [{run: a}]",
	} {
		if err := check(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := script.Parse("s.yaml", []byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, test := range wrong {
		if err := check(test.text); err == nil && !test.loose {
			t.Errorf("%s: the schema accepts it", test.name)
		}
	}
}
