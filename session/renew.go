package session

import (
	"cmp"
	"context"
)

// renewKeeper turns to new FIFOs, because somebody may still hold the old
// ones. What the old keeper still carries is background output.
func (s *Session) renewKeeper(ctx context.Context) error {
	k, err := s.anotherKeeper(ctx)
	if err != nil {
		return err
	}
	old, oldest, err := s.adopt(k)
	if err != nil {
		if k != nil {
			k.pipe.Close() // nobody wants it
		}
		return err
	}
	if k != nil {
		s.install(k)
		k.takeOver(old, s.config.Reopen)
	}
	_ = old.retire() // it may have died, and is through then
	if oldest != nil {
		oldest.release()
		s.spawn(func() {
			oldest.close()
			s.clearUp(oldest)
		})
	}
	return nil
}

// outdate has the keeper, which may be the only one that there can be, tell what earlier
// commands have left from what the next one starts.
func (s *Session) outdate() {
	s.shared = false
	if s.keeper.control(outdated) == nil { // one that is gone is noticed elsewhere
		s.awaitAnswer(s.keeper, 1, s.trip)
	}
}

// anotherKeeper starts a keeper; nil where the machine has no place for it.
func (s *Session) anotherKeeper(ctx context.Context) (*keeper, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.OpenTimeout, errOpenTimeout)
	defer cancel()
	k, err := s.openKeeper(ctx)
	if err != nil && ctx.Err() == nil {
		// dropbear 2022.83 ends one channel in six that is opened while another one
		// is being closed. Nothing has run on it.
		k, err = s.openKeeper(ctx)
	}
	return k, err
}

// maxRetired is how many channels may carry background output. The oldest is
// released beyond it: its jobs go on, what they write is read into the void.
const maxRetired = 2

// adopt makes k the session's keeper, and returns the one that it replaces, and
// the one that is to be released. Close, once it has begun, has let go of the
// keepers that it saw, and gets no other.
func (s *Session) adopt(k *keeper) (old, oldest *keeper, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		return nil, nil, hasEnded()
	}
	old = s.keeper
	s.keeper, s.merged = k, k == nil
	s.late, s.rotate, s.shared = false, false, false
	s.retired = append(s.retired, old)
	if len(s.retired) > maxRetired {
		oldest, s.retired = s.retired[0], s.retired[1:]
	}
	return old, oldest, nil
}

// takeOver keeps for the session what the old keeper has kept, and clears up
// behind one that was killed.
func (k *keeper) takeOver(old *keeper, reopen bool) {
	if old.dir == "" {
		return
	}
	if reopen && k.dir != "" {
		_ = k.control(k.inheritExports(old))
	}
	if old.isGone() {
		_ = k.control("rm -rf " + old.dir)
	}
}

// clearUp removes what keepers have left that could not do it and have no other behind
// them. The shell may be gone as well, so it takes a program of its own.
func (s *Session) clearUp(keepers ...*keeper) {
	dirs := ""
	for _, k := range keepers {
		if dir := cmp.Or(k.feed, k.dir); dir != "" && k.failed() {
			dirs += " " + dir
		}
	}
	if dirs == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), keeperGrace)
	defer cancel()
	pipe, err := s.transport.Pipe(s.together(ctx), inSh("exec rm -rf"+dirs))
	if err != nil {
		return // the next session of the account does it
	}
	within(keeperGrace, pipe.Done())
	pipe.Close()
}
