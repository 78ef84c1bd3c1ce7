package daemon

import (
	"context"
	"errors"
	"fmt"

	"gateway/session"
	"gateway/transport"
)

// reset puts a fresh shell in the place of the session's, in the same directory
// and with the same exported variables. What runs is ended. Once that is over,
// the caller's end does not stop it: there would be no shell.
func (s *live) reset(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.heldLocked(""); err != nil {
		return err
	}
	s.resets++ // from here on the shell's end is not the session's
	s.ending = false
	if s.stop != nil {
		s.stop()
	}
	s.happened()
	err := s.until(ctx, func() bool { return !s.runs })
	if err == nil {
		err = s.openLocked()
	}
	if err == nil {
		err = s.heldLocked("") // somebody may have attached meanwhile
	}
	if err == nil {
		err = s.refresh()
	}
	s.resets--
	s.happened() // watch may find the shell ended
	return err
}

// refresh replaces the shell. The session is locked, but while the fresh one
// comes. Without one it is over.
func (s *live) refresh() error {
	s.runs = true
	engine := s.engine
	var fresh *session.Session
	var err error
	s.unlocked(func() { fresh, err = engine.Reopen(s.ctx) })
	fresh = s.unlessClosing(fresh)
	s.runs = false
	switch {
	case fresh != nil:
		s.replace(fresh)
		return nil
	case s.session.Reason != "": // meanwhile, which has ended the fresh shell, or its coming
		return s.openLocked()
	}
	s.lost = errors.Is(err, transport.ErrLost)
	s.closeLocked(fmt.Sprintf("it could not be reset: %v", err))
	return err
}

// unlessClosing returns a fresh shell to go on with. Where the session is being closed
// that one goes, too: close has the old one, and waits for its end.
func (s *live) unlessClosing(fresh *session.Session) *session.Session {
	if fresh == nil || s.session.Reason == "" {
		return fresh
	}
	s.unlocked(func() { fresh.Close() })
	return nil
}

// replace goes on with another shell. The session is locked, and nothing runs.
func (s *live) replace(fresh *session.Session) {
	s.engine = fresh
	s.use()
	s.startTimer()
	s.noteLocked("reopened", nil)
	s.daemon.events.publish("reopened", s.infoLocked())
	go s.watch(fresh) // ends with the session
}
