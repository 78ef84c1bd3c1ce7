package work

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gateway/bench/peer"
	"gateway/bench/rounds"
)

// FanTitle is that of the table for a number of hosts, cold or warm.
func FanTitle(hosts int, warm bool) string {
	how := "every connection to be made"
	if warm {
		how = "connections open"
	}
	return fmt.Sprintf("%d hosts, %s", hosts, how)
}

// Refused is the title of the table about a server with limits.
const Refused = "hosts of 100 that failed, 100 at a time, with sshd's default limits"

// sizes are the numbers of hosts.
func (b *Bench) sizes() []int {
	if b.Quick {
		return []int{6}
	}
	return []int{10, 100, 500}
}

// speak is what every host is to say.
const speak = "echo " + peer.Said

// mastered is how many hosts a crowd with ControlMaster is measured with: a master
// is a process, and hundreds of them take minutes to make.
const mastered = 100

// fan is work (e).
func fan(ctx context.Context, b *Bench) []Table {
	var tables []Table
	for _, n := range b.sizes() {
		tables = append(tables, b.fanCold(ctx, n))
	}
	for _, n := range b.sizes() {
		tables = append(tables, b.fanWarm(ctx, n))
	}
	return append(tables, b.refused(ctx))
}

func (b *Bench) fanCold(ctx context.Context, n int) Table {
	b.Log("  %d hosts, cold", n)
	able, missing := b.able(func(p peer.Peer) bool { return p.Fan != nil })
	var contenders []rounds.Contender
	for _, p := range able {
		contenders = append(contenders, rounds.Contender{Name: p.Name, Do: func(ctx context.Context) error {
			c, err := p.Fan(ctx, b.Lab.Many, n, peer.Forks, speak)
			if err = complete(n)(c, err); err == nil {
				b.peaks[peak{p.Name, n}] = max(b.peaks[peak{p.Name, n}], c.Peak)
			}
			return err
		}})
	}
	return Table{
		Title: FanTitle(n, false), Unit: "s", Floor: peer.ChannelName, Note: fmt.Sprintf("%d at a time", peer.Forks),
		Rows: append(rows(rounds.Run(ctx, b.fanPlan(n), contenders), 1e-3), missing...),
	}
}

// fanPlan gives hundreds of hosts the time for more than one turn.
func (b *Bench) fanPlan(n int) rounds.Plan {
	budget := 8 * time.Second
	if n > mastered {
		budget = 25 * time.Second
	}
	return rounds.Plan{Rounds: b.pick(5, 1), Block: 1, Budget: b.span(budget, time.Second), Limit: 5 * time.Minute}
}

// complete makes an error of hosts that said nothing.
func complete(n int) func(peer.Crowd, error) error {
	return func(c peer.Crowd, err error) error {
		if err == nil && c.OK != n {
			err = fmt.Errorf("%d of %d hosts answered", c.OK, n)
		}
		return err
	}
}

// fanWarm has contenders take turns, but where what all of them hold open would be in
// each one's way: with hundreds of hosts on this machine, they come one after the other.
func (b *Bench) fanWarm(ctx context.Context, n int) Table {
	b.Log("  %d hosts, warm", n)
	able, missing := b.able(func(p peer.Peer) bool { return p.FanWarm != nil })
	t := Table{Title: FanTitle(n, true), Unit: "s", Floor: peer.ChannelName, Note: fmt.Sprintf("%d at a time", peer.Forks)}
	together := [][]peer.Peer{able}
	if n > mastered {
		together = slices.Collect(slices.Chunk(able, 1))
	}
	for _, some := range together {
		t.Rows = append(t.Rows, b.fanWarmOf(ctx, some, n)...)
	}
	t.Rows = append(t.Rows, missing...)
	return t
}

func (b *Bench) fanWarmOf(ctx context.Context, able []peer.Peer, n int) []Row {
	defer b.calm()
	var contenders []rounds.Contender
	var missing []Row
	for _, p := range able {
		if !p.Ours && p.Name != peer.ChannelName && n > mastered {
			missing = append(missing, Row{Peer: p.Name, Err: fmt.Sprintf("%v: %d control masters would take minutes to make", errNone, n)})
			continue
		}
		open, err := p.FanWarm(ctx, b.Lab.Many, n)
		if err != nil {
			missing = append(missing, Row{Peer: p.Name, Err: text(err)})
			continue
		}
		defer open.Close()
		contenders = append(contenders, rounds.Contender{Name: p.Name, Do: func(ctx context.Context) error {
			return complete(n)(open.Run(ctx, speak))
		}})
	}
	return append(rows(rounds.Run(ctx, b.fanPlan(n), contenders), 1e-3), missing...)
}

// calm waits until what hundreds of hosts had open has ended: all of it is on this
// machine, and keeps it busy for some seconds.
func (b *Bench) calm() {
	for begun := time.Now(); len(b.Lab.Many.Server.Processes()) > 0 && time.Since(begun) < time.Minute; {
		time.Sleep(100 * time.Millisecond)
	}
}

// patience is after how much time nobody is tried once more.
const patience = 10 * time.Second

// refused counts the hosts that fail where a server turns some away: sshd begins to
// at ten that have not logged in yet (MaxStartups 10:30:100).
func (b *Bench) refused(ctx context.Context) Table {
	n := b.pick(100, 15)
	b.Log("  %d at once against a default sshd", n)
	t := Table{Title: Refused, Unit: "hosts"}
	able, missing := b.able(func(p peer.Peer) bool { return p.Fan != nil })
	t.Rows = missing
	site, err := b.Lab.Default("strict", n)
	if err != nil {
		t.Note = err.Error()
		return t
	}
	for _, p := range able {
		var failed []float64
		var none error
		for begun := time.Now(); len(failed) < b.pick(3, 1) && time.Since(begun) < patience; {
			within, cancel := context.WithTimeout(ctx, 5*time.Minute)
			c, err := p.Fan(within, site, n, n, speak) // its error is the hosts that failed
			cancel()
			if c.OK == 0 { // or what it could not do at all
				none = err
			}
			failed = append(failed, float64(n-c.OK))
		}
		t.Rows = append(t.Rows, Row{Peer: p.Name, Summary: rounds.Summarise(failed), Err: text(none)})
	}
	return t
}
