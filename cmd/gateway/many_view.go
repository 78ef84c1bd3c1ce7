package main

import (
	"fmt"
	"hash/fnv"
	"strings"
	"sync"

	"github.com/mattn/go-runewidth"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/session"
)

// A view shows a command on many hosts, which it knows by their place. The
// methods for one host are called in order, those for different ones at the
// same time; done is called for one host at a time, and end after all.
type view interface {
	started(host int)
	output(host int, from session.Stream, b []byte)
	done(host int, r gateway.Result)
	end(s *summary[gateway.Result])
}

// newView returns the view that the flags ask for, and the [gateway.Command.Limit] of
// what it wants to have in a result.
func (a *app) newView(names []string, f *manyFlags) (v view, limit int) {
	switch {
	case a.out.format == "jsonl":
		return &eventsView{newEventLog(a.out), names}, 0
	case a.out.format == "json":
		return newArrayView(a.out), 0
	case f.gather || f.diff:
		return newGatherView(a.out, names, f.diff), 0
	}
	// What came was shown, but whoever answers a prompt has to see it whole.
	return newLiveView(a.out, names), 64 << 10
}

// liveView shows lines as they come, each with its host in front.
type liveView struct {
	out   *output
	hosts []liveHost
	hints hints

	// writing is held while lines are written: on a terminal both streams are one.
	writing sync.Mutex
}

// A liveHost is what has come from a host and is no whole line yet.
type liveHost struct {
	mu      sync.Mutex
	streams [3]*lines // guarded by mu
	done    bool      // what comes late is not shown; guarded by mu
}

// maxLabel is how wide the column of the names may be.
const maxLabel = 32

// hues tell hosts apart.
var hues = []string{"36", "33", "35", "34", "32", "96", "93", "95", "94", "92"}

func newLiveView(out *output, names []string) *liveView {
	v := &liveView{out: out, hosts: make([]liveHost, len(names)), hints: hints{}}
	width := 0
	for _, name := range names {
		width = max(width, min(runewidth.StringWidth(name), maxLabel))
	}
	terminal, errTerminal := isTerminal(out.stdout), isTerminal(out.stderr)
	for i, name := range names {
		padded := name + strings.Repeat(" ", max(width-runewidth.StringWidth(name), 0))
		hash := fnv.New32a()
		hash.Write([]byte(name))
		hue := hues[hash.Sum32()%uint32(len(hues))]
		label, marked := padded+" | ", padded+" ! "
		if out.color {
			label = "\x1b[" + hue + "m" + padded + " |\x1b[0m "
		}
		if out.errColor {
			marked = "\x1b[" + hue + "m" + padded + " \x1b[" + red + "m!\x1b[0m "
		}
		v.hosts[i].streams = [3]*lines{
			{label: []byte(label), terminal: terminal}, {label: []byte(marked), terminal: errTerminal}, {label: []byte(marked), terminal: errTerminal},
		}
	}
	return v
}

func (v *liveView) started(int) {}

func (v *liveView) output(host int, from session.Stream, b []byte) {
	h := &v.hosts[host]
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.done {
		v.write(from, h.streams[from].take(b))
	}
}

func (v *liveView) write(from session.Stream, text []byte) {
	if len(text) == 0 {
		return
	}
	v.writing.Lock()
	defer v.writing.Unlock()
	if from == session.Stdout {
		_, _ = v.out.Write(text) // the output remembers, and ends the run
	} else if v.out.failed() == nil {
		_, _ = v.out.errors().Write(text)
	}
}

func (v *liveView) done(host int, r gateway.Result) {
	h := &v.hosts[host]
	h.mu.Lock()
	defer h.mu.Unlock()
	for from, stream := range h.streams {
		v.write(session.Stream(from), stream.rest())
	}
	if outcome := fleet.OutcomeOf(r); outcome != fleet.OK && outcome != fleet.Skipped {
		why := &lines{label: h.streams[session.Stderr].label}
		v.write(session.Stderr, why.take([]byte(failure(r, v.hints.fresh(r.Err))+"\n")))
	}
	h.streams = [3]*lines{} // only hosts that run take memory
	h.done = true
}

func (v *liveView) end(s *summary[gateway.Result]) { sayCommands(s) }

// hints are those that were shown: once is enough, however many hosts it is for. They
// are not for concurrent use.
type hints map[string]bool

// fresh returns what an error of its code hints at, unless that was shown before.
func (h hints) fresh(err error) string {
	hint := gateway.Hint(err)
	key := gateway.Code(err) + " " + hint
	if h[key] {
		return ""
	}
	h[key] = true
	return hint
}

// failure says what went wrong on a host, and what can be done about it.
func failure(r gateway.Result, hint string) string {
	where := ""
	if r.Line > 0 {
		where = fmt.Sprintf(" on line %d of the script", r.Line)
	}
	if r.Err == nil {
		return "gateway: " + ending(r) + where
	}
	text := "gateway: " + gateway.Code(r.Err) + where + ": " + visible(r.Err.Error())
	if hint != "" {
		text += "\nhint: " + visible(hint)
	}
	return text
}

// eventsView writes every event as a line of its own.
type eventsView struct {
	log   *eventLog
	names []string
}

func (v *eventsView) started(host int) { v.log.of(v.names[host]).emit(event{Event: "start"}) }

func (v *eventsView) output(host int, from session.Stream, b []byte) {
	v.log.of(v.names[host]).stream(from, b)
}

func (v *eventsView) done(host int, r gateway.Result) { v.log.of(v.names[host]).result(r) }

func (v *eventsView) end(s *summary[gateway.Result]) { s.emit(v.log) }
