package main

import (
	"errors"
	"fmt"
	"strings"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/transfer"
)

// A cpView shows a copy. The methods are called concurrently for different
// hosts, done for one at a time, and end after all.
type cpView interface {
	watcher(host int) transfer.Watcher // of a copy that begins
	done(host int, r *cpResult)
	end(s *summary[*cpResult])
}

func (a *app) newCPView(c *copying) cpView {
	switch a.out.format {
	case "json":
		return &cpArray{out: a.out}
	case "jsonl":
		return &cpEvents{newEventLog(a.out), c}
	}
	return &cpText{app: a, copying: c, bars: a.newBars(c), hints: hints{}}
}

// cpArray shows one array at the end.
type cpArray struct{ out *output }

func (v *cpArray) watcher(int) transfer.Watcher { return nil }
func (v *cpArray) done(int, *cpResult)          {}
func (v *cpArray) end(s *summary[*cpResult])    { _ = list(v.out, s.results) } // the output remembers

// cpText shows what went wrong as soon as a host is done, and a summary, on
// stderr. Nothing is on stdout, but for a dry run.
type cpText struct {
	app     *app
	copying *copying
	bars    *bars
	hints   hints
}

func (v *cpText) watcher(host int) transfer.Watcher {
	if v.copying.flags.dryRun {
		return &dryWatcher{v, v.copying.names[host]}
	}
	return v.bars.watcher(host)
}

// maxShown is how many problems of a host are shown, besides the files that may
// have been written.
const maxShown = 20

func (v *cpText) done(host int, r *cpResult) {
	v.bars.done(host)
	if r.Outcome == fleet.Skipped && v.copying.several() {
		return // the summary says why
	}
	label := r.Host + " ! " // also of one: the output of cp is that for many
	var lines []string
	say := func(err error) {
		for _, line := range complaint(err, v.hints.fresh(err)) {
			lines = append(lines, label+line)
		}
	}
	left, told := r.Failed, false
	for i, p := range r.Problems {
		if i < maxShown || transfer.MayBeDone(p.Err) {
			say(p.Err)
			left--
			told = told || errors.Is(p.Err, r.Err) // it ended the copy
		}
	}
	if len(r.Problems) > maxShown && left > 0 {
		lines = append(lines, fmt.Sprintf("%sgateway: and %d more", label, left))
	}
	if r.Err != nil && !told && !errors.Is(r.Err, v.app.out.failed()) { // which is said at the end
		say(r.Err)
	}
	if r.Kept > 0 {
		lines = append(lines, label+"hint: with --resume it goes on where it was cut short")
	}
	if len(lines) > 0 {
		v.bars.above(v.app.out, strings.Join(lines, "\n"))
	}
}

func (v *cpText) end(s *summary[*cpResult]) {
	v.bars.end()
	if v.copying.several() {
		var text []string
		for _, r := range s.results {
			text = append(text, "  "+r.Host+"  "+v.line(r))
		}
		s.say("", text)
		return
	}
	out, r := v.app.out, s.results[0]
	if v.app.config.Quiet || out.failed() != nil {
		return
	}
	if r.Outcome == fleet.OK || r.Files+r.Dirs+r.Links+r.Unchanged+r.Bytes+r.Failed > 0 {
		out.say(out.paintHead(s.status == 0, "gateway: "+v.summary(r)))
	}
}

// line says how the copy of one host among many has ended.
func (v *cpText) line(r *cpResult) string {
	text := spelled(r.Outcome)
	if err := r.err(); err != nil {
		text += ", " + gateway.Code(err)
	}
	if r.Outcome == fleet.OK || r.Files > 0 {
		text += ": " + v.summary(r)
	}
	return text
}

// summary says what was done for a host.
func (v *cpText) summary(r *cpResult) string {
	what := "copied"
	if v.copying.flags.dryRun {
		what = "would copy"
	}
	text := fmt.Sprintf("%s %s, %s in %s", what, plural(r.Files, "file"), size(r.Bytes), lasted(r.Duration))
	if v.copying.flags.dryRun {
		text = fmt.Sprintf("%s %s, %s", what, plural(r.Files, "file"), size(r.Bytes))
	} else if r.Duration > 0 && r.Bytes >= 1<<20 { // less says nothing about the way
		text += fmt.Sprintf(" (%s/s)", size(int64(float64(r.Bytes)/r.Duration.Seconds())))
	}
	for _, part := range []struct {
		n    int64
		text string
	}{
		{r.Dirs, plural(r.Dirs, "directory made")},
		{r.Links, plural(r.Links, "symlink")},
		{r.Unchanged, fmt.Sprintf("%d unchanged", r.Unchanged)},
		{r.Skipped, fmt.Sprintf("%d left out", r.Skipped)},
		{r.Failed, fmt.Sprintf("%d failed", r.Failed)},
		{r.Resumed, size(r.Resumed) + " were there"},
	} {
		if part.n > 0 {
			text += ", " + part.text
		}
	}
	for _, end := range []transfer.About{r.From, r.To} {
		if end.Via == "shell" {
			text += "; over the shell, as " + end.Name + " serves no sftp"
		}
	}
	return text
}

// dryWatcher writes what would be done on stdout.
type dryWatcher struct {
	view *cpText
	host string
}

func (*dryWatcher) Found(int64)                {}
func (*dryWatcher) Begin(string, int64, int64) {}
func (*dryWatcher) Moved(string, int)          {}

func (w *dryWatcher) End(e transfer.Event) {
	if e.Done != transfer.Would {
		return
	}
	from, to := w.view.copying.ends(w.host)
	_ = w.view.app.out.printf("%s -> %s\n", transfer.Show(from, e.Path), transfer.Show(to, e.Target)) // the output remembers
}
