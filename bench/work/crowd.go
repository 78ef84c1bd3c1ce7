package work

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"gateway/bench/peer"
	"gateway/bench/rounds"
)

// Crowd is the title that the targets speak of.
const Crowd = "64 sessions on one host, `echo hi` in all of them at once"

// crowd is work (h).
func crowd(ctx context.Context, b *Bench) []Table {
	const sessions = 64
	able, missing := b.able(func(p peer.Peer) bool { return p.Many != nil })
	var contenders []rounds.Contender
	each := b.pick(200, 10)
	for _, p := range able {
		b.Log("  opening %s", p.Name)
		shells, err := p.Many(ctx, b.Lab.Near, sessions)
		if err != nil {
			missing = append(missing, Row{Peer: p.Name, Err: text(err)})
			continue
		}
		defer func() {
			for i := range shells { // the first one closes what all are on
				shells[len(shells)-1-i].Close()
			}
		}()
		contenders = append(contenders, rounds.Contender{Name: p.Name, Do: func(ctx context.Context) error { return all(ctx, shells, each) }})
	}
	series := rounds.Run(ctx, rounds.Plan{Rounds: b.pick(10, 2), Block: 1, Warm: 1, Budget: b.span(15*time.Second, 2*time.Second)}, contenders)
	for i := range series {
		for j, ms := range series[i].Values {
			series[i].Values[j] = float64(sessions*each) / (ms / 1e3)
		}
	}
	return []Table{{
		Title: Crowd, Unit: "commands/s", More: true, Floor: peer.FloorName,
		Note: "over as few connections as sshd's MaxSessions of 10 allows", Rows: append(rows(series, 1), missing...),
	}}
}

// all has every shell run as many commands as it can, and returns the first error.
func all(ctx context.Context, shells []peer.Shell, each int) error {
	var group errgroup.Group
	for i, s := range shells {
		group.Go(func() error {
			for n := range each {
				if err := say(ctx, s, hello, n); err != nil {
					return fmt.Errorf("session %d: %w", i, err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}
