package daemon

import (
	"context"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/internal/transcript"
)

// followRead is how much a follower is sent at once.
const followRead = 64 << 10

// A follower goes along a session's transcript, and sends what stands there and
// what happened, in the order in which it came. What it is too slow for it misses,
// and is told; but a command waits for the caller that started it, see [pace].
type follower struct {
	live   *live
	at     int64        // the next byte
	note   int          // the next note, counted from the session's beginning
	of     *api.Command // to follow to its end; nil: the session
	limit  int          // how many bytes of each stream a result comes with
	number int64
	send   func(api.Event) error
}

// follow sends what happens from a cursor on; negative means from now on. It
// ends with the command, with the session, or with ctx. A result comes with as much
// of each stream as limit says; see [api.Run].
func (s *live) follow(ctx context.Context, since int64, command *api.Command, limit int, line func(any) error) error {
	f := &follower{live: s, at: since, of: command, limit: limit}
	f.send = func(e api.Event) error {
		f.number++
		e.Seq = f.number
		return line(e)
	}
	s.mu.Lock()
	if since < 0 {
		f.at = int64(s.log.End())
	}
	f.note = s.notes.since(f.at, command)
	s.mu.Unlock()
	if command != nil {
		s.pace.join(f)
		defer s.pace.leave(f)
	}
	for {
		changed, done, err := f.step()
		if err != nil || done {
			return err
		}
		if changed == nil {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// step sends the next thing. If there is none, it returns what to wait for.
func (f *follower) step() (changed <-chan struct{}, done bool, err error) {
	s := f.live
	s.mu.Lock()
	over, end, wake := isClosed(s.over), int64(s.log.End()), s.said.next()
	next, missed := s.notes.next(f.note)
	f.note += missed
	if next != nil {
		end = next.at
	}
	var result *api.Command // of the command that is followed, which is over
	if c := f.of; c != nil && c.Over() {
		end = min(end, c.To)
		if next == nil || next.at > c.To || next.event.Event == "result" && next.command == c {
			result = s.nowLocked(c)
		}
	}
	s.mu.Unlock()
	switch {
	case missed > 0 && f.of == nil:
		return nil, false, f.send(api.Event{Time: stamp(), Event: "dropped", Missed: missed, Next: f.at})
	case f.at < end:
		return nil, false, f.output(end)
	case result != nil:
		return nil, true, f.tell(api.Event{Time: stamp(), Event: "result", Command: result, Next: end})
	case next != nil:
		f.note++
		if f.of != nil && next.command != f.of && next.command != nil {
			return nil, false, nil
		}
		return nil, false, f.tell(next.event)
	}
	return wake, over, nil
}

// isClosed reports whether a channel is.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// tell sends an event, a result with its streams.
func (f *follower) tell(e api.Event) error {
	if e.Event == "result" {
		c := f.live.filled(*e.Command, f.limit)
		e.Command = &c
	}
	return f.send(e)
}

// output sends a page of the transcript. What can't be read is missed, with its cause: how
// the command ends is told all the same.
func (f *follower) output(end int64) error {
	page, unread := f.live.log.View(transcript.Cursor(f.at), transcript.Cursor(end)).Read(transcript.Cursor(f.at), followRead)
	if page.Dropped > 0 {
		why := whyDropped(f.live.log, f.at, f.at+page.Dropped)
		if err := f.send(api.Event{Time: stamp(), Event: "dropped", Dropped: page.Dropped, Why: why}); err != nil {
			return err
		}
	}
	for _, c := range page.Chunks {
		p := piece(c)
		if err := f.send(api.Event{Time: p.Time, Event: p.Stream, Piece: &p, Next: int64(c.End())}); err != nil {
			return err
		}
	}
	f.at = max(int64(page.Next), f.at)
	if unread != nil {
		if err := f.send(api.Event{Time: stamp(), Event: "dropped", Dropped: end - f.at, Why: gateway.NewJSONError(unread)}); err != nil {
			return err
		}
	}
	if unread != nil || len(page.Chunks) == 0 {
		f.at = end // nothing of it is left
	}
	f.live.pace.move(f)
	return nil
}
