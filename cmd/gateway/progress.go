package main

import (
	"cmp"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"

	"gateway/fleet"
)

// progress is the line below the output that says how far a run is. Whatever is
// written to the terminal erases it first; a while later it is back.
type progress struct {
	out   *output
	names []string

	mu     sync.Mutex
	since  map[int]time.Time // the hosts that run; guarded by mu
	done   int               // guarded by mu
	failed int               // guarded by mu
	shown  bool              // guarded by output.screen
	undraw func()
}

// redraw is how often the line is written anew.
const redraw = 100 * time.Millisecond

// eraseLine goes back to the beginning of a line and erases it.
const eraseLine = "\r\x1b[K"

// showProgress shows a line where a person can see it; else it returns nil, on
// which all methods do nothing.
func (a *app) showProgress(names []string) *progress {
	if a.out.format != "text" || !a.watched() {
		return nil
	}
	p := &progress{out: a.out, names: names, since: make(map[int]time.Time)}
	a.out.progress.Store(p)
	a.out.drawn.Store(true)
	p.undraw = again(p.draw)
	return p
}

// again does something every [redraw], until the returned function is called, which
// waits for the last time.
func again(do func()) (stop func()) {
	stopped, over := make(chan struct{}), make(chan struct{})
	go func() { // ends with stop
		defer close(over)
		tick := time.NewTicker(redraw)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				do()
			case <-stopped:
				return
			}
		}
	}()
	return func() {
		close(stopped)
		<-over
	}
}

// watched reports whether a person sees what is drawn on stderr, and wants it.
func (a *app) watched() bool {
	return !a.config.Quiet && !a.config.CI && os.Getenv("TERM") != "dumb" && isTerminal(os.Stderr)
}

func (p *progress) draw() {
	// A line that has no room goes on in the next one, which nothing erases. What does
	// not know how wide it is, as a serial console, is taken for 80.
	text := runewidth.Truncate(p.text(time.Now()), cmp.Or(p.out.console.size().Cols, 80)-1, "…")
	p.out.screen.Lock()
	defer p.out.screen.Unlock()
	_, _ = fmt.Fprintf(p.out.stderr, "\r%s\x1b[K", text)
	p.shown = true
}

// text is what the line says.
func (p *progress) text(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf("[%d/%d done, %d running, %d failed", p.done, len(p.names), len(p.since), p.failed)
	slowest, begun := -1, now
	for host, since := range p.since {
		if since.Before(begun) || since.Equal(begun) && host < slowest {
			slowest, begun = host, since
		}
	}
	if slowest >= 0 {
		text += fmt.Sprintf(", slowest %s %v", p.names[slowest], now.Sub(begun).Truncate(time.Second))
	}
	return text + "]"
}

// makeRoom erases the line for somebody who writes, until the function that it
// returns is called.
func (p *progress) makeRoom() (written func()) {
	p.out.screen.Lock()
	if p.shown {
		_, _ = p.out.stderr.WriteString(eraseLine) // the place of last resort
		p.shown = false
	}
	return p.out.screen.Unlock
}

func (p *progress) begin(host int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since[host] = time.Now()
}

func (p *progress) end(host int, outcome fleet.Outcome) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.since, host)
	p.done++
	if outcome != fleet.OK && outcome != fleet.Skipped {
		p.failed++
	}
}

// stop takes the line away for good.
func (p *progress) stop() {
	if p == nil {
		return
	}
	p.undraw()
	p.out.progress.Store(nil)
	p.out.drawn.Store(false)
	p.makeRoom()()
}
