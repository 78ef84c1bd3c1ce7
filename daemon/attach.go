package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"gateway/daemon/api"
	"gateway/session"
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

// acknowledge has a lost session listed no more.
func (d *Daemon) acknowledge(s api.Session) api.Session {
	s.State = api.Closed
	d.rewrite(s.ID, func(past *api.Session) { past.State = api.Closed })
	return s
}
