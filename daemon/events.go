package daemon

import (
	"context"
	"sync"

	"gateway/daemon/api"
)

// keptEvents is how many events a reader may be behind.
const keptEvents = 1024

// events keeps the last events for any number of readers. A reader that is slow
// misses some and is told; it stalls nobody.
type events struct {
	mu   sync.Mutex
	ring []api.Event // of consecutive numbers
	next int64
	wake bell // rung with each event
}

func (e *events) publish(name string, s api.Session) {
	s = outline(s)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ring = append(e.ring, api.Event{Seq: e.next, Time: stamp(), Event: name, Session: &s})
	if len(e.ring) > 2*keptEvents {
		e.ring = append([]api.Event(nil), e.ring[keptEvents:]...)
	}
	e.next++
	e.wake.ring()
}

// follow calls each with the events from since on until each fails or ctx ends.
// Negative means from now on.
func (e *events) follow(ctx context.Context, since int64, each func(api.Event) error) error {
	e.mu.Lock()
	if since < 0 || since > e.next {
		since = e.next
	}
	for {
		oldest := e.next - int64(len(e.ring))
		var missed int64
		if since < oldest {
			missed, since = oldest-since, oldest
		}
		fresh := e.ring[since-oldest:]
		wake := e.wake.next()
		e.mu.Unlock() // what stands in the ring is never changed
		if missed > 0 {
			if err := each(api.Event{Seq: since, Time: stamp(), Event: "dropped", Dropped: missed}); err != nil {
				return err
			}
		}
		for _, event := range fresh {
			if err := each(event); err != nil {
				return err
			}
		}
		since += int64(len(fresh))
		if len(fresh) == 0 {
			select {
			case <-wake:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		e.mu.Lock()
	}
}
