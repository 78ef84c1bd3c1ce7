package session

import (
	"context"
	"sync/atomic"
	"time"
)

// An alarm rings once within silence after it was set, for whoever waits then.
// One serves all the commands of a session: to start a timer wakes the thread
// that polls, and a short command would start three in vain.
type alarm struct {
	timer *time.Timer
	rung  chan struct{}
	isSet atomic.Bool
}

func newAlarm() *alarm {
	a := &alarm{rung: make(chan struct{}, 1)}
	a.timer = time.AfterFunc(silence, a.ring)
	a.isSet.Store(true)
	return a
}

func (a *alarm) ring() {
	a.isSet.Store(false)
	select {
	case a.rung <- struct{}{}:
	default:
	}
}

func (a *alarm) set() {
	if a.isSet.Swap(true) {
		return
	}
	select {
	case <-a.rung: // it was nobody's
	default:
	}
	a.timer.Reset(silence)
}

// soon waits for a command that ends before anything else has to be looked
// after, and reports whether it was one. What it has taken notice of is still to
// be noticed.
func (s *Session) soon(ctx context.Context, r *run) bool {
	if t := r.command.Timeout; 0 < t && t < 2*silence {
		return false
	}
	if t := r.command.Idle; 0 < t && t < 2*silence {
		return false
	}
	s.alarm.set()
	select {
	case <-r.wake:
		if r.complete(s.progress(r)) {
			return true
		}
		r.notice()
	case level := <-r.pursued:
		r.pursue(level)
	case <-s.alarm.rung:
	case <-s.ended:
	case <-s.terminal.Done():
		r.noteLeft()
	case <-ctx.Done():
	}
	return false
}
