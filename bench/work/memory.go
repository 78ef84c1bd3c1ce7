package work

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"gateway/bench/lab"
	"gateway/bench/peer"
	"gateway/bench/rounds"
)

// The titles that the targets speak of.
const (
	IdleFirst = "a connection with one idle session"
	IdleMore  = "each further idle session on it"
	IdleAll   = "1,000 idle sessions"
	FanMemory = "a fan-out, per host"
)

// perConnection is how many sessions share a connection: gateway's need two
// channels each of the ten that sshd allows, and leave two.
const perConnection = 4

// memory is work (f).
func memory(ctx context.Context, b *Bench) []Table {
	able, missing := b.able(func(p peer.Peer) bool { return p.Idle != nil })
	first := Table{Title: IdleFirst, Unit: "KiB", Rows: missing, Note: "the client's side: proportional set size, less that of the same program with one"}
	more := Table{Title: IdleMore, Unit: "KiB", Rows: missing, Note: "a program of `ssh` has one session, and one more is another connection"}
	all := Table{Title: IdleAll, Unit: "MiB", Rows: missing, Note: fmt.Sprintf("%d on a connection; all of the program", perConnection)}
	connections := b.pick(250, 4)
	for _, p := range able {
		few := connections
		if p.Name != peer.ChannelName && !p.Ours {
			few = min(few, b.pick(20, 2)) // what costs megabytes shows it with twenty
		}
		b.Log("  %d idle sessions of %s", few*perConnection, p.Name)
		alone, err := b.idle(ctx, p, 1, 1)
		var one, four int64
		if err == nil {
			one, err = b.idle(ctx, p, few, 1)
		}
		if err == nil {
			four, err = b.idle(ctx, p, few, perConnection)
		}
		if err != nil {
			for _, t := range []*Table{&first, &more, &all} {
				t.Rows = append(t.Rows, Row{Peer: p.Name, Err: text(err)})
			}
			continue
		}
		per := float64(one-alone) / float64(few-1)
		further := float64(four-one) / float64(few*(perConnection-1))
		thousand := Row{Peer: p.Name, Summary: rounds.Summarise([]float64{float64(four) / (1 << 20)})}
		if few*perConnection != 1000 {
			thousand.Summary = rounds.Summarise([]float64{(float64(alone) + 249*per + 750*further) / (1 << 20)})
			thousand.Note = fmt.Sprintf("reckoned from %d", few*perConnection)
		}
		first.Rows = append(first.Rows, Row{Peer: p.Name, Summary: rounds.Summarise([]float64{per / 1024})})
		more.Rows = append(more.Rows, Row{Peer: p.Name, Summary: rounds.Summarise([]float64{further / 1024})})
		all.Rows = append(all.Rows, thousand)
	}
	return []Table{first, more, all, b.fanMemory(ctx)}
}

// idle returns what idle sessions take. A peer that is Go code does it in a child of
// this program.
func (b *Bench) idle(ctx context.Context, p peer.Peer, connections, each int) (int64, error) {
	if p.InProcess {
		child, err := b.Self(orderTo(p.Name, b.Lab.Many, jobIdle, connections, each))
		if err != nil {
			return 0, err
		}
		defer child.Close()
		return lab.Memory(child.Pid), nil
	}
	open, err := p.Idle(ctx, b.Lab.Many, connections, each)
	if open.Close != nil {
		defer open.Close()
	}
	return lab.Memory(open.Pids...), err
}

func (b *Bench) fanMemory(ctx context.Context) Table {
	n := b.sizes()[len(b.sizes())-1]
	b.Log("  memory of %d hosts", n)
	t := Table{Title: FanMemory, Unit: "KiB", Note: fmt.Sprintf("the peak over %d hosts, with all processes, by their number", n)}
	able, missing := b.able(func(p peer.Peer) bool { return p.Fan != nil })
	t.Rows = missing
	for _, p := range able {
		bytes, err := b.fanPeak(ctx, p, n)
		row := Row{Peer: p.Name, Err: text(err)}
		if err == nil {
			row.Summary = rounds.Summarise([]float64{float64(bytes) / 1024 / float64(n)})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// A peak is what the most memory of a fan-out is known by.
type peak struct {
	peer  string
	hosts int
}

// fanPeak takes what has been seen, or looks.
func (b *Bench) fanPeak(ctx context.Context, p peer.Peer, n int) (int64, error) {
	if p.InProcess {
		child, err := b.Self(orderTo(p.Name, b.Lab.Many, jobFan, n, peer.Forks))
		if err != nil {
			return 0, err
		}
		defer child.Close()
		return strconv.ParseInt(child.Said, 10, 64)
	}
	if seen := b.peaks[peak{p.Name, n}]; seen > 0 {
		return seen, nil
	}
	c, err := p.Fan(ctx, b.Lab.Many, n, peer.Forks, speak)
	return c.Peak, err
}

// What a child does.
const (
	jobIdle = "idle"
	jobFan  = "fan"
)

// orderTo tells a child what to do.
func orderTo(name string, site *lab.Site, job string, n, m int) string {
	text, err := json.Marshal(order{name, job, n, m, site.Portable()})
	if err != nil {
		panic(err) // it is plain data
	}
	return string(text)
}

type order struct {
	Peer, Job string
	N, M      int
	Site      lab.Portable
}

// Obey does what a child is told, and returns what it has to say and what ends it.
func Obey(ctx context.Context, text string) (said string, end func(), err error) {
	var o order
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&o); err != nil {
		return "", nil, err
	}
	site, err := o.Site.Site()
	if err != nil {
		return "", nil, err
	}
	for _, p := range peer.All() {
		switch {
		case p.Name != o.Peer:
		case o.Job == jobFan:
			stop := lab.Peak(func() []int { return []int{0} })
			err := complete(o.N)(p.Fan(ctx, site, o.N, o.M, speak))
			return strconv.FormatInt(stop(), 10), func() {}, err
		default:
			open, err := p.Idle(ctx, site, o.N, o.M)
			for range 3 { // stacks and pools shrink step by step
				runtime.GC()
			}
			debug.FreeOSMemory()
			return "up", open.Close, err
		}
	}
	return "", nil, fmt.Errorf("no peer %q", o.Peer)
}
