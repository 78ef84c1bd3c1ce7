package main

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/internal/phrase"
	"gateway/script"
	"gateway/session"
)

// A scriptView shows a script's run on stdout. Its methods are called
// concurrently for different hosts, but for end.
type scriptView interface {
	observer() script.Observer
	done(r *script.Result)
	end(s *summary[script.Result])
}

func (a *app) newScriptView(r *scriptRun, verbose bool) scriptView {
	switch a.out.format {
	case "json":
		return &scriptList{out: a.out}
	case "jsonl":
		return scriptEvents{newEventLog(a.out)}
	}
	v := &scriptText{app: a, verbose: verbose, github: r.reports.github != nil}
	v.agent = v.github || os.Getenv("TF_BUILD") != "" || os.Getenv("TEAMCITY_VERSION") != ""
	for _, name := range r.names {
		v.width = max(v.width, runewidth.StringWidth(name))
	}
	s := r.runner.Script
	v.steps = len(s.Steps) + len(s.Always)
	return v
}

// scriptList shows one array at the end.
type scriptList struct{ out *output }

func (*scriptList) observer() script.Observer       { return script.Observer{} }
func (*scriptList) done(*script.Result)             {}
func (l *scriptList) end(s *summary[script.Result]) { _ = list(l.out, s.results) } // the output remembers

// scriptText shows a line per step and host, and in full what a step wrote that
// failed.
type scriptText struct {
	app     *app
	verbose bool
	github  bool
	agent   bool // the log is read by one that obeys what it finds in it
	width   int  // of the hosts' names
	steps   int

	mu     sync.Mutex
	counts map[string]int // how many steps of a host have ended; guarded by mu
}

func (v *scriptText) observer() script.Observer { return script.Observer{End: v.step} }

func (v *scriptText) step(host string, s *script.StepResult) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.counts == nil {
		v.counts = map[string]int{}
	}
	v.counts[host]++
	failed := s.Failed() || s.Ignored
	switch {
	case s.Outcome == fleet.Skipped && !strings.HasPrefix(s.Reason, "when: ") && s.Reason != "--start-at":
		return // why is told already
	case v.app.config.Quiet && !failed:
		return
	}
	var b strings.Builder
	about := ""
	switch {
	case s.Outcome == fleet.Skipped:
		about = s.Reason
	case s.Err != nil:
		about = s.Err.Error()
	case s.Copy != nil:
		about = copied(s.Copy)
	case s.FailedLine > 0: // by a status that is expected
		about = fmt.Sprintf("ended at line %d", s.FailedLine)
	}
	if s.Ignored {
		about += " (goes on)"
	}
	if s.Attempts > 1 {
		about = strings.TrimSpace(fmt.Sprintf("%s [%d attempts]", about, s.Attempts))
	}
	b.WriteString(v.line(host, s.Outcome, failed, fmt.Sprintf("%*d/%d", len(fmt.Sprint(v.steps)), v.counts[host], v.steps), s.Name, s.Duration, about))
	if failed || v.verbose {
		b.WriteString(v.output(s))
	}
	if hint := gateway.Hint(s.Err); hint != "" && failed {
		b.WriteString("  hint: " + v.shown(hint) + "\n")
	}
	_ = v.app.out.printf("%s", b.String()) // the output remembers
}

// copied is what a step has copied, for people.
func copied(c *script.Copied) string {
	text := plural(c.Files, "file") + ", " + size(c.Bytes)
	if c.Unchanged > 0 {
		text += fmt.Sprintf(", %d unchanged", c.Unchanged)
	}
	return text
}

func (v *scriptText) line(host string, outcome fleet.Outcome, failed bool, place, name string, took time.Duration, about string) string {
	word := fmt.Sprintf("%-11s", spelled(outcome))
	switch {
	case failed:
		word = v.app.out.paint(red, word)
	case outcome == fleet.OK:
		word = v.app.out.paint(green, word)
	}
	text := fmt.Sprintf("%s  %s %s  %s", runewidth.FillRight(host, v.width), word, place, oneLine(v.shown(name), 80))
	if took > 0 {
		text += fmt.Sprintf("  (%s)", lasted(took))
	}
	if about != "" {
		text += "  " + v.shown(about)
	}
	return text + "\n"
}

// shown is a text in a line of gateway's own. A machine may have said it, and
// GitHub's runner obeys ::COMMAND:: where a line begins.
func (v *scriptText) shown(text string) string {
	text = visible(text)
	if v.agent {
		text = orders.ReplaceAllString(strings.ReplaceAll(text, "\n", " "), "## $1")
	}
	return indent(text)
}

// output returns what a step wrote, so that no line of it can be taken for
// gateway's own, nor for a command to an agent.
func (v *scriptText) output(s *script.StepResult) string {
	var b strings.Builder
	for _, stream := range []struct {
		name  string
		bytes []byte
	}{{"out", s.Stdout}, {"err", s.Stderr}, {"tty", s.Terminal}} {
		text := strings.TrimRight(phrase.Plain(stream.bytes), "\n")
		if text == "" {
			continue
		}
		for line := range strings.SplitSeq(text, "\n") {
			b.WriteString("  " + stream.name + "| " + line + "\n")
		}
	}
	switch {
	case b.Len() == 0 || !v.agent:
		return b.String()
	case !v.github: // only that one can be told to obey nothing
		return orders.ReplaceAllString(b.String(), "## $1")
	}
	token := rand.Text()
	return "::stop-commands::" + token + "\n" + b.String() + "::" + token + "::\n"
}

func (v *scriptText) done(r *script.Result) {
	if r.Err == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	text := v.line(r.Host, r.Outcome, true, strings.Repeat(" ", 2*len(fmt.Sprint(v.steps))+1), "", 0, gateway.Code(r.Err)+": "+r.Err.Error())
	if hint := gateway.Hint(r.Err); hint != "" {
		text += "  hint: " + v.shown(hint) + "\n"
	}
	_ = v.app.out.printf("%s", text) // the output remembers
}

// end writes the summary on stderr: what did not go well, and where.
func (v *scriptText) end(s *summary[script.Result]) {
	var text []string
	order := slices.Clone(s.results)
	slices.SortStableFunc(order, func(a, b script.Result) int {
		return cmp.Compare(slices.Index(fleet.Outcomes, a.Outcome), slices.Index(fleet.Outcomes, b.Outcome))
	})
	for i := range order {
		r := &order[i]
		if r.Outcome == fleet.OK {
			continue
		}
		what := ""
		if failed := r.FirstFailure(); failed != nil {
			what = fmt.Sprintf("%s (line %d)", oneLine(v.shown(failed.Name), 60), cmp.Or(failed.FailedLine, failed.Line))
			if code := gateway.Code(failed.Err); code != "" && code != "script.failed" {
				what += ", " + code
			}
		}
		if r.Err != nil {
			what = gateway.Code(r.Err)
		}
		text = append(text, strings.TrimRight(fmt.Sprintf("  %s  %-11s  %s", runewidth.FillRight(r.Host, v.width), spelled(r.Outcome), what), " "))
	}
	s.say(" hosts", text)
}

// scriptEvents writes what happens as it happens. Beside what a command's events
// say, they name the step; a step's end is an event of its own.
type scriptEvents struct{ *eventLog }

func (e scriptEvents) observer() script.Observer {
	return script.Observer{Begin: e.begin, Output: e.output, End: e.step}
}

func (e scriptEvents) begin(host string, s *script.StepResult) { e.of(host).begin(s.Name) }

func (e scriptEvents) output(host string, _ *script.StepResult, from session.Stream, b []byte) {
	e.of(host).stream(from, b)
}

func (e scriptEvents) step(host string, s *script.StepResult) { e.of(host).stepped(s) }

func (e scriptEvents) done(r *script.Result) { e.of(r.Host).end(r) }

func (e scriptEvents) end(s *summary[script.Result]) { s.emit(e.eventLog) }

func (e *events) begin(step string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.step = step
	e.write(event{Event: "start"})
}

// stepped tells of a step's end, which may have had no beginning.
func (e *events) stepped(s *script.StepResult) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.step = s.Name
	e.flush()
	e.write(event{Event: "step", StepResult: s})
	e.step = ""
}
