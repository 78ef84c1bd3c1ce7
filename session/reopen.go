package session

import (
	"context"
	"path"
	"time"
)

// Reopen opens a session in place of one whose shell is gone, on the same
// transport: with the same configuration and name, in the directory where the
// last command ended that told it, and with the variables that were exported
// then. What was not exported, functions and options are lost. It needs
// [Config.Reopen]. Whatever comes of it, s is closed: afterwards the error wraps
// [ErrClosed].
func (s *Session) Reopen(ctx context.Context) (*Session, error) {
	defer s.Close()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	default:
		if s.closing.Load() { // Close keeps the turn
			return nil, hasEnded()
		}
		return nil, failure(codeBusy, ErrBusy, "wait for it, or interrupt it", "reopen: a command is running")
	}
	s.leaveShell(ctx)
	k := s.keeper
	if !s.config.Reopen || k == nil || k.dir == "" || k.isGone() {
		return nil, failure(codeClosed, nil, hintClosed, "reopen: what was exported is not known")
	}
	s.mu.Lock()
	config := s.config
	s.mu.Unlock()
	config.Cwd = "" // where it began may be gone
	fresh, err := Open(ctx, s.transport, config)
	if err != nil {
		return nil, err
	}
	if err := fresh.restore(ctx, k.exports(), s.cwd); err != nil {
		fresh.Close()
		return nil, err
	}
	return fresh, nil
}

// leaveShell ends the shell, if it lives. It writes down what is exported behind a command's
// marks: once it has ended, that has been done. A shell with stopped jobs heeds the second exit.
func (s *Session) leaveShell(ctx context.Context) {
	_, _ = s.runNext(ctx, Command{Text: `\exit;\exit`, Timeout: leaveGrace + s.trip})
}

// leaveGrace is how long a shell may take that writes to a busy disk, or has a trap on EXIT.
const leaveGrace = 5 * time.Second

// restore exports what a file has kept, if there is one, and goes to a directory. A shell
// may refuse single variables, which are readonly in every shell of its kind.
func (s *Session) restore(ctx context.Context, exports, dir string) error {
	r, err := s.Run(ctx, Command{Text: "_gwe=; [ ! -e " + exports + " ] || { " + s.dialect.dot + " " + exports + " 2>/dev/null; [ \"$_gwe\" ]; }"})
	if err == nil && r.ExitCode != 0 {
		err = failure(codeClosed, nil, "the disk of "+path.Dir(exports)+" on the machine may be full; open another session", "reopen: what was exported was not kept whole")
	}
	if err != nil {
		return err
	}
	r, err = s.Run(ctx, Command{Text: "unset _gwe; " + s.dialect.cd + " " + Directory(dir)})
	if err == nil && r.ExitCode != 0 {
		err = noDirectory(dir)
	}
	return err
}
