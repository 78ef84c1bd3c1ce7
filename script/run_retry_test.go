package script_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/session"
)

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

// Whoever asks for another attempt is told why there was none.
func TestNoRetryAfterTimeout(t *testing.T) {
	for _, test := range []struct {
		more, hint string
		attempts   int
	}{
		{"retry: {times: 1}", "it may have run, and is tried again only with idempotent: true", 1},
		{"retry: {times: 1}, idempotent: true", "", 2},
		{"idempotent: false", "", 1},
	} {
		r := runner(t, "steps: [{run: sleep 60, timeout: 50ms, "+test.more+"}]\n", nil)
		s := r.Host(t.Context(), "localhost").Steps[0]
		if s.Outcome != fleet.TimedOut || s.Attempts != test.attempts || gateway.Hint(s.Err) != test.hint || gateway.Code(s.Err) != "cmd.timeout" {
			t.Errorf("%s: %s in %d, %v, hint %q, want %d and %q", test.more, s.Outcome, s.Attempts, s.Err, gateway.Hint(s.Err), test.attempts, test.hint)
		}
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
