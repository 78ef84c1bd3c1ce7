package daemon

import (
	"context"
	"time"

	"gateway/daemon/api"
	"gateway/internal/transcript"
)

// followRead is how much a follower is sent at once.
const followRead = 64 << 10

// A follower goes along a session's transcript, and sends what stands there and
// what happened, in the order in which it came. It holds nobody up: what it is
// too slow for it misses, and is told.
type follower struct {
	live   *live
	at     int64  // the next byte
	note   int    // the next note, counted from the session's beginning
	of     string // the command to follow to its end; empty: the session
	number int64
	send   func(api.Event) error
}

// follow sends what happens from a cursor on; negative means from now on. It
// ends with the command, with the session, or with ctx.
func (s *live) follow(ctx context.Context, since int64, command string, line func(any) error) error {
	f := &follower{live: s, at: since, of: command}
	f.send = func(e api.Event) error {
		f.number++
		e.Seq = f.number
		return line(e)
	}
	s.mu.Lock()
	if since < 0 {
		f.at = int64(s.log.End())
	}
	f.note = s.forgotten
	for _, n := range s.notes {
		if n.at >= f.at && (command == "" || n.of(command)) {
			break
		}
		f.note++
	}
	s.mu.Unlock()
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
		case <-s.over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (n note) of(command string) bool {
	return n.event.Command != nil && n.event.Command.ID == command
}

// step sends the next thing. If there is none, it returns what to wait for.
func (f *follower) step() (changed <-chan struct{}, done bool, err error) {
	s := f.live
	s.mu.Lock()
	end, wake := int64(s.log.End()), s.changed
	var next *note
	f.note = max(f.note, s.forgotten)
	if i := f.note - s.forgotten; i < len(s.notes) {
		next = &s.notes[i] // never changed
		end = next.at
	}
	s.mu.Unlock()
	switch {
	case f.at < end:
		return nil, false, f.output(end)
	case next != nil:
		f.note++
		if f.of != "" && !next.of(f.of) && next.event.Session == nil {
			return nil, false, nil
		}
		event := next.event
		if event.Event == "result" {
			c := s.filled(*event.Command, resultLimit)
			event.Command = &c
			done = f.of != ""
		}
		return nil, done, f.send(event)
	}
	select {
	case <-s.over:
		return nil, true, nil
	default:
		return wake, false, nil
	}
}

// output sends a page of the transcript.
func (f *follower) output(end int64) error {
	page, err := f.live.log.View(transcript.Cursor(f.at), transcript.Cursor(end)).Read(transcript.Cursor(f.at), followRead)
	if err != nil {
		return recordError(err)
	}
	if page.Dropped > 0 {
		if err := f.send(api.Event{Time: time.Now(), Event: "dropped", Dropped: page.Dropped}); err != nil {
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
	if len(page.Chunks) == 0 {
		f.at = end // nothing of it is left
	}
	return nil
}
