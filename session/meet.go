package session

import "context"

// A server may start each channel in namespaces of its own, as a container for each does.
// The shell then finds other files, or other processes, behind the names that the keeper
// tells, and what is its number there may be anybody's number to the keeper.

// meet has the shell look for the keeper where their mounts differ, before either is told of
// the other. That takes a round trip. Where they don't meet, the terminal carries everything.
// Without a terminal nothing could, so there they are believed to.
func (s *Session) meet(ctx context.Context, k *keeper) error {
	if k.mounts == s.mounts || s.tty == "" {
		return nil
	}
	s.turnTo(nil)
	r, err := s.Run(ctx, Command{Text: "[ " + k.runner() + " -ef " + k.dir + "/r ]"})
	if err == nil && r.ExitCode == 0 {
		s.turnTo(k)
		return nil
	}
	k.release()
	s.spawn(k.close)
	return err
}

// turnTo makes a keeper the session's. Without one the terminal carries everything.
func (s *Session) turnTo(k *keeper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keeper, s.merged = k, k == nil
}
