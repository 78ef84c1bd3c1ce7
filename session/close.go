package session

import (
	"slices"
	"sync"
	"time"
)

// Close ends the session in order: the shell exits, background jobs go on as
// they do after a logout, and what is left of the session's own goes away on
// the machine by itself. A command that runs is hung up. Another call waits for the first.
func (s *Session) Close() error {
	s.closeOnce.Do(s.close)
	return nil
}

func (s *Session) close() {
	s.closing.Store(true)
	var told *dismissal
	select {
	case s.turn <- struct{}{}:
		if !s.lost {
			if s.typed != nil {
				within(time.Second, s.typed)
			}
			s.awaitJobs()
			// The second one counts where jobs made the shell refuse the first.
			s.typeKeys("exit\nexit\n") // the hang-up that follows does it too
			if within(nearby, s.terminal.Done()); !closed(s.terminal.Done()) {
				told = s.tellOfExit()
				within(exitGrace, s.terminal.Done())
			}
		}
	default: // a command runs
		s.cut.Store(!closed(s.terminal.Done()))
	}
	s.hangUp(told)
}

// nearby is how long the end of a shell takes most times, and its way here where that is
// short. A keeper that looks for it has to pause, and takes the processor that it needs.
const nearby = 2 * time.Millisecond

// exitGrace is how long a shell that was told to exit may take for it.
const exitGrace = time.Second

// awaitJobs waits for what the shell has only just started in the background. In bash and
// ksh93 it is of the shell's process group, which the kernel hangs up at the shell's end, and
// nohup and setsid need a moment to keep that from what they start.
func (s *Session) awaitJobs() {
	s.mu.Lock()
	k := s.keeper
	s.mu.Unlock()
	if k == nil || !s.jobs.Load() {
		return
	}
	nonce, begun := s.expectLate(k, "J", 1)
	k.tell(begunLine(nonce))
	select {
	case <-begun:
	case <-k.ended:
	case <-time.After(exitGrace + s.trip):
	}
}

// tellOfExit tells the keepers to end once the shell has, where they can see that.
func (s *Session) tellOfExit() (told *dismissal) {
	if s.sid == "" || s.config.Sudo != nil { // another user's shell may be hidden
		return nil
	}
	return s.dismiss(behindShell(s.jobs.Load()))
}

// hangUp gives everything back. The keepers are told to end, unless that was done.
func (s *Session) hangUp(told *dismissal) {
	s.holders.stop()
	orderly := s.endedInOrder()
	if told == nil {
		line := ""
		if orderly {
			line = leftJobs(s.jobs.Load())
		}
		told = s.dismiss(line)
	}
	allWithin(keeperGrace, &told.done) // one that takes nothing any more holds up who tells it
	if s.terminal != nil {
		s.terminal.Close()
	}
	for _, k := range told.keepers {
		k.close()
	}
	s.clearUp(told.keepers...)
	s.entry.Close(s.sawEnd(told.keepers))
	s.mu.Lock()
	s.parted = true
	s.mu.Unlock()
	allWithin(drainGrace, &s.pumps) // a caller's Output may never return
}

// A dismissal is the session's keepers, which are being told to end.
type dismissal struct {
	keepers []*keeper
	done    sync.WaitGroup
}

// dismiss tells each keeper its last line, if there is one, and that nobody listens any
// more. What one still has to say might not come then: it reads its streams itself.
func (s *Session) dismiss(line string) *dismissal {
	if s.looked != nil { // a short command is over before the machine's processes are looked at
		within(keeperGrace, s.looked)
	}
	s.mu.Lock()
	d := &dismissal{keepers: slices.Clone(s.retired)}
	if s.keeper != nil {
		d.keepers = append(d.keepers, s.keeper)
	}
	s.mu.Unlock()
	for _, k := range d.keepers {
		d.done.Go(func() { // ends with the keeper
			if line != "" {
				_ = k.control(line) // one that is gone does not hear it
			}
			k.release()
		})
	}
	return d
}

// endedInOrder reports whether the shell has ended by itself.
func (s *Session) endedInOrder() bool {
	if s.terminal == nil || !closed(s.terminal.Done()) {
		return false
	}
	_, err := s.terminal.Wait()
	return err == nil
}

// enroll notes a goroutine that Close waits for, and returns what it calls at its
// end. One that comes too late for that is not waited for: what it reads is closed.
func (s *Session) enroll() (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parted {
		return func() {}
	}
	s.pumps.Add(1)
	return s.pumps.Done
}

// spawn runs f beside the session.
func (s *Session) spawn(f func()) {
	leave := s.enroll()
	go func() { // ends with f, for which Close waits a moment
		defer leave()
		f()
	}()
}

// within waits for done, but not for longer than d.
func within(d time.Duration, done <-chan struct{}) {
	select {
	case <-done:
	case <-time.After(d):
	}
}

// allWithin waits for a group, but not for longer than d.
func allWithin(d time.Duration, group *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { // ends with the group
		group.Wait()
		close(done)
	}()
	within(d, done)
}

// closed reports whether done is.
func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
