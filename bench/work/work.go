// Package work holds the kinds of work that contenders are measured at. Each
// yields tables; none knows how they are shown.
package work

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"gateway/bench/lab"
	"gateway/bench/peer"
	"gateway/bench/rounds"
)

// A Work is one kind of work.
type Work struct {
	Letter, Title string
	run           func(context.Context, *Bench) []Table
}

// All are the kinds of work, in the order in which they are done.
var All = []Work{
	{"a", "a trivial command, warm", warm},
	{"b", "the same command where a round trip takes time, and through a bastion", trips},
	{"c", "opening, cold and warm", opening},
	{"d", "much output", flood},
	{"e", "many hosts", fan},
	{"f", "memory", memory},
	{"g", "files", files},
	{"h", "64 sessions at once", crowd},
}

// A Bench is one run.
type Bench struct {
	Lab   *lab.Lab
	Peers []peer.Peer
	// Quick makes everything small: the figures show only that it works.
	Quick bool
	// Bytes is how much output and how large a file is.
	Bytes int64
	// Log is told what is being done.
	Log func(format string, args ...any)
	// Self starts this program as a child that holds idle sessions, or fans out.
	Self func(order string) (Child, error)

	peaks map[peak]int64 // the most memory that fan-outs took
}

// A Child is this program again, so that its memory is that of one contender.
type Child struct {
	Pid   int
	Said  string
	Close func()
}

// A Table compares contenders at one thing.
type Table struct {
	Title string `json:"title"`
	Unit  string `json:"unit"`
	// Floor is the contender that the others are shown in multiples of.
	Floor string `json:"floor,omitempty"`
	// More is better, as with a rate. Otherwise less is.
	More bool   `json:"more,omitempty"`
	Rows []Row  `json:"rows"`
	Note string `json:"note,omitempty"`
}

// A Row is one contender's part of a table.
type Row struct {
	Peer string `json:"peer"`
	rounds.Summary
	// Note says something that the figures do not.
	Note string `json:"note,omitempty"`
	// Err is why there are no figures, or fewer.
	Err string `json:"error,omitempty"`
}

// Result is what a work has yielded.
type Result struct {
	Letter string  `json:"work"`
	Title  string  `json:"title"`
	Took   string  `json:"took"`
	Tables []Table `json:"tables"`
}

// Do does the work.
func (w Work) Do(ctx context.Context, b *Bench) Result {
	begun := time.Now()
	if b.peaks == nil {
		b.peaks = map[peak]int64{}
	}
	b.Log("(%s) %s", w.Letter, w.Title)
	tables := w.run(ctx, b)
	return Result{w.Letter, w.Title, time.Since(begun).Round(time.Second).String(), tables}
}

// pick returns n, or the small one of a quick run.
func (b *Bench) pick(n, quick int) int {
	if b.Quick {
		return quick
	}
	return n
}

func (b *Bench) span(d, quick time.Duration) time.Duration {
	if b.Quick {
		return quick
	}
	return d
}

// able returns the contenders that do something, and a row for each of them that
// can't be had.
func (b *Bench) able(does func(peer.Peer) bool) (able []peer.Peer, missing []Row) {
	for _, p := range b.Peers {
		if !does(p) {
			continue
		}
		if why := p.Why(b.Lab); why != "" {
			missing = append(missing, Row{Peer: p.Name, Err: why})
			continue
		}
		able = append(able, p)
	}
	return able, missing
}

// rows turns series into rows: values are multiplied with scale, so that
// milliseconds become something else.
func rows(series []rounds.Series, scale float64) []Row {
	var all []Row
	for _, s := range series {
		values := make([]float64, len(s.Values))
		for i, v := range s.Values {
			values[i] = v * scale
		}
		all = append(all, Row{Peer: s.Name, Summary: rounds.Summarise(values), Err: text(s.Err)})
	}
	return all
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

// A pair is a contender and the shell that it has open.
type pair struct {
	peer  peer.Peer
	shell peer.Shell
}

// shells opens one for each contender, by the way that how picks.
func (b *Bench) shells(ctx context.Context, site *lab.Site, how func(peer.Peer) opener) (open []pair, missing []Row) {
	able, missing := b.able(func(p peer.Peer) bool { return how(p) != nil })
	for _, p := range able {
		b.Log("  opening %s", p.Name)
		within, cancel := context.WithTimeout(ctx, time.Minute)
		shell, err := how(p)(within, site)
		cancel()
		if err != nil {
			missing = append(missing, Row{Peer: p.Name, Err: text(err)})
			continue
		}
		open = append(open, pair{p, shell})
	}
	return open, missing
}

func closeAll(open []pair) {
	for _, o := range open {
		o.shell.Close()
	}
}

// commands makes contenders that run what text makes of a number, another one each
// time, and look at what it says.
func commands(open []pair, text func(n int) (command, want string)) []rounds.Contender {
	var all []rounds.Contender
	for _, o := range open {
		n := 0
		all = append(all, rounds.Contender{Name: o.peer.Name, Do: func(ctx context.Context) error {
			n++
			return say(ctx, o.shell, text, n)
		}})
	}
	return all
}

// hello is a command whose answer is no other one's.
func hello(n int) (command, want string) {
	return fmt.Sprintf("echo hi%d", n), fmt.Sprintf("hi%d", n)
}

// say runs a command and looks at what it says.
func say(ctx context.Context, shell peer.Shell, text func(n int) (command, want string), n int) error {
	command, want := text(n)
	out, err := shell.Run(ctx, command)
	return said(command, want, out, err)
}

// said is the error of a command that did not say what it should. Its own text, as
// a terminal may show it, is no answer.
func said(command, want, out string, err error) error {
	if err == nil && !strings.Contains(strings.ReplaceAll(out, command, ""), want) {
		err = fmt.Errorf("%.100q came, without %q", out, want)
	}
	return err
}

// errNone is what is said of something that was not looked at.
var errNone = errors.New("not measured")

// scratch returns a directory that ends with the run, on the same disk for all.
func (b *Bench) scratch(name string) (string, func(), error) {
	dir, err := os.MkdirTemp("", "gateway-bench-"+name)
	return dir, func() { os.RemoveAll(dir) }, err
}
