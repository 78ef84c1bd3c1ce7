package daemon

import (
	"context"
	"time"

	"gateway/daemon/api"
)

// wait waits until something has happened in the session, for at most w.Max.
// The end of the command that runs now, or of the one that is meant, or its
// prompt, ends every wait: nothing else will come of it.
func (s *live) wait(ctx context.Context, w api.Wait) (api.Waited, error) {
	s.mu.Lock()
	c := s.session.Command
	if w.Command != "" {
		c = s.notes.command(w.Command)
	}
	s.mu.Unlock()
	if c == nil && w.Command != "" { // so long ago that it is in the record only
		past, ok := s.past(w.Command)
		if !ok {
			return api.Waited{}, noCommand(w.Command)
		}
		c = &past
	}
	return s.waitFor(ctx, c, w)
}

// waitFor waits for a command, or without one for the session. What others run
// behind it is not the caller's.
func (s *live) waitFor(ctx context.Context, c *api.Command, w api.Wait) (api.Waited, error) {
	match, err := s.awaited(c, w)
	if err != nil {
		return api.Waited{}, err
	}
	if w.Max > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(w.Max))
		defer cancel()
	}
	wake := &s.noted
	if w.Until == api.UntilMatch || w.Until == api.UntilIdle {
		wake = &s.said
	}
	for {
		s.mu.Lock()
		changed := wake.next()
		info, quietSince := s.infoLocked(), s.quiet
		waited := api.Waited{Session: info, Command: s.nowLocked(c)}
		s.mu.Unlock()
		over := c == nil || waited.Command.Over()
		waits := !over && waited.Command.State == string(api.WaitingInput)
		var quiet <-chan time.Time
		switch w.Until {
		case api.UntilExit:
			waited.Met = over
		case api.UntilPrompt:
			waited.Met = waits
		case api.UntilIdle:
			left := time.Duration(w.Idle) - time.Since(quietSince)
			waited.Met = left <= 0
			quiet = time.After(left)
		case api.UntilMatch:
			to := info.To
			if c != nil { // nor what they say behind it
				to = waited.Command.To
			}
			line, at, found, err := match.next(to)
			if err != nil {
				return api.Waited{}, err
			}
			waited.Met, waited.Line, waited.At = found, line, int64(at)
		}
		if waited.Met || over || waits && !w.Through || info.State.Over() {
			return s.withResult(waited, w.Limit), nil
		}
		select {
		case <-changed:
		case <-quiet:
		case <-ctx.Done():
			return s.withResult(waited, w.Limit), nil
		}
	}
}

// awaited checks what is waited for, and returns what finds it where it is text.
func (s *live) awaited(c *api.Command, w api.Wait) (*matcher, error) {
	switch w.Until {
	case api.UntilExit, api.UntilPrompt:
		return nil, nil
	case api.UntilIdle:
		if w.Idle <= 0 {
			return nil, usage("", "wait until idle: for how long?")
		}
		return nil, nil
	case api.UntilMatch:
		expression, err := compile(w.Match)
		if err != nil {
			return nil, err
		}
		var begin int64
		if c != nil { // what others have said before it does not count
			begin = c.From
		}
		return newMatcher(s.log, expression, begin, w.Since)
	}
	return nil, usage("", "wait until %q: use exit, prompt, match or idle", w.Until)
}

// withResult gives the command's result its streams.
func (s *live) withResult(w api.Waited, limit int) api.Waited {
	if w.Command != nil {
		c := s.filled(*w.Command, limit)
		w.Command = &c
		w.Session.Command = nil // once is enough
	}
	return w
}

func compile(expression string) (api.Expression, error) {
	const enough = 4096
	if expression == "" || len(expression) > enough {
		return api.Expression{}, usage("", "an expression of 1 to %d characters is needed", enough)
	}
	e, err := api.Compile(expression)
	if err != nil {
		return e, usage("expressions are RE2: no backreferences, no lookaround", "%v", err)
	}
	return e, nil
}
