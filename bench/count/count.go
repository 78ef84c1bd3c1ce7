// Package count counts what a command costs in things that do not depend on the
// machine: allocations, system calls, bytes and round trips. A baseline in the
// repository holds what they are to be.
package count

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"gateway/bench/lab"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// Counts are the figures, by name.
type Counts map[string]float64

// The names, and by how much each may be more than the baseline: a part of it, and
// a number. What schedulers decide (how many reads a packet is cut into) moves by a
// tenth from run to run; what the code decides does not move at all.
var tolerances = []struct {
	name       string
	part, more float64
}{
	{"allocations of a command, over SSH", 0.1, 2},
	{"allocations of a command, on this machine", 0.1, 2},
	{"bytes allocated by a command, over SSH", 0.15, 512},
	{"bytes allocated by a command, on this machine", 0.15, 512},
	{"bytes typed for a command", 0, 8},
	{"bytes up the wire for a command", 0.02, 16},
	{"bytes down the wire for a command", 0.05, 32},
	{"system calls of gateway for a command, over SSH", 0.25, 2},
	{"system calls of gateway for a command, on this machine", 0.25, 2},
	{"system calls of the shell for a command", 0.4, 2}, // its reads are as many as the pieces in which a line comes
	{"round trips of a command", 0, 0.5},
	{"round trips of a session on a warm connection", 0, 0.5},
	{"round trips from nothing to the first result", 0, 0.5},
}

const (
	warmUp  = 50
	counted = 300
)

// command is the one that is counted.
var command = session.Command{Text: "echo hi"}

// Rounds is how often everything is counted, and at most, where something seems worse.
// The least counts: a busy machine only ever adds, as when a session decides that its
// host is too slow for a short frame, or a goroutine is woken on the other processor.
const Rounds, MostRounds = 2, 6

// Take counts everything once more, and keeps what is less. self is this program, which
// strace starts again.
func (c Counts) Take(ctx context.Context, l *lab.Lab, self string) error {
	again := Counts{}
	if err := errors.Join(again.memory(ctx, l), again.typed(ctx), again.wire(ctx, l), again.calls(l, self), again.trips(ctx, l)); err != nil {
		return err
	}
	for name, value := range again {
		if old, known := c[name]; !known || value < old {
			c[name] = value
		}
	}
	return nil
}

// within opens a session, has it do a few commands, and gives it to do.
func within(ctx context.Context, t transport.Transport, do func(run func() error) error) error {
	s, err := session.Open(ctx, t, session.Config{Shell: lab.Shell})
	if err != nil {
		return err
	}
	defer s.Close()
	run := func() error {
		r, err := s.Run(ctx, command)
		if err == nil && string(r.Stdout) != "hi\n" {
			err = fmt.Errorf("%q came", r.Stdout)
		}
		return err
	}
	if err := repeat(warmUp, run); err != nil {
		return err
	}
	return do(run)
}

func repeat(n int, run func() error) error {
	for range n {
		if err := run(); err != nil {
			return err
		}
	}
	return nil
}

func (c Counts) memory(ctx context.Context, l *lab.Lab) error {
	far, err := l.Near.Dial(ctx)
	if err != nil {
		return err
	}
	defer far.Close()
	for where, t := range map[string]transport.Transport{"over SSH": far, "on this machine": local.New(local.Config{})} {
		err := within(ctx, t, func(run func() error) error {
			defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it empties the pools
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := repeat(counted, run)
			runtime.ReadMemStats(&after)
			c["allocations of a command, "+where] = float64(after.Mallocs-before.Mallocs) / counted
			c["bytes allocated by a command, "+where] = float64(after.TotalAlloc-before.TotalAlloc) / counted
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// typed counts what is written to the shell's terminal.
func (c Counts) typed(ctx context.Context) error {
	t := &typist{Transport: local.New(local.Config{})}
	return within(ctx, t, func(run func() error) error {
		before := t.bytes.Load()
		err := repeat(counted, run)
		c["bytes typed for a command"] = float64(t.bytes.Load()-before) / counted
		return err
	})
}

// wire counts what goes through the proxy, with the protocol's own.
func (c Counts) wire(ctx context.Context, l *lab.Lab) error {
	t, err := l.Far.Dial(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	return within(ctx, t, func(run func() error) error {
		up, down := l.Carried()
		err := repeat(counted, run)
		moreUp, moreDown := l.Carried()
		c["bytes up the wire for a command"] = float64(moreUp-up) / counted
		c["bytes down the wire for a command"] = float64(moreDown-down) / counted
		return err
	})
}

// brief and lengthy are two lengths of a round trip. What something takes more over the
// longer one is its round trips alone: what processors add to each, on a slow machine
// as much as a whole trip, is the same in both.
const brief, lengthy = 50 * time.Millisecond, 150 * time.Millisecond

func (c Counts) trips(ctx context.Context, l *lab.Lab) error {
	warm, err := l.Far.Dial(ctx)
	if err != nil {
		return err
	}
	defer warm.Close()
	return within(ctx, warm, func(run func() error) error {
		defer l.SetTrip(0)
		var open []func() error // what is closed when nobody looks at the clock
		defer func() {
			for _, end := range slices.Backward(open) {
				_ = end() // nothing depends on it
			}
		}()
		enter := func(t transport.Transport) (*session.Session, error) {
			s, err := session.Open(ctx, t, session.Config{Shell: lab.Shell})
			if err == nil {
				open = append(open, s.Close)
			}
			return s, err
		}
		for name, do := range map[string]func() error{
			"round trips of a command": run,
			"round trips of a session on a warm connection": func() error {
				_, err := enter(warm)
				return err
			},
			"round trips from nothing to the first result": func() error {
				t, err := l.Far.Dial(ctx)
				if err != nil {
					return err
				}
				open = append(open, t.Close)
				s, err := enter(t)
				if err != nil {
					return err
				}
				_, err = s.Run(ctx, command)
				return err
			},
		} {
			shorter, err := best(l, brief, do)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			longer, err := best(l, lengthy, do)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			c[name] = float64(longer-shorter) / float64(lengthy-brief)
		}
		return nil
	})
}

// best is the least time of a few that something takes over trips of that length.
func best(l *lab.Lab, trip time.Duration, do func() error) (time.Duration, error) {
	l.SetTrip(trip)
	least := time.Hour
	for range 3 {
		begun := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		least = min(least, time.Since(begun))
	}
	return least, nil
}
