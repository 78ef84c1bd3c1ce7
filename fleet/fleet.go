// Package fleet does something on many hosts: a few at a time, in order, and no
// further than it is asked to when hosts fail. What happens on one host is none
// of another's business, unless a threshold makes it so.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"gateway/transport"
)

// A Task is what is done on each host, which it knows by its place in the list.
type Task[R any] struct {
	// Run does it. A failure is part of what it returns.
	Run func(ctx context.Context, host int) R
	// Outcome says in one word how it went. All but [OK] count as failures.
	Outcome func(R) Outcome
	// Without returns the result of a host of which Run gives none: [Skipped] if it
	// was never tried, [Unknown] if Run has panicked there, or was given up.
	Without func(host int, outcome Outcome, why error) R
	// Done is called with each result as soon as it is there, one call at a time,
	// and returns what is kept of it. It may be nil.
	Done func(host int, r R) R
}

// ErrStopped is what the error of a run matches that a threshold has ended.
var ErrStopped = errors.New("stopped")

// Run does a task on hosts, which are begun in their order, and returns their
// results in it. It waits for all that it has begun, unless it is to give up.
//
// The error is nil if all were tried: a failure on a host is no error. It wraps
// [ErrStopped] if a threshold kept hosts from being tried or ended them, and the
// context's cause if its end did so. Where nothing was kept from happening, it
// is nil all the same.
func Run[R any](ctx context.Context, hosts int, plan Plan, task Task[R]) ([]R, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run[R]{plan: plan, task: task, results: make([]R, hosts), cancel: cancel}
	forks := plan.Forks
	if forks <= 0 {
		forks = DefaultForks
	}
	for _, end := range plan.Batches.ends(hosts) {
		var workers sync.WaitGroup
		for range min(forks, end-r.next) {
			workers.Go(func() { r.work(ctx, end) })
		}
		workers.Wait()
	}
	for host := r.next; host < hosts; host++ {
		r.finish(host, task.Without(host, Skipped, r.why(ctx)))
	}
	if r.next < hosts || r.ended {
		return r.results, r.why(ctx)
	}
	return r.results, nil
}

// run is one call of Run.
type run[R any] struct {
	plan    Plan
	task    Task[R]
	results []R
	cancel  context.CancelCauseFunc

	mu      sync.Mutex
	next    int   // the first host that is not begun; guarded by mu
	running int   // guarded by mu
	failed  int   // guarded by mu
	stopped error // what keeps further hosts from being begun; guarded by mu
	ended   bool  // hosts were ended while they ran; guarded by mu

	finishing sync.Mutex // one call of Done at a time
}

// why returns what kept hosts from being tried, or ended them.
func (r *run[R]) why(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped != nil {
		return r.stopped
	}
	return transport.Cause(ctx)
}

// work takes one host after the other, up to end.
func (r *run[R]) work(ctx context.Context, end int) {
	for {
		r.mu.Lock()
		host := r.next
		if host >= end || r.stopped != nil || ctx.Err() != nil {
			r.mu.Unlock()
			return
		}
		r.next++
		r.running++
		r.mu.Unlock()
		result := r.attempt(ctx, host)
		r.count(ctx, r.task.Outcome(result) != OK)
		r.finish(host, result)
	}
}

// attempt runs the task on a host, until it is over or given up.
func (r *run[R]) attempt(ctx context.Context, host int) R {
	result := make(chan R, 1)
	go func() { result <- r.guarded(ctx, host) }() // ends with the task
	select {
	case done := <-result:
		return done
	case <-r.plan.GiveUp:
		return r.task.Without(host, Unknown, &transport.Error{
			Code: "cmd.interrupted", Message: "fleet: given up before it ended",
			Hint: "it may still run: look before running it again",
		})
	}
}

// guarded runs the task. A panic is one host's alone.
func (r *run[R]) guarded(ctx context.Context, host int) (result R) {
	defer func() {
		if p := recover(); p != nil {
			result = r.task.Without(host, Unknown, &transport.Error{
				Code: "internal", Message: fmt.Sprintf("fleet: panic: %v\n%s", p, debug.Stack()),
				Hint: "it may have run: look before running it again",
			})
		}
	}()
	return r.task.Run(ctx, host)
}

// count looks whether the thresholds allow to go on.
func (r *run[R]) count(ctx context.Context, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	if ctx.Err() != nil {
		r.ended = true // while this one ran; it may have failed for that
		return
	}
	if !failed || r.stopped != nil {
		return
	}
	r.failed++
	switch p := r.plan; {
	case p.FailFast:
		r.stopped = stopped("a host failed", "--fail-fast")
		r.ended = r.running > 0
		r.cancel(r.stopped)
	case p.MaxFail != nil && p.MaxFail.exceeded(r.failed, len(r.results)):
		r.stopped = stopped(fmt.Sprintf("%d of %d hosts failed", r.failed, len(r.results)), "--max-fail "+p.MaxFail.String())
	}
}

func stopped(what, flag string) error {
	return &transport.Error{Code: "cmd.interrupted", Message: fmt.Sprintf("fleet: stopped: %s (%s)", what, flag), Err: ErrStopped}
}

func (r *run[R]) finish(host int, result R) {
	r.finishing.Lock()
	defer r.finishing.Unlock()
	if r.task.Done != nil {
		result = r.task.Done(host, result)
	}
	r.results[host] = result
}
