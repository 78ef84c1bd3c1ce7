package script_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/script"
	"gateway/session"
)

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
			if got := summary(result); got != test.want || result.Err == nil || result.Err.Error() != why.Error() || gateway.Code(result.Err) != "cmd.interrupted" {
				t.Errorf("got %s, %v, want %s, %v", got, result.Err, test.want, why)
			}
		})
	}
}

// The first interrupt ends the step, and what is under always runs.
func TestInterrupt(t *testing.T) {
	r := runner(t, "steps:\n  - {name: a, run: 'x=1; echo begun; sleep 60'}\n  - {name: b, run: 'true'}\nalways:\n  - {name: c, run: 'echo $x'}\n", nil)
	ctx, cancel := context.WithCancel(t.Context())
	r.Observe[0].Output = func(_ string, _ *script.StepResult, from session.Stream, b []byte) {
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
	r.Observe[0].End = func(_ string, s *script.StepResult) {
		if s.Name == "a" {
			cancel(why)
		}
	}
	result := r.Host(ctx, "localhost")
	want := "a: ok\nb: skipped (interrupted)\nc: ok\ninterrupted"
	if got := summary(result); got != want || result.Err == nil || result.Err.Error() != why.Error() || gateway.Code(result.Err) != "cmd.interrupted" {
		t.Errorf("got\n%s, %v, want\n%s, %v", got, result.Err, want, why)
	}
}

// What the interrupted step itself ends the shell for is still cleaned up behind.
func TestInterruptEndsTheShell(t *testing.T) {
	r := runner(t, "vars: {v: x}\nsteps:\n  - {name: a, run: \"trap 'exit 130' INT; echo begun; while :; do sleep 0.05; done\"}\nalways:\n  - {name: b, run: 'echo $v'}\n", nil)
	ctx, cancel := context.WithCancel(t.Context())
	r.Observe[0].Output = func(_ string, _ *script.StepResult, from session.Stream, b []byte) {
		if from == session.Stdout && strings.Contains(string(b), "begun") {
			cancel()
		}
	}
	got := summary(r.Host(ctx, "localhost"))
	if !strings.HasPrefix(got, "a: interrupted ") || !strings.HasSuffix(got, "\nb: ok \"x\\n\"\ninterrupted") {
		t.Errorf("got\n%s", got)
	}
}

// What its own timeout has ended is not said to be interrupted, where the run's end comes
// behind it.
func TestInterruptBehindTimeout(t *testing.T) {
	r := runner(t, "steps:\n  - {name: a, timeout: 300ms, run: \"bash -c 'trap \\\"echo late; exit\\\" INT; while :; do sleep 0.05; done'\"}\n", nil)
	ctx, cancel := context.WithCancel(t.Context())
	r.Observe[0].Output = func(string, *script.StepResult, session.Stream, []byte) { cancel() } // it dies of the timeout
	got := summary(r.Host(ctx, "localhost"))
	if !strings.HasPrefix(got, "a: timed_out ") || !strings.HasSuffix(got, "[cmd.timeout: session: command ended after its timeout of 300ms]\ntimed_out") {
		t.Errorf("got\n%s", got)
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
			r.Observe[0].Begin = func(_ string, s *script.StepResult) {
				if s.Name == "b" && panics {
					begin()
					panic("oh")
				}
			}
			r.Observe[0].Output = func(_ string, s *script.StepResult, _ session.Stream, b []byte) {
				if s.Name == "b" {
					begin()
				}
			}
			r.Observe[0].End = func(_ string, s *script.StepResult) {
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
	r.Observe[0].End = func(_ string, s *script.StepResult) { told <- s.Name + " " + string(s.Outcome) }
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

// What is not known of a step under always is not behind the failure that came before it.
func TestUnknownBehindAFailure(t *testing.T) {
	r := runner(t, "steps:\n  - {name: a, run: 'false'}\nalways:\n  - {name: b, run: echo begun; sleep 60}\n", nil)
	g := gateway.New(gateway.Config{})
	r.Open = g.Open
	closed := make(chan bool)
	r.Observe[0].Output = func(string, *script.StepResult, session.Stream, []byte) {
		go func() {
			g.Close()
			close(closed)
		}()
	}
	result := r.Host(t.Context(), "localhost")
	<-closed
	if s := result.FirstFailure(); result.Outcome != fleet.Unknown || s == nil || s.Name != "b" || s.Outcome != fleet.Unknown {
		t.Errorf("got\n%s, and the failure is %+v", summary(result), s)
	}
}
