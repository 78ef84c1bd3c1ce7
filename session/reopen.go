package session

import (
	"context"
	"fmt"

	"gateway/transport"
)

// Reopen opens a session in place of one whose shell is gone, on the same
// transport: with the same configuration and name, in the directory where the
// last command ended that told it, and with the variables that were exported
// then. What was not exported, functions and options are lost. It needs
// [Config.Reopen]. Whatever comes of it, s is closed.
func (s *Session) Reopen(ctx context.Context) (*Session, error) {
	defer s.Close()
	gone := func(format string, args ...any) error {
		return &transport.Error{Code: "session.closed", Message: "session: reopen: " + fmt.Sprintf(format, args...), Hint: "open another session"}
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	default:
		return nil, &transport.Error{Code: "session.busy", Message: "session: reopen: a command is running", Hint: "wait for it, or interrupt it", Err: ErrBusy}
	}
	k := s.keeper
	if !s.config.Reopen || k == nil || k.dir == "" || k.isGone() {
		return nil, gone("what was exported is not known")
	}
	s.mu.Lock()
	config := s.config
	s.mu.Unlock()
	config.Cwd = "" // where it began may be gone
	fresh, err := Open(ctx, s.transport, config)
	if err != nil {
		return nil, err
	}
	// A shell may refuse single variables, which are readonly in every shell of
	// its kind; the directory is what has to be right.
	restore := "[ ! -e " + k.exports() + " ] || " + fresh.dialect.dot + " " + k.exports() + " 2>/dev/null; " +
		fresh.dialect.cd + " " + directory(s.cwd)
	r, err := fresh.Run(ctx, Command{Text: restore})
	if err == nil && r.ExitCode != 0 {
		err = noDirectory(s.cwd)
	}
	if err != nil {
		fresh.Close()
		return nil, err
	}
	return fresh, nil
}
