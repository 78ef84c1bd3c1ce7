package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"hash"
	"regexp"
	"slices"
	"sync"

	"github.com/rogpeppe/go-internal/diff"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/hosts"
	"gateway/session"
)

// gatherView shows at the end, under the folded names of its hosts, each outcome
// once. What makes an outcome is how the command ended, and every byte of its
// output. Errors name their hosts, so those of one code are together, each that says
// something of its own.
type gatherView struct {
	out   *output
	names []string
	diff  bool
	hosts []gatheredHost

	mu     sync.Mutex
	groups map[string]*outcome
}

// A gatheredHost sums up what a host writes until it is done.
type gatheredHost struct {
	mu   sync.Mutex   // an output may come late
	sums [2]hash.Hash // nil once it is done
}

// An outcome is what several hosts have in common.
type outcome struct {
	hosts  []int
	result gateway.Result // the first one's
	output string         // sums of all of stdout and stderr

	failures []hostFailure
}

// A hostFailure is what went wrong on a host.
type hostFailure struct {
	host  int
	text  string // as it is shown
	cause string // the same without what tells hosts apart
}

// maxCauses is how many failures of an outcome are shown.
const maxCauses = 20

// digits are in addresses, ports and durations.
var digits = regexp.MustCompile(`[0-9]+`)

// mentions matches a host's name where it is a word: that of a short one is in many.
func mentions(name string) *regexp.Regexp {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`)
}

// add adds a host, and what went wrong there.
func (o *outcome) add(host int, name string, r gateway.Result) {
	o.hosts = append(o.hosts, host)
	if r.Err != nil || r.Line > 0 {
		text := failure(r, gateway.Hint(r.Err))
		cause := digits.ReplaceAllString(mentions(name).ReplaceAllString(text, ""), "")
		o.failures = append(o.failures, hostFailure{host, text, cause})
	}
}

// settle puts all in the order of the hosts, and leaves out what is said already.
func (o *outcome) settle() {
	slices.Sort(o.hosts)
	slices.SortFunc(o.failures, func(a, b hostFailure) int { return a.host - b.host })
	said := make(map[string]bool)
	o.failures = slices.DeleteFunc(o.failures, func(f hostFailure) bool {
		known := said[f.cause]
		said[f.cause] = true
		return known
	})
}

func newGatherView(out *output, names []string, diff bool) *gatherView {
	v := &gatherView{out: out, names: names, diff: diff, hosts: make([]gatheredHost, len(names)), groups: make(map[string]*outcome)}
	for i := range v.hosts {
		v.hosts[i].sums = [2]hash.Hash{sha256.New(), sha256.New()}
	}
	return v
}

func (v *gatherView) started(int) {}

func (v *gatherView) output(host int, from session.Stream, b []byte) {
	h := &v.hosts[host]
	h.mu.Lock()
	defer h.mu.Unlock()
	if from != session.Terminal && h.sums[from] != nil {
		h.sums[from].Write(b)
	}
}

func (v *gatherView) done(host int, r gateway.Result) {
	h := &v.hosts[host]
	h.mu.Lock()
	sums := h.sums
	h.sums = [2]hash.Hash{}
	h.mu.Unlock()
	output := fmt.Sprintf("%x %x", sums[0].Sum(nil), sums[1].Sum(nil))
	key := fmt.Sprintf("%s %d %s %s %d %s %q", r.Verdict, r.ExitCode, r.Signal, gateway.Code(r.Err), r.Line, output, r.Terminal)
	v.mu.Lock()
	defer v.mu.Unlock()
	if fleet.OutcomeOf(r) == fleet.Skipped {
		key = "skipped" // whatever the cause
	}
	if v.groups[key] == nil {
		v.groups[key] = &outcome{result: r, output: output}
	}
	v.groups[key].add(host, v.names[host], r)
}

// end shows the groups, the largest first.
func (v *gatherView) end(s *summary[gateway.Result]) {
	var groups []*outcome
	for _, g := range v.groups {
		g.settle()
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b *outcome) int {
		return cmp.Or(len(b.hosts)-len(a.hosts), a.hosts[0]-b.hosts[0])
	})
	var base *outcome // the first that has begun: the others differ from it
	for _, g := range groups {
		names := v.fold(g)
		title := fmt.Sprintf("%s (%d): %s", names, len(g.hosts), ending(g.result))
		color := green
		if fleet.OutcomeOf(g.result) != fleet.OK {
			color = red
		}
		text := g.body()
		switch begun := !g.result.Started.IsZero(); {
		case v.diff && begun && base != nil:
			text = v.difference(base, g)
		case begun:
			base = cmp.Or(base, g)
		}
		if isTerminal(v.out.stdout) {
			text = sanitizeLines(text)
		}
		_, _ = v.out.Write(slices.Concat([]byte(v.out.paint(color, "=== "+title)+"\n"), text)) // the output remembers
	}
	sayCommands(s)
}

// difference says how the output of g differs from that of base.
func (v *gatherView) difference(base, g *outcome) []byte {
	text := diff.Diff(v.fold(base), base.body(), v.fold(g), g.body())
	switch {
	case len(text) > 0:
		return text
	case g.output != base.output:
		return []byte("the same output, but for what is left out\n")
	}
	return []byte("the same output\n")
}

func (v *gatherView) fold(g *outcome) string {
	var names []string
	for _, host := range g.hosts {
		names = append(names, v.names[host])
	}
	return hosts.FoldNames(names)
}

// body is what a host has written, stderr marked, and what went wrong.
func (o *outcome) body() []byte {
	var b bytes.Buffer
	r := o.result
	b.Write(r.Stdout)
	if len(r.Stdout) > 0 && !bytes.HasSuffix(r.Stdout, []byte("\n")) {
		b.WriteString("\n")
	}
	marked := func(text []byte) {
		for line := range bytes.Lines(text) {
			b.WriteString("! ")
			b.Write(bytes.TrimRight(line, "\r\n"))
			b.WriteString("\n")
		}
	}
	marked(r.Stderr)
	marked(r.Terminal)
	if r.Truncated {
		fmt.Fprintf(&b, "! gateway: of %d bytes the middle is left out\n", r.StdoutBytes+r.StderrBytes)
	}
	for _, f := range o.failures[:min(len(o.failures), maxCauses)] {
		marked([]byte(f.text))
	}
	if more := len(o.failures) - maxCauses; more > 0 {
		fmt.Fprintf(&b, "! gateway: and %d more, which -o json has\n", more)
	}
	return b.Bytes()
}

func sanitizeLines(text []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		line, ended := bytes.CutSuffix(line, []byte("\n"))
		b.Write(sanitize(slices.Clone(line)))
		if ended {
			b.WriteString("\n")
		}
	}
	return b.Bytes()
}

// ending says how a command ended, in a few words.
func ending(r gateway.Result) string {
	outcome := fleet.OutcomeOf(r)
	switch {
	case r.Verdict == session.Exited && r.Err != nil:
		return fmt.Sprintf("exit status %d, %s", r.ExitCode, gateway.Code(r.Err))
	case r.Verdict == session.Exited:
		return fmt.Sprintf("exit status %d", r.ExitCode)
	case r.Verdict == session.Signaled && r.Signal == "":
		return "shell killed by a signal"
	case r.Verdict == session.Signaled:
		return "shell killed by SIG" + r.Signal
	case outcome == fleet.Skipped:
		return "skipped"
	}
	return spelled(outcome) + ", " + gateway.Code(r.Err)
}
