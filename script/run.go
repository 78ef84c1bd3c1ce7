package script

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/internal/redact"
	"gateway/session"
	"gateway/transport"
)

// A Runner runs a script on hosts. It may be used for several at once.
type Runner struct {
	Script *Script
	// Open opens a session on a host; see [gateway.Gateway.Open].
	Open func(ctx context.Context, host string, options gateway.Options) (*gateway.Session, error)
	// Given are values for the script's variables; see [Script.Given].
	Given map[string]string
	// Secrets are those of [Script.ReadSecrets].
	Secrets map[string]string
	// StartAt is the name of the step to begin with; empty means the first.
	StartAt string
	// OwnTimeout bounds each text that the runner itself types: what sets variables
	// and puts things back, and a step's cwd and env where the step has no timeout.
	// 0 means 30 s, in which a session has to open.
	OwnTimeout time.Duration
	// Observe are told what happens.
	Observe []Observer

	runs sync.Map // of *hostRun by host: those that have not come to their end

	masks sync.Once
	known *redact.Set // read it with mask
}

// mask returns the secrets that are taken out of what is shown: the script's, and what is
// typed of the inventory's.
func (r *Runner) mask() *redact.Set {
	r.masks.Do(func() { r.known = redact.New(slices.Collect(maps.Values(r.Secrets))...) })
	return r.known
}

// Mask returns a text without the secrets that are known by now. What the Runner itself
// shows has none.
func (r *Runner) Mask(text string) string { return r.mask().String(text) }

const defaultOwnTimeout = 30 * time.Second

// An Observer is told what happens while it happens, without secrets. Its
// functions may be nil, and are called concurrently for different hosts, but one
// at a time for each: one that blocks holds up its host, and [Runner.Failed] for
// it. The bytes are valid during the call.
type Observer struct {
	Begin  func(host string, step *StepResult)
	Output func(host string, step *StepResult, from session.Stream, b []byte)
	End    func(host string, step *StepResult)
}

// Find returns the first step that is called name, as it is written or as it is
// called on a host.
func (s *Script) Find(name, host string, given map[string]string) (int, bool) {
	values := s.values(host, given)
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.Name == name || step.called(func(text string) string {
			return expand(text, func(n string) string { return values[n] })
		}) == name {
			return i, true
		}
	}
	return 0, false
}

// first is the step to begin with on a host.
func (r *Runner) first(host string) int {
	if r.StartAt == "" {
		return 0
	}
	first, _ := r.Script.Find(r.StartAt, host, r.Given)
	return first
}

// Host runs the script on one host and returns what happened. The context's end
// interrupts the step that runs; what stands under always runs then, too.
func (r *Runner) Host(ctx context.Context, host string) (result Result) {
	h := r.newRun(host)
	r.runs.Store(host, h)
	defer func() { result.Duration = time.Since(result.Started) }()
	defer func() {
		h.close() // takes its time, and may be given up
		if h.finished {
			r.runs.Delete(host) // after a panic, what is known is for Failed
		}
	}()
	h.all(ctx)
	h.note(func() { h.finished = true })
	return h.result
}

func (h *hostRun) all(ctx context.Context) {
	if err := h.open(ctx); err != nil || ctx.Err() != nil {
		h.unbegun(ctx, err)
		h.skip(h.Script.Steps, Steps, "the host was not reached")
		h.skip(h.Script.Always, Always, "the host was not reached")
		return
	}
	h.steps(ctx)
	h.always(ctx)
}

// unbegun notes why nothing of the script has run. What the run's end has kept from
// beginning is skipped, whatever its layers make of that.
func (h *hostRun) unbegun(ctx context.Context, err error) {
	h.result.Outcome = fleet.NotStarted
	if ctx.Err() != nil {
		h.result.Outcome, err = fleet.Skipped, transport.Cause(ctx)
	}
	h.result.Err = h.masked(err)
}

// A hostRun is a script on one host.
type hostRun struct {
	*Runner
	host   string
	values map[string]string // variables, secrets, and what steps have registered
	main   *shell
	sudo   string            // whom a step becomes whose sudo names nobody; empty before open
	others map[string]*shell // under sudo, by user
	closed []*shell          // shells that ended; they may hold the connection of others

	registers map[string]bool  // what steps set
	refused   map[string]error // by sudo behind its password, by user

	mu      sync.Mutex  // Failed reads what follows while the run goes on
	result  Result      // its steps and what open finds out are guarded by mu
	running *StepResult // the step that runs, as it began; guarded by mu

	finished bool // everything is told, and in result; guarded by mu
	over     bool // nobody waits for it any more; guarded by mu
}

func (r *Runner) newRun(host string) *hostRun {
	h := &hostRun{
		Runner: r, host: host, values: r.Script.values(host, r.Given), registers: map[string]bool{}, refused: map[string]error{},
		result: Result{Script: cmp.Or(r.Script.Name, r.Script.File), Host: host, Outcome: fleet.OK, Started: time.Now()},
	}
	maps.Copy(h.values, r.Secrets)
	for _, step := range slices.Concat(r.Script.Steps, r.Script.Always) {
		if name := step.Register; name != "" {
			h.values[name], h.registers[name] = "", true
		}
	}
	return h
}

// steps runs the steps up to the first that fails.
func (h *hostRun) steps(ctx context.Context) {
	first := h.first(h.host)
	h.skip(h.Script.Steps[:first], Steps, "--start-at")
	for i := first; i < len(h.Script.Steps); i++ {
		r := h.step(ctx, &h.Script.Steps[i], Steps)
		left := h.Script.Steps[i+1:]
		switch {
		case ctx.Err() != nil && len(left) > 0:
			if h.result.Outcome == fleet.OK { // no step says so
				h.fail(fleet.Interrupted)
				h.result.Err = h.masked(transport.Cause(ctx))
			}
			h.skip(left, Steps, "interrupted")
			return
		case r.Failed():
			h.skip(left, Steps, "an earlier step failed")
			return
		}
	}
}

// always runs what is to run whatever has happened, also after an interrupt: what
// ends it is that the gateway is closed.
func (h *hostRun) always(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for i := range h.Script.Always {
		h.step(ctx, &h.Script.Always[i], Always)
	}
}

// fail notes an outcome; the first one counts, but an unknown one more than a failure.
func (h *hostRun) fail(outcome fleet.Outcome) {
	if now := h.result.Outcome; now == fleet.OK || outcome == fleet.Unknown && now != fleet.Interrupted {
		h.result.Outcome = outcome
	}
}

// newStep returns the result of a step that has not run.
func (h *hostRun) newStep(s *Step, block string) *StepResult {
	r := &StepResult{
		Name: h.called(s), Block: block, Line: s.Line, Command: h.Mask(s.Run),
		Verdict: session.NotStarted, ExitCode: -1, Streams: session.Split, Register: s.Register,
	}
	if s.Copy != nil {
		r.Command = h.show(s.Copy.String())
	}
	if s.Sudo.On {
		r.Sudo = h.show(cmp.Or(s.Sudo.User, h.sudo))
	}
	return r
}

// skip notes steps that are left out.
func (h *hostRun) skip(steps []Step, block, reason string) {
	for i := range steps {
		r := h.newStep(&steps[i], block)
		r.Outcome, r.Reason = fleet.Skipped, reason
		h.end(r)
	}
}

func (h *hostRun) begin(r *StepResult) {
	h.note(func() {
		begun := *r
		h.running = &begun
		for _, o := range h.Observe {
			if o.Begin != nil {
				o.Begin(h.host, r)
			}
		}
	})
}

func (h *hostRun) end(r *StepResult) {
	h.note(func() {
		h.running = nil
		h.result.Steps = append(h.result.Steps, *r)
		for _, o := range h.Observe {
			if o.End != nil {
				o.End(h.host, r)
			}
		}
	})
}

// note notes and tells something, unless the end of it all is told already.
func (h *hostRun) note(what func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		what()
	}
}

// Failed returns a result for a host that was not tried, or that is given up: a
// [Runner.Host] of it that still runs tells the observer no more. What is known of
// its steps is in the result. One that only has to close its session has its own.
func (r *Runner) Failed(host string, outcome fleet.Outcome, why error) Result {
	run, known := r.runs.LoadAndDelete(host)
	if known {
		if result, finished := run.(*hostRun).whole(); finished {
			return result
		}
	}
	h := r.newRun(host)
	h.result.Started = time.Time{}
	h.result.Err, h.result.Outcome = h.masked(why), outcome
	if known {
		if step := h.takeOver(run.(*hostRun)); step != nil {
			step.Outcome, step.Verdict, step.Attempts = outcome, session.Unknown, 1
			step.Err, h.result.Err = h.result.Err, nil
			h.end(step)
		}
	}
	reason := "not tried"
	if outcome == fleet.Unknown {
		reason = "it is not known whether it ran"
	}
	told := len(h.result.Steps)
	first := min(told, len(r.Script.Steps))
	h.skip(r.Script.Steps[first:], Steps, reason)
	h.skip(r.Script.Always[told-first:], Always, reason)
	return h.result
}

// whole returns the result if that is all that is to be told. Before, it is not yet
// for others to read.
func (h *hostRun) whole() (Result, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.finished {
		return Result{}, false
	}
	result := h.result
	result.Duration = time.Since(result.Started)
	return result, true
}

// takeOver ends a run that nobody waits for any more, takes what is known of it,
// and returns the step that runs; nil if there is none.
func (h *hostRun) takeOver(from *hostRun) *StepResult {
	from.mu.Lock()
	defer from.mu.Unlock()
	from.over = true
	known := &from.result
	h.result.User, h.result.Transport, h.result.Session, h.result.Shell = known.User, known.Transport, known.Session, known.Shell
	h.result.Started, h.result.Connect, h.result.Steps = known.Started, known.Connect, slices.Clone(known.Steps)
	h.result.Duration = time.Since(known.Started)
	return from.running
}
