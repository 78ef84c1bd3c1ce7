package integration

import (
	"sync"
	"testing"
	"time"

	"gateway/internal/netsim"
	"gateway/session"
)

// TestLinkStallsInEveryPhase: a slow link that carries nothing for a while, and then
// all of it, changes nothing but the time.
func TestLinkStallsInEveryPhase(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, f := range phaseMachines(t) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			var all sync.WaitGroup
			place := make(chan struct{}, f.atOnce)
			for _, at := range []moment{atDial, atHostKey, atOffer, atOpen, atRun, atLine, atOutput, atEnd} {
				for _, ways := range [][]netsim.Direction{{netsim.Up}, {netsim.Down}, {netsim.Up, netsim.Down}} {
					all.Go(func() {
						place <- struct{}{}
						defer func() { <-place }()
						stall(t, f.far, at, ways)
					})
				}
			}
			all.Wait()
		})
	}
}

// stall makes one trip on which the link stalls.
func stall(t *testing.T, f far, at moment, ways []netsim.Direction) {
	const lasts = 700 * time.Millisecond
	p := newTrip(t, f, "")
	p.link.SetDelay(10 * time.Millisecond)
	p.keepalive = 5 * time.Second
	p.at(t, at, func() {
		p.link.Stall(ways...)
		time.AfterFunc(lasts, func() {
			p.link.Resume()
			p.allow("first")
			p.allow("go")
		})
	})
	defer p.run(t)()
	if p.result.Verdict != session.Exited || p.err != nil || p.result.ExitCode != 0 || string(p.result.Stdout) != "up\n" || p.seen.String() != "up\n" || p.lines() != 1 {
		t.Errorf("%s, %v: got %s %d %q, %d lines, %v", at, ways, p.result.Verdict, p.result.ExitCode, p.result.Stdout, p.lines(), p.err)
	}
	if p.took < lasts {
		t.Errorf("%s, %v: it took %v, and so did not stall", at, ways, p.took)
	}
}
