package daemon

import (
	"cmp"
	"context"
	"crypto/rand"

	"gateway/transport"
)

// attach gives the terminal to one person: commands and keys of others are
// refused until detach of what it returns.
func (s *live) attach(who string) (id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.openLocked(); err != nil {
		return "", err
	}
	if err := s.heldLocked(""); err != nil {
		return "", err
	}
	s.holder, s.session.Attached = rand.Text(), cmp.Or(who, "somebody")
	s.daemon.events.publish("state", s.infoLocked())
	return s.holder, nil
}

// detach ends an attachment, once. The session's end does it, too.
func (s *live) detach(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == "" || s.holder != id {
		return
	}
	s.holder, s.session.Attached = "", ""
	s.happened()
	s.use()
	if !s.runs {
		s.startTimer()
	}
	s.daemon.events.publish("state", s.infoLocked())
}

// resize tells the terminal its size. Where the shell is being replaced, that is the
// fresh one's: the old one has none any more, or not for long.
func (s *live) resize(ctx context.Context, size transport.Size) error {
	if err := checkSize(size); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		err := s.until(ctx, func() bool {
			return s.session.State.Over() || s.resets == 0 && !isClosed(s.engine.Done())
		})
		if err == nil {
			err = s.openLocked()
		}
		if err != nil {
			return err
		}
		engine := s.engine
		s.unlocked(func() { err = engine.Resize(size) }) // a link may be slow
		if err == nil || !isClosed(engine.Done()) {
			return err
		}
	}
}
