package script

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"gateway/gateway"
	"gateway/transport"
)

// open opens the main session, and sets the variables in it. It replaces one
// that has ended; see back.
func (h *hostRun) open(ctx context.Context) error {
	s, err := h.Open(ctx, h.host, gateway.Options{Typed: func(secret string) { h.mask().Add(secret) }})
	if err != nil {
		return err
	}
	main := h.newShell(s)
	h.sudo = s.SudoUser()
	about := s.Describe()
	h.mu.Lock()
	h.result.User, h.result.Transport, h.result.Session, h.result.Shell = about.User, about.Transport, about.Session, about.Shell
	h.result.Connect += about.Connect
	h.mu.Unlock()
	if err := h.define(ctx, main); err != nil {
		s.Close()
		return err
	}
	if h.main != nil {
		main.before = cmp.Or(h.main.before, h.main.cwd)
		h.retire()
	}
	h.main = main
	return nil
}

func (h *hostRun) newShell(s *gateway.Session) *shell {
	return &shell{Session: s, cwd: s.Origin(), limit: cmp.Or(h.OwnTimeout, defaultOwnTimeout)}
}

// back takes a session to where the next step expects it: a new main one to where
// that before it was, and any to where a step has failed to take it back to. A step
// that says itself where it runs does not need that.
func (h *hostRun) back(ctx context.Context, shell *shell, s *Step) error {
	cwd := h.expand(s.Cwd)
	if shell.before == "" || path.IsAbs(cwd) || strings.HasPrefix(cwd, "~") {
		return nil
	}
	if shell.before != shell.cwd {
		if err := shell.enter(ctx, place{cwd: shell.before}, nil, s.Timeout); err != nil {
			return err
		}
	}
	shell.before, shell.old = "", ""
	return nil
}

// retire puts the sessions of a connection aside, which are closed at the end.
func (h *hostRun) retire() {
	for _, s := range h.others {
		h.closed = append(h.closed, s)
	}
	h.closed = append(h.closed, h.main)
	h.others, h.main = nil, nil
}

func (h *hostRun) close() {
	if h.main != nil {
		h.retire()
	}
	for _, s := range h.closed {
		s.Close()
	}
}

// define sets all variables in a shell.
func (h *hostRun) define(ctx context.Context, s *shell) error {
	plain := make(map[string]string, len(h.values))
	for name, value := range h.values {
		if _, secret := h.Secrets[name]; !secret && name != hostVar {
			plain[name] = value
		}
	}
	if err := s.set(ctx, plain, false); err != nil {
		return err
	}
	return s.set(ctx, h.Secrets, true)
}

// shell returns the session for a step: the main one, or one of another user on
// the same connection, which has its own variables and functions but for those
// of the script, and starts where the main one is.
func (h *hostRun) shell(ctx context.Context, s *Step) (*shell, error) {
	if h.main.ended() {
		return nil, h.main.gone()
	}
	if err := h.back(ctx, h.main, s); err != nil || !s.Sudo.On {
		return h.main, err
	}
	user, err := h.present("sudo", s.Sudo.User)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(user, h.sudo)
	if other := h.others[name]; other != nil && !other.ended() {
		return other, h.back(ctx, other, s)
	}
	opened, err := h.become(ctx, user, s)
	if err != nil {
		return nil, err
	}
	other := h.newShell(opened)
	if err := h.define(ctx, other); err != nil {
		opened.Close()
		return nil, err
	}
	if h.others == nil {
		h.others = map[string]*shell{}
	}
	if ended := h.others[name]; ended != nil {
		h.closed = append([]*shell{ended}, h.closed...)
	}
	h.others[name] = other
	return other, nil
}

// become opens a session of another user, in the step's time. Three wrong passwords may
// lock the account: the inventory's is not typed again for a user if sudo has refused it.
func (h *hostRun) become(ctx context.Context, user string, s *Step) (*gateway.Session, error) {
	name := cmp.Or(user, h.sudo)
	if err := h.refused[name]; err != nil {
		return nil, &transport.Error{Code: gateway.Code(err), Message: "script: sudo's password was refused, and is not typed again: " + err.Error(), Hint: gateway.Hint(err), Err: err}
	}
	limited, cancel := within(ctx, s.Timeout, "sudo")
	defer cancel()
	var typed atomic.Bool // also for the commands of the session
	opened, err := h.main.Beside(limited, gateway.Options{
		Sudo: true, SudoUser: user,
		Typed: func(secret string) {
			typed.Store(true)
			h.mask().Add(secret)
		},
		Password: h.sudoPassword(s),
	})
	if typed.Load() && gateway.Code(err) == "sudo.rejected" {
		h.refused[name] = err
	}
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = context.Cause(limited)
	}
	return opened, err
}

// within bounds by a step's timeout what is no command of a session.
func within(ctx context.Context, timeout time.Duration, what string) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, &transport.Error{
		Code: "cmd.timeout", Message: fmt.Sprintf("script: %s ended after its timeout of %v", what, timeout), Err: context.DeadlineExceeded,
	})
}

// sudoPassword returns what answers sudo's prompt if the inventory doesn't: the
// step's own answers.
func (h *hostRun) sudoPassword(s *Step) func(context.Context) (string, error) {
	prompt := "[sudo] password for " + h.main.Describe().User + ": "
	for _, a := range s.Answers {
		if a.Prompt.MatchString(prompt) {
			return func(context.Context) (string, error) { return h.answer(a), nil }
		}
	}
	return func(context.Context) (string, error) {
		return "", &transport.Error{Code: "sudo.needs_password", Message: "no answer of the step fits", Hint: hintAnswer}
	}
}
