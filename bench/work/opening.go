package work

import (
	"context"
	"fmt"
	"time"

	"gateway/bench/lab"
	"gateway/bench/peer"
	"gateway/bench/rounds"
)

// The titles that the targets speak of.
const (
	ColdNear  = "a first command with everything to be made for it, loopback"
	ColdFar   = "a first command with everything to be made for it, in round trips"
	FirstByte = "on this machine, from a program's start to its first byte"
	ReadyNear = "one more session on a warm connection, loopback: ready"
	ReadyFar  = "one more session on a warm connection, in round trips: ready"
	FirstNear = "one more session on a warm connection, loopback: its first result"
	FirstFar  = "one more session on a warm connection, in round trips: its first result"
)

// opening is work (c).
func opening(ctx context.Context, b *Bench) []Table {
	tables := []Table{
		b.cold(ctx, byCold, b.Lab.Near, ColdNear, "ms", 1, rounds.Plan{Rounds: b.pick(15, 2), Block: 1, Warm: b.pick(1, 0), Budget: b.span(6*time.Second, time.Second)}),
		b.cold(ctx, byBegin, b.Lab.Near, FirstByte, "ms", 1, rounds.Plan{Rounds: b.pick(50, 3), Block: 1, Warm: 1, Budget: b.span(6*time.Second, time.Second)}),
	}
	tables = append(tables, b.more(ctx, b.Lab.Near, ReadyNear, FirstNear, "ms", 1, b.pick(30, 3))...)
	near := len(tables)
	real, err := b.farAway(Trips[b.pick(1, 0)])
	if err != nil {
		return append(tables, Table{Title: ColdFar, Unit: "round trips", Note: err.Error()})
	}
	defer b.Lab.SetTrip(0)
	tables = append(tables, b.cold(ctx, byCold, b.Lab.Far, ColdFar, "round trips", 1/real, rounds.Plan{Rounds: b.pick(5, 1), Block: 1, Warm: b.pick(1, 0), Budget: b.span(8*time.Second, time.Second)}))
	tables = append(tables, b.more(ctx, b.Lab.Far, ReadyFar, FirstFar, "round trips", 1/real, b.pick(8, 2))...)
	for i := near; i < len(tables); i++ {
		tables[i].Note = fmt.Sprintf("a round trip takes %.1f ms", real)
	}
	return tables
}

type start = func(ctx context.Context, site *lab.Site, command string) (peer.Cold, error)

func byCold(p peer.Peer) start  { return p.Cold }
func byBegin(p peer.Peer) start { return p.Begin }

func (b *Bench) cold(ctx context.Context, how func(peer.Peer) start, site *lab.Site, title, unit string, scale float64, plan rounds.Plan) Table {
	able, missing := b.able(func(p peer.Peer) bool { return how(p) != nil })
	var contenders []rounds.Contender
	for _, p := range able {
		var c peer.Cold
		contenders = append(contenders, rounds.Contender{
			Name: p.Name,
			Do: func(ctx context.Context) (err error) {
				command, want := hello(1)
				c, err = how(p)(ctx, site, command)
				return said(command, want, c.Out, err)
			},
			After: func() {
				if c.Close != nil {
					c.Close()
				}
			},
		})
	}
	b.Log("  cold")
	return Table{Title: title, Unit: unit, Rows: append(rows(rounds.Run(ctx, plan, contenders), scale), missing...)}
}

// more opens sessions on a connection that is there, in turns, and takes two times
// of each.
func (b *Bench) more(ctx context.Context, site *lab.Site, ready, first, unit string, scale float64, n int) []Table {
	able, missing := b.able(func(p peer.Peer) bool { return p.Again != nil })
	tables := []Table{{Title: ready, Unit: unit, Rows: missing}, {Title: first, Unit: unit, Rows: missing}}
	b.Log("  warm")
	open := make([]peer.Again, len(able))
	failed := make([]error, len(able))
	took := make([][2][]float64, len(able))
	for i, p := range able {
		if open[i], failed[i] = p.Again(ctx, site); failed[i] == nil {
			defer open[i].Close()
			_, _, failed[i] = session(ctx, open[i]) // sshd's first channel is slower
		}
	}
	for range n {
		for i := range able {
			if failed[i] != nil {
				continue
			}
			var a, z float64
			if a, z, failed[i] = session(ctx, open[i]); failed[i] == nil {
				took[i][0], took[i][1] = append(took[i][0], a*scale), append(took[i][1], z*scale)
			}
		}
	}
	for i, p := range able {
		for j := range tables {
			if j == 0 && open[i].None {
				continue
			}
			tables[j].Rows = append(tables[j].Rows, Row{Peer: p.Name, Summary: rounds.Summarise(took[i][j]), Err: text(failed[i])})
		}
	}
	return tables
}

// session returns when one more session was ready, and when it had run a command,
// in milliseconds.
func session(ctx context.Context, again peer.Again) (ready, first float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	begun := time.Now()
	shell, err := again.Ready(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer shell.Close()
	ready = since(begun)
	err = say(ctx, shell, hello, 1)
	return ready, since(begun), err
}

func since(begun time.Time) float64 { return float64(time.Since(begun)) / float64(time.Millisecond) }
