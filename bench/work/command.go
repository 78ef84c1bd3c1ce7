package work

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gateway/bench/lab"
	"gateway/bench/peer"
	"gateway/bench/rounds"
)

// The titles that the targets speak of.
const (
	Builtin      = "over SSH on loopback, `echo hi`"
	Program      = "over SSH on loopback, `/bin/true` (a fork)"
	LocalBuiltin = "on this machine, `echo hi`"
	LocalProgram = "on this machine, `/bin/true` (a fork)"
)

// RoundTrips is the title of the table for a time that a round trip takes.
func RoundTrips(trip time.Duration) string {
	return fmt.Sprintf("`echo hi`, a round trip of %v", trip)
}

// Trips are the round trips that are simulated.
var Trips = []time.Duration{20 * time.Millisecond, 100 * time.Millisecond}

func byWarm(p peer.Peer) func(context.Context, *lab.Site) (peer.Shell, error)  { return p.Warm }
func byLocal(p peer.Peer) func(context.Context, *lab.Site) (peer.Shell, error) { return p.Local }

// slowest is the most that a command may take, in milliseconds, for a fork to show.
const slowest = 20

// warm is work (a).
func warm(ctx context.Context, b *Bench) []Table {
	plan := rounds.Plan{Rounds: b.pick(50, 3), Block: b.pick(10, 4), Budget: b.span(8*time.Second, 500*time.Millisecond), Warm: b.pick(3, 1), Lead: 1}
	var tables []Table
	for _, place := range []struct {
		how             func(peer.Peer) func(context.Context, *lab.Site) (peer.Shell, error)
		builtin, forked string
		floor           string
	}{
		{byWarm, Builtin, Program, peer.FloorName},
		{byLocal, LocalBuiltin, LocalProgram, peer.LocalFloorName},
	} {
		open, missing := b.shells(ctx, b.Lab.Near, place.how)
		b.Log("  echo hi")
		builtin := rounds.Run(ctx, plan, commands(open, hello))
		tables = append(tables, Table{Title: place.builtin, Unit: "ms", Floor: place.floor, Rows: append(rows(builtin, 1), missing...)})
		b.Log("  /bin/true")
		silent := func(int) (string, string) { return "/bin/true", "" }
		fast := slices.DeleteFunc(commands(open, silent), func(c rounds.Contender) bool {
			return slices.ContainsFunc(builtin, func(s rounds.Series) bool {
				return s.Name == c.Name && (s.Err != nil || !(rounds.Summarise(s.Values).Median < slowest))
			})
		})
		tables = append(tables, Table{
			Title: place.forked, Unit: "ms", Floor: place.floor, Rows: rows(rounds.Run(ctx, plan, fast), 1),
			Note: fmt.Sprintf("without those whose `echo hi` takes over %d ms: a fork would not show", slowest),
		})
		closeAll(open)
	}
	return tables
}

// trips is work (b). What does not depend on the link's time has been seen in (a):
// here only the number of round trips counts.
func trips(ctx context.Context, b *Bench) []Table {
	open, missing := b.shells(ctx, b.Lab.Far, byWarm)
	defer closeAll(open)
	var tables []Table
	trips := Trips
	if b.Quick {
		trips = trips[:1]
	}
	for _, trip := range trips {
		real, err := b.farAway(trip)
		if err != nil {
			return []Table{{Title: RoundTrips(trip), Unit: "round trips", Note: err.Error()}}
		}
		b.Log("  a round trip of %v", trip)
		plan := rounds.Plan{Rounds: b.pick(10, 2), Block: 1, Budget: b.span(6*time.Second, 500*time.Millisecond), Warm: 1}
		tables = append(tables, Table{
			Title: RoundTrips(trip), Unit: "round trips", Floor: peer.FloorName,
			Note: fmt.Sprintf("a bare SSH request and its answer took %.2f ms", real),
			Rows: append(rows(rounds.Run(ctx, plan, commands(open, hello)), 1/real), missing...),
		})
	}
	b.Lab.SetTrip(0)
	return tables
}

// farAway sets the time of a round trip and returns what one takes in fact, in
// milliseconds: that of a request that sshd answers at once.
func (b *Bench) farAway(trip time.Duration) (float64, error) {
	b.Lab.SetTrip(trip)
	took, err := b.Lab.Far.Trip()
	return float64(took) / float64(time.Millisecond), err
}
