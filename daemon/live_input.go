package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gateway/daemon/api"
	"gateway/session"
	"gateway/transport"
)

const (
	// maxUntaken is how much may wait for a program to read it: callers go, and leave
	// what they have typed.
	maxUntaken = 1 << 20
	// inputCost is what a request takes beside its text: whoever types or signals counts.
	inputCost = 16 << 10
)

// send types to the command that runs.
func (s *live) send(ctx context.Context, in api.Input) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	engine, err := s.running(ctx, in.Command)
	if err != nil {
		return err
	}
	if err := s.heldLocked(in.Attachment); err != nil { // whoever attached while it waited
		return err
	}
	if err := s.busyLocked(); err != nil {
		return err
	}
	if s.untaken >= maxUntaken {
		return &transport.Error{
			Code: "session.busy", Message: fmt.Sprintf("daemon: what runs in session %s has not read what was typed", s.session.Name),
			Hint: "wait until it reads, or interrupt it",
		}
	}
	size := len(in.Text) + len(in.Data) + 32*len(in.Keys) // their names are short
	return s.answering(size, func() error { return typeTo(engine, in) })
}

// beginTime is how long an interrupt waits for a command to begin. For what that takes,
// such as a further channel, the machine may let one wait much longer.
const beginTime = time.Second

var levels = []string{string(session.Int), string(session.Term), string(session.Kill), api.End}

// interrupt asks the command that runs to end. One that does not begin is given up,
// whatever the level: nobody looks after it any more when it does.
func (s *live) interrupt(ctx context.Context, scope string, in api.Interrupt) error {
	if !slices.Contains(levels, in.Level) {
		return usage("", "level %q: use int, term, kill or end", in.Level)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	soon, cancel := context.WithTimeout(ctx, beginTime)
	defer cancel()
	engine, err := s.running(soon, in.Command)
	unbegun := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
	if err != nil && !unbegun {
		return err
	}
	if err := s.takenLocked(scope, in.Attachment); err != nil { // as in send
		return err
	}
	if err := s.busyLocked(); err != nil {
		return err
	}
	s.pace.hurry()
	if unbegun || in.Level == api.End {
		s.stop()
		return nil
	}
	return s.answering(0, func() error { return engine.Interrupt(session.Level(in.Level)) })
}

// running returns the shell, once it has the command that was accepted last. An
// id says which one is meant: it is an error if another one runs. The session is
// locked, but while it waits.
func (s *live) running(ctx context.Context, id string) (*session.Session, error) {
	meant := func() bool {
		c := s.session.Command
		return id == "" || c != nil && c.ID == id && !c.Over()
	}
	if err := s.until(ctx, func() bool { return s.begun || s.session.Command == nil || !meant() }); err != nil {
		return nil, err
	}
	if meant() {
		return s.engine, nil
	}
	if c := s.notes.command(id); c != nil {
		return nil, usage("", "command %s is over (%s)", id, c.State)
	}
	return nil, usage("", "command %s does not run in session %s", id, s.session.Name)
}

// busyLocked refuses to type to no command.
func (s *live) busyLocked() error {
	if c := s.session.Command; c != nil && !c.Over() {
		return nil
	}
	return usage("", "no command runs in session %s", s.session.Name)
}

// typing has f type so many bytes to the command that was found to run, or signal to
// it. Until that is done no other command begins, or it could get what it is not meant
// to see. The session is locked, but not meanwhile: a link may be slow, and a program
// need not read. Its command may end all the same, and the session be closed.
func (s *live) typing(size int, f func() error) (err error) {
	cost := inputCost + size
	s.untaken += cost
	defer func() {
		s.untaken -= cost
		s.happened()
	}()
	s.unlocked(func() { err = f() })
	return err
}

// answering is typing for what may be the answer to what the command asks, or its end.
// It waits no more then, and not only when the engine says so: who waits from now on
// waits for more. What it has asked since, it still asks: the engine tells that once.
func (s *live) answering(size int, f func() error) error {
	before := s.asks
	if err := s.typing(size, f); err != nil {
		return err
	}
	if s.asks == before {
		s.resumed()
	}
	return nil
}

// turn returns the shell, once nobody types to the command before any more. With
// the context's end it is not waited for: the shell takes nothing then.
func (s *live) turn(ctx context.Context) *session.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.until(ctx, func() bool { return s.untaken == 0 })
	return s.engine
}

func typeTo(engine *session.Session, in api.Input) error {
	switch {
	case len(in.Keys) > 0 && in.Text != "" || len(in.Data) > 0 && (in.Text != "" || len(in.Keys) > 0):
		return usage("", "send text, data or keys, one of them")
	case len(in.Data) > 0:
		_, err := engine.Write(in.Data)
		return err
	case len(in.Keys) > 0:
		return engine.Press(in.Keys...)
	}
	text := in.Text
	if in.Enter {
		text += "\r" // what the key sends; a terminal that edits lines takes it for a newline
	}
	write := engine.Write
	if in.Secret {
		write = engine.WriteSecret
	}
	_, err := write([]byte(text))
	return err
}

// answerSudo types the password that the inventory refers to, unless the command
// has gone on from its prompt by then: something else would read it. If it can't
// be had, the prompt is left to who types.
func (s *live) answerSudo(ctx context.Context, p *api.Prompt) {
	password, err := s.sudoPassword(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asks != p {
		return
	}
	if err == nil {
		engine := s.engine
		err = s.answering(len(password), func() error {
			_, err := engine.WriteSecret([]byte(password + "\n"))
			return err
		})
	}
	if err != nil && s.asks == p {
		s.daemon.config.Log.Warn("sudo.password", "session", s.session.ID, "error", err)
		s.waitsLocked()
	}
}
