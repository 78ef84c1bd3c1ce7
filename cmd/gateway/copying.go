package main

import (
	"context"
	"errors"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/internal/redact"
	"gateway/transfer"
)

// A copying is one call of cp.
type copying struct {
	app      *app
	flags    *cpFlags
	gateway  *gateway.Gateway
	from, to transfer.Place // from without its path
	paths    []string
	// fromMany and toMany: the selector is for many, however many it selects. One
	// of both at most.
	fromMany, toMany bool
	names            []string // of the hosts
	source           transfer.Machine
	sourceless       error // why there is no source
	view             cpView
}

// run copies for all hosts, and says how it went. A single source is connected to
// once for all.
func (c *copying) run(ctx context.Context, selector string, args []string) error {
	a := c.app
	c.view = a.newCPView(c)
	defer c.boundMemory()()
	all := fleetRun[*cpResult]{
		app: a, names: c.names, plan: c.flags.plan, dry: c.flags.dryRun,
		task:   fleet.Task[*cpResult]{Run: c.host, Outcome: cpOutcome, Without: c.failed, Done: c.done},
		record: (*cpResult).remembered, counts: copyOutcome, end: c.view.end,
	}
	all.begin("cp", selector, c.flags.typed(args), redact.New().String)
	if !c.fromMany {
		if c.source, c.sourceless = c.machine(ctx, c.from.Selector); c.sourceless != nil {
			all.plan = fleet.Plan{Forks: 1} // there is nothing to try
		} else {
			defer c.source.Close()
		}
	}
	return all.run(ctx)
}

func cpOutcome(r *cpResult) fleet.Outcome { return r.Outcome }

// copyOutcome is the outcome of a copy as it counts for the status: what an interrupted one
// has left undone is known.
func copyOutcome(r *cpResult) fleet.Outcome {
	if r.Outcome == fleet.Interrupted {
		return fleet.Failed
	}
	return r.Outcome
}

// boundMemory has the memory collected late, which takes less time, but before
// there is much of it: most is buffers that are soon dropped. It does so until the
// returned function is called.
func (c *copying) boundMemory() (stop func()) {
	const base, each = 40 << 20, 12 << 20
	least := int64(base + each*(min(len(c.names), c.flags.plan.Forks)-1))
	debug.SetGCPercent(800)
	debug.SetMemoryLimit(least)
	return again(func() { limitMemory(least) })
}

// limitMemory sets a limit that is far from what is in use. Of a large directory all names
// are, until it is copied: with a limit below that, memory would be collected all the time.
func limitMemory(least int64) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetMemoryLimit(max(least, 2*int64(live[0].Value.Uint64())))
}

// done shows what became of a host.
func (c *copying) done(host int, r *cpResult) *cpResult {
	c.view.done(host, r)
	c.app.log.Info("cp", "host", r.Host, "outcome", r.Outcome, "code", gateway.Code(r.err()), "files", r.Files, "bytes", r.Bytes, "duration", r.Duration)
	return r
}

// machine returns the files of a host, or of this machine.
func (c *copying) machine(ctx context.Context, name string) (transfer.Machine, error) {
	if name == "" {
		return &transfer.Local{}, nil
	}
	connection, err := c.gateway.Connect(ctx, name, c.flags.user)
	if err != nil {
		return nil, err
	}
	return transfer.Open(ctx, connection)
}

// host copies for one host.
func (c *copying) host(ctx context.Context, host int) *cpResult {
	name := c.names[host]
	begun := time.Now()
	err := c.sourceless
	from, to := c.source, transfer.Machine(nil)
	_, target := c.ends(name)
	if c.fromMany {
		if from, err = c.machine(ctx, name); err == nil {
			defer from.Close()
		}
	}
	if err == nil {
		to, err = c.machine(ctx, target)
	}
	if err != nil {
		return c.unreached(ctx, host, err)
	}
	defer to.Close()
	connected := time.Now()
	f := c.flags
	job := transfer.Copy{
		From: from, To: to, Paths: c.paths, Glob: c.from.Remote(), Into: c.to.Path,
		Recursive: f.recursive, Preserve: f.preserve, Mode: f.mode, Links: f.links, Exclude: f.exclude,
		Checksum: f.checksum, Resume: f.resume, DryRun: f.dryRun, Watch: c.view.watcher(host),
	}
	if c.fromMany {
		job.Into, job.MakeInto = transfer.Join(c.to.Path, name), true
	}
	r := &cpResult{Host: name, Outcome: fleet.OK, Report: *job.Run(ctx), Connect: connected.Sub(begun), Started: connected}
	switch cause := context.Cause(ctx); {
	case r.Unsure > 0:
		r.Outcome = fleet.Unknown
	case cause != nil && errors.Is(r.Err, cause): // whatever has told it to stop
		r.Outcome = fleet.Interrupted
	case !r.OK():
		r.Outcome = fleet.Failed
	}
	return r
}

// unreached is the result of a host whose machines could not be reached. Where the
// run's end kept them from that, it was not tried.
func (c *copying) unreached(ctx context.Context, host int, err error) *cpResult {
	if ctx.Err() != nil {
		return c.failed(host, fleet.Skipped, context.Cause(ctx))
	}
	return c.failed(host, fleet.NotStarted, err)
}

// failed is the result of a host for which nothing was copied.
func (c *copying) failed(host int, outcome fleet.Outcome, err error) *cpResult {
	r := &cpResult{Host: c.names[host], Outcome: outcome, Report: transfer.Report{Err: err}}
	r.From.Name, r.To.Name = c.ends(r.Host)
	return r
}

// ends names the two ends of what is copied for a host; one on this machine has no
// name.
func (c *copying) ends(host string) (from, to string) {
	from, to = c.from.Selector, c.to.Selector
	if c.fromMany {
		from = host
	}
	if c.toMany {
		to = host
	}
	return from, to
}

// several reports whether there may be many hosts.
func (c *copying) several() bool { return c.fromMany || c.toMany }
