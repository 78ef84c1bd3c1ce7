package fleet_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// task makes a task whose results are words.
func task(run func(ctx context.Context, host int) string) fleet.Task[string] {
	return fleet.Task[string]{
		Run: run,
		Outcome: func(r string) fleet.Outcome {
			if r == "ok" {
				return fleet.OK
			}
			return fleet.Failed
		},
		Without: func(_ int, outcome fleet.Outcome, _ error) string { return string(outcome) },
	}
}

func TestForks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		start := time.Now()
		results, err := fleet.Run(t.Context(), 100, fleet.Plan{Forks: 7}, task(func(context.Context, int) string {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second)
			running.Add(-1)
			return "ok"
		}))
		if err != nil || len(results) != 100 || most.Load() != 7 || time.Since(start) != 15*time.Second {
			t.Errorf("%v: %d results, %d at once in %v, want 100, 7 in 15s", err, len(results), most.Load(), time.Since(start))
		}
	})
}

func TestThresholds(t *testing.T) {
	amount := func(s string) *fleet.Amount {
		a, err := fleet.ParseAmount(s)
		if err != nil {
			t.Fatal(err)
		}
		return &a
	}
	// Each host takes as many seconds as its letter stands in the row; f fails, p
	// panics.
	tests := []struct {
		name    string
		plan    fleet.Plan
		hosts   string
		want    string // i: interrupted, s: skipped
		stopped bool
	}{
		{"failures are nobody else's business", fleet.Plan{}, "fofofpo", "fofofpo", false},
		{"one at a time, none may fail", fleet.Plan{Forks: 1, MaxFail: amount("0")}, "oofooo", "oofsss", true},
		{"two may fail", fleet.Plan{Forks: 1, MaxFail: amount("2")}, "ffofoo", "ffofss", true},
		{"as many as may", fleet.Plan{Forks: 1, MaxFail: amount("2")}, "ffoooo", "ffoooo", false},
		{"half may fail", fleet.Plan{Forks: 1, MaxFail: amount("50%")}, "ffffoo", "ffffss", true},
		{"those that run go on", fleet.Plan{Forks: 3, MaxFail: amount("0")}, "foooooo", "foossss", true},
		{"fail fast", fleet.Plan{Forks: 3, FailFast: true}, "ofoooooo", "ofiissss", true},
		{"fail fast on the last", fleet.Plan{Forks: 1, FailFast: true}, "oof", "oof", false},
		{"a panic is a failure", fleet.Plan{Forks: 1, FailFast: true}, "opo", "ops", true},
		{"batches", fleet.Plan{Batches: batches(t, "1,2,rest"), MaxFail: amount("0")}, "oofoo", "oofss", true},
		{"the first of a batch", fleet.Plan{Batches: batches(t, "1,rest"), FailFast: true}, "fooo", "fsss", true},
		{"batches of none", fleet.Plan{Batches: fleet.Batches{{}}, FailFast: true}, "ofo", "ofs", true},
		{"batches of less", fleet.Plan{Batches: fleet.Batches{{N: -1}}}, "ofo", "ofo", false},
		{"no hosts", fleet.Plan{}, "", "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				do := task(func(ctx context.Context, host int) string {
					select {
					case <-time.After(time.Duration(host+1) * time.Second):
					case <-ctx.Done():
						return "i"
					}
					switch test.hosts[host] {
					case 'p':
						panic("of one host")
					case 'f':
						return "f"
					}
					return "ok"
				})
				var done []int
				do.Done = func(host int, r string) string {
					done = append(done, host)
					return r
				}
				results, err := fleet.Run(t.Context(), len(test.hosts), test.plan, do)
				got := ""
				for _, r := range results {
					got += map[string]string{"ok": "o", "f": "f", "i": "i", "skipped": "s", "unknown": "p"}[r]
				}
				if got != test.want || errors.Is(err, fleet.ErrStopped) != test.stopped {
					t.Errorf("got %s, %v; want %s, stopped %v", got, err, test.want, test.stopped)
				}
				if slices.Sort(done); len(done) != len(test.hosts) || len(slices.Compact(done)) != len(test.hosts) {
					t.Errorf("Done was called for %v", done)
				}
			})
		})
	}
}

func batches(t *testing.T, s string) fleet.Batches {
	t.Helper()
	b, err := fleet.ParseBatches(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A batch begins when the one before is over.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		begun := map[time.Duration]int{}
		_, err := fleet.Run(t.Context(), 45, fleet.Plan{Batches: batches(t, "1,10%,rest")}, task(func(_ context.Context, host int) string {
			mu.Lock()
			begun[time.Since(start)]++
			mu.Unlock()
			time.Sleep(time.Second)
			return "ok"
		}))
		if err != nil || begun[0] != 1 || begun[time.Second] != 5 || begun[2*time.Second] != 20 || begun[3*time.Second] != 19 {
			t.Errorf("%v: begun %v, want 1, 5, 20 and 19", err, begun)
		}
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("a signal")
		results, err := fleet.Run(ctx, 10, fleet.Plan{Forks: 2}, task(func(ctx context.Context, host int) string {
			if host == 3 {
				cancel(cause)
			}
			select {
			case <-time.After(time.Duration(host) * time.Second):
				return "ok"
			case <-ctx.Done():
				return "partial"
			}
		}))
		if want := []string{"ok", "ok", "partial", "partial", "skipped"}; !errors.Is(err, cause) || gateway.Code(err) != "cmd.interrupted" || !slices.Equal(results[:5], want) {
			t.Errorf("got %v, %v, want %v, %v", results, err, want, cause)
		}
	})
}

// What does not end is given up; what has ended, or was never begun, is known.
func TestGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		giveUp, late := make(chan struct{}), make(chan struct{})
		time.AfterFunc(time.Minute, func() { cancel(errors.New("a signal")) })
		time.AfterFunc(2*time.Minute, func() { close(giveUp) })
		results, err := fleet.Run(ctx, 4, fleet.Plan{Forks: 3, GiveUp: giveUp}, task(func(ctx context.Context, host int) string {
			switch host {
			case 0:
				return "ok"
			case 1:
				<-ctx.Done()
				return "partial"
			}
			<-late
			return "too late"
		}))
		if want := []string{"ok", "partial", "unknown", "unknown"}; err == nil || !slices.Equal(results, want) {
			t.Errorf("got %v, %v, want %v", results, err, want)
		}
		close(late)
	})
}

func TestParse(t *testing.T) {
	for _, s := range []string{"", "-1", "+1", "x", "101%", "%", "1.5", "99999999999999999999"} {
		if a, err := fleet.ParseAmount(s); err == nil || gateway.Code(err) != "usage" {
			t.Errorf("ParseAmount(%q) = %v, %v, want usage", s, a, err)
		}
	}
	for _, s := range []string{"", "0", "1,,2", "1,0%", "rest,x", "1,rest,1", "100%, rest"} {
		if b, err := fleet.ParseBatches(s); err == nil || gateway.Code(err) != "usage" {
			t.Errorf("ParseBatches(%q) = %v, %v, want usage", s, b, err)
		}
	}
}

func TestExec(t *testing.T) {
	names := []string{"a", "b", "c"}
	results, err := fleet.Run(t.Context(), len(names), fleet.Plan{Forks: 1, FailFast: true}, fleet.Exec(names, "true", func(_ context.Context, host int) gateway.Result {
		if host == 1 {
			panic("engine")
		}
		return gateway.Result{Host: "a", Result: session.Result{Verdict: session.Exited}}
	}))
	if !errors.Is(err, fleet.ErrStopped) {
		t.Errorf("Results = %v, want stopped", err)
	}
	want := []fleet.Outcome{fleet.OK, fleet.Unknown, fleet.Skipped}
	for i, r := range results {
		if got := fleet.OutcomeOf(r); got != want[i] || r.Host != names[i] {
			t.Errorf("%s: %s, want %s", r.Host, got, want[i])
		}
	}
	if code := gateway.Code(results[1].Err); code != "internal" {
		t.Errorf("a panic is %s, want internal", code)
	}
	if err := results[2].Err; gateway.Code(err) != "cmd.interrupted" || !strings.Contains(err.Error(), "not tried: fleet: stopped: a host failed") {
		t.Errorf("skipped: %v", err)
	}
}

// What had not begun on a host when the run was ended is skipped there, whatever
// its layers say.
func TestEndedWhileConnecting(t *testing.T) {
	connecting := make(chan struct{})
	results, err := fleet.Run(t.Context(), 2, fleet.Plan{FailFast: true}, fleet.Exec([]string{"a", "b"}, "true", func(ctx context.Context, host int) gateway.Result {
		if host == 0 {
			<-connecting
			return gateway.Result{Result: session.Result{Verdict: session.Exited, ExitCode: 1}}
		}
		close(connecting)
		<-ctx.Done()
		return gateway.Result{Result: session.Result{Verdict: session.NotStarted}, Err: errors.New("no prompt from the shell")}
	}))
	if got := fleet.OutcomeOf(results[1]); got != fleet.Skipped || !errors.Is(err, fleet.ErrStopped) || gateway.Code(results[1].Err) != "cmd.interrupted" {
		t.Errorf("%s (%v), %v; want skipped", got, results[1].Err, err)
	}
}
