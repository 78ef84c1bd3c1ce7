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

// An opener opens a shell on a site.
type opener = func(context.Context, *lab.Site) (peer.Shell, error)

func byWarm(p peer.Peer) opener  { return p.Warm }
func byLocal(p peer.Peer) opener { return p.Local }

func byJump(p peer.Peer) opener {
	if p.Ours || p.Jumps {
		return p.Warm
	}
	return nil
}

// slowest is the most that a command may take, in milliseconds, for a fork to show.
const slowest = 20

// warm is work (a).
func warm(ctx context.Context, b *Bench) []Table {
	plan := rounds.Plan{Rounds: b.pick(50, 3), Block: b.pick(10, 4), Budget: b.span(8*time.Second, 500*time.Millisecond), Warm: b.pick(3, 1), Lead: 1}
	var tables []Table
	for _, place := range []struct {
		how             func(peer.Peer) opener
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
	trips := Trips
	if b.Quick {
		trips = trips[:1]
	}
	var tables []Table
	b.on(ctx, b.Lab.Far, byWarm, func(open []pair, missing []Row) {
		for _, trip := range trips {
			tables = append(tables, b.far(ctx, RoundTrips(trip), peer.FloorName, trip, open, missing))
		}
	})
	b.on(ctx, b.Lab.Behind, byJump, func(open []pair, missing []Row) {
		b.Log("  through a bastion")
		tables = append(tables,
			Table{Title: "through a bastion nearby, `echo hi`", Unit: "ms", Rows: append(rows(rounds.Run(ctx, b.farPlan(), commands(open, hello)), 1), missing...)},
			b.far(ctx, "through a bastion, "+RoundTrips(Trips[0]), "", Trips[0], open, missing))
	})
	return tables
}

// on opens shells on a site behind the link, which delays nothing before and behind.
func (b *Bench) on(ctx context.Context, site *lab.Site, how func(peer.Peer) opener, measure func(open []pair, missing []Row)) {
	b.Lab.SetTrip(0)
	open, missing := b.shells(ctx, site, how)
	defer closeAll(open)
	measure(open, missing)
	b.Lab.SetTrip(0)
}

func (b *Bench) farPlan() rounds.Plan {
	return rounds.Plan{Rounds: b.pick(10, 2), Block: 1, Budget: b.span(6*time.Second, 500*time.Millisecond), Warm: 1}
}

// far counts the round trips of a command.
func (b *Bench) far(ctx context.Context, title, floor string, trip time.Duration, open []pair, missing []Row) Table {
	real, err := b.farAway(trip)
	if err != nil {
		return Table{Title: title, Unit: "round trips", Note: err.Error()}
	}
	b.Log("  a round trip of %v", trip)
	return Table{
		Title: title, Unit: "round trips", Floor: floor,
		Note: fmt.Sprintf("a bare SSH request and its answer took %.2f ms", real),
		Rows: append(rows(rounds.Run(ctx, b.farPlan(), commands(open, hello)), 1/real), missing...),
	}
}

// farAway sets the time of a round trip and returns what one takes in fact, in
// milliseconds: that of a request that sshd answers at once.
func (b *Bench) farAway(trip time.Duration) (float64, error) {
	b.Lab.SetTrip(trip)
	took, err := b.Lab.Far.Trip()
	return float64(took) / float64(time.Millisecond), err
}
