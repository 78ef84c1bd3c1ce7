package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gateway/daemon/api"
	"gateway/session"
	"gateway/transport"
)

// idle waits until no command runs.
func (s *live) idle(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.until(ctx, func() bool { return !s.runs }) // the caller has the context
}

// watch waits for the shell's end, and ends the session with it, unless there is
// another shell in its place by then.
func (s *live) watch(engine *session.Session) {
	<-engine.Done()
	ends, closed := s.endsWith(engine)
	if !ends {
		return
	}
	exit, err := engine.Exit()
	s.finish(engine, func(info *api.Session) string {
		switch {
		case closed && !s.lost:
			info.State = api.Closed
			return "closed"
		case closed:
			info.State = api.Lost
			return "lost"
		case err != nil:
			info.State, info.Reason = api.Lost, err.Error()
			if !errors.Is(err, transport.ErrLost) {
				info.State = api.Closed
			}
			return string(info.State)
		}
		info.State, info.Reason = api.Closed, "its shell was killed by a signal"
		if exit.Signal == "" || exit.Code > 128 {
			info.ExitCode, info.Reason = &exit.Code, fmt.Sprintf("its shell ended with status %d", exit.Code)
		}
		if engine.LoggedOut() {
			info.Reason += ", as it was idle for longer than its TMOUT allows"
		}
		return "exited"
	})
}

// endsWith waits until nothing runs: a command ends with its shell. It reports
// whether the session ends with it, too, and lets nothing begin then, and whether
// somebody has closed it. A fresh shell that was asked for is waited for.
func (s *live) endsWith(engine *session.Session) (ends, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.until(context.Background(), func() bool { return s.engine != engine || !s.runs && s.resets == 0 }) // which never ends
	if s.engine != engine {
		return false, false
	}
	closed = s.session.Reason != ""
	s.closeLocked("its shell has ended")
	return true, closed
}

// awaitEndLocked waits until it is known how the session ended, if a command has ended its
// shell. The session is locked.
func (s *live) awaitEndLocked(ctx context.Context) error {
	return s.until(ctx, func() bool { return !s.ending })
}

// awaitEnds waits for the sessions whose shell a command has just ended: who has been told
// so finds none of them idle.
func (d *Daemon) awaitEnds(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second) // one that is slow to end holds up nobody
	defer cancel()
	d.mu.Lock()
	open := slices.Collect(maps.Values(d.sessions))
	d.mu.Unlock()
	for _, s := range open {
		s.mu.Lock()
		_ = s.awaitEndLocked(ctx)
		s.mu.Unlock()
	}
}

// closeLocked lets nothing begin any more. The first reason counts.
func (s *live) closeLocked(reason string) { s.session.Reason = cmp.Or(s.session.Reason, reason) }

// close ends the session, and what runs in it. It may be called more than once,
// and waits for the end.
func (s *live) close(reason string) api.Session {
	info, _ := s.closeUnless(reason, func() error { return nil })
	return info
}

// finish makes the session one of the past. It is called once, by watch.
func (s *live) finish(engine *session.Session, how func(*api.Session) (event string)) {
	s.end()
	engine.Close()
	s.mu.Lock()
	s.timer.Stop()
	s.session.ClosedAt = new(stamp())
	s.holder, s.session.Attached = "", ""
	event := how(&s.session)
	s.noteLocked(event, nil)
	info := s.infoLocked()
	s.mu.Unlock()
	if err := s.log.Close(); err != nil {
		s.daemon.config.Log.Warn("transcript", "session", info.ID, "error", err)
	}
	if err := s.record.saveSession(info); err != nil {
		s.daemon.config.Log.Warn("record of a session", "session", info.ID, "error", err)
	}
	s.record.close()
	s.release()
	s.daemon.retire(info)
	s.daemon.events.publish(event, info)
	s.mu.Lock()
	s.ending = false // how it ended is known
	close(s.over)
	s.happened()
	s.mu.Unlock()
}

// closeFree is close for what a person may have taken over: it is theirs until they
// detach.
func (s *live) closeFree(reason string) {
	_, _ = s.closeUnless(reason, func() error { // of a session that is over there is nothing to close
		return s.until(s.ctx, func() bool { return s.holder == "" })
	})
}

// closeFor is close for a caller, who is refused while somebody is attached.
func (s *live) closeFor(scope string) (api.Session, error) {
	return s.closeUnless("closed", func() error { return s.takenLocked(scope, "") })
}

// closeUnless is close, unless something, which is called with the session locked,
// speaks against it.
func (s *live) closeUnless(reason string, against func() error) (api.Session, error) {
	s.mu.Lock()
	err := against()
	if err == nil {
		s.closeLocked(reason) // nobody attaches from here on
	}
	engine := s.engine // no other one comes: see unlessClosing
	s.mu.Unlock()
	if err != nil {
		return api.Session{}, err
	}
	s.end()
	engine.Close() // the end of watch
	<-s.over
	return s.info(), nil
}

// restTime is how long a session keeps its transcript open behind a command: the next
// one may come at once.
const restTime = 10 * time.Second

// startTimer comes when a session becomes idle. It is locked.
func (s *live) startTimer() { s.timer.Reset(min(restTime, time.Duration(s.session.TTL))) }

// expire closes the session once it has been idle for its TTL. Its transcript rests,
// without the lock: to close a file may take as long as to write it.
func (s *live) expire() {
	s.log.Rest()
	_, _ = s.closeUnless(fmt.Sprintf("idle for %v", time.Duration(s.session.TTL)), s.notIdle)
}

// notIdle speaks against that. The session is locked.
func (s *live) notIdle() error {
	left := time.Duration(s.session.TTL) - time.Since(s.used)
	switch {
	case s.runs || s.holder != "" || s.session.Reason != "": // their ends set the timer
	case left > 0:
		s.timer.Reset(left)
	default:
		return nil
	}
	return errors.New("it is in use")
}
