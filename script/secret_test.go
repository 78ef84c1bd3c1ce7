package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gateway/gateway"
	"gateway/internal/redact"
	"gateway/script"
	"gateway/session"
)

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
	r.Observe[0].Output = func(_ string, _ *script.StepResult, _ session.Stream, b []byte) {
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

// Quoted in a message, a secret is no form of itself that a mask knows.
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

// Whoever gives up is told that, and not that a secret can't be read.
func TestReadSecretsGivenUp(t *testing.T) {
	s, err := script.Parse("s.yaml", []byte("secrets: {p: 'cmd:sleep 60'}\nsteps: [{run: a}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.ReadSecrets(ctx); gateway.Code(err) != "cmd.interrupted" || !errors.Is(err, context.Canceled) {
		t.Errorf("%v (%s), want %v", err, gateway.Code(err), context.Canceled)
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
