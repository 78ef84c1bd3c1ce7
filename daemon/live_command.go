package daemon

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/internal/transcript"
	"gateway/session"
	"gateway/transport"
)

// run starts a command, if none runs. What changes of it is read with now.
func (s *live) run(ctx context.Context, r api.Run) (*api.Command, error) {
	if err := checkSize(transport.Size{Cols: r.Cols, Rows: r.Rows}); err != nil {
		return nil, err
	}
	if len(r.Stdin) > api.MaxStdin {
		return nil, usage("make a file of it", "more stdin than the %d MiB that a session takes", api.MaxStdin>>20)
	}
	c, ctx, err := s.accept(ctx, r, !s.shell().Split())
	if err != nil {
		return nil, err
	}
	s.save(*c)
	s.daemon.commands.Add(1)
	go s.work(ctx, c, r) // ends with the command
	return c, nil
}

// accept has a command be the one that runs. Nothing changes it before its work begins.
func (s *live) accept(ctx context.Context, r api.Run, onTerminal bool) (*api.Command, context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.awaitEndLocked(ctx); err != nil {
		return nil, nil, err
	}
	if err := s.freeLocked(r.Attachment); err != nil {
		return nil, nil, err
	}
	s.count++
	s.use()
	end := int64(s.log.End())
	c := &api.Command{
		ID: fmt.Sprintf("%s.%d", s.session.ID, s.count), Session: s.session.ID, Host: s.session.Host, Text: r.Text, TTY: r.TTY, Echo: r.Echo, Merge: r.Merge, OnTerminal: onTerminal,
		State: string(api.Running), StartedAt: s.session.UsedAt, From: end, To: end,
	}
	ctx, stop := context.WithCancel(s.ctx) // the caller's end is not the command's
	s.runs, s.session.Command = true, c
	s.current = current{runner: r.Client, stop: stop, quiet: s.used}
	s.timer.Stop()
	s.noteLocked("started", c)
	s.daemon.events.publish("state", s.infoLocked())
	return c, ctx, nil
}

// work runs a command to its end.
func (s *live) work(ctx context.Context, c *api.Command, r api.Run) {
	result := gateway.Result{
		ID: c.ID, Host: c.Host, User: s.session.User, Transport: s.session.Transport,
		Session: c.Session, Shell: s.session.Shell, Command: r.Text,
	}
	engine, command := s.turn(ctx), s.command(ctx, r)
	paced, cancel := ctx, context.CancelFunc(func() {})
	if r.Timeout > 0 { // which is to be met
		paced, cancel = context.WithTimeout(ctx, time.Duration(r.Timeout))
	}
	defer cancel()
	if r.Cols > 0 && r.Rows > 0 {
		_ = engine.Resize(transport.Size{Cols: r.Cols, Rows: r.Rows}) // a shell that is gone says so elsewhere
	}
	command.Output = func(from session.Stream, b []byte) {
		s.pace.hold(paced, s.output(from, b))
	}
	command.Started = sync.OnceFunc(s.started)
	result.Result, result.Err = engine.Run(ctx, command)
	command.Started()
	said := spoken{id: c.ID, stdout: result.Stdout, stderr: result.Stderr}
	all := !result.Truncated
	// The transcript has them, but for what never came to it.
	result.Stdout, result.Stderr, result.Terminal, result.Truncated = nil, nil, nil, result.Cut
	var fresh *session.Session
	if result.Ended && s.options.Reopen && s.ctx.Err() == nil {
		var err error
		if fresh, err = engine.Reopen(s.ctx); err != nil {
			s.daemon.config.Log.Info("reopen", "session", c.Session, "error", err)
		}
	}
	done := s.outcome(c, result, fresh != nil)
	s.save(done) // before anybody is told, and without the lock: a disk may hang
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh = s.unlessClosing(fresh)
	s.settle(&done, fresh != nil) // it may be closed by now, or reset
	s.runs, s.ending = false, done.Ended
	*c = done
	s.ended(c)
	if all && c.To-c.From == int64(len(said.stdout)+len(said.stderr)) {
		s.last = said
	}
	if fresh != nil {
		s.replace(fresh)
	}
}

// started notes that the shell has the command that is to run, or never will.
func (s *live) started() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = true
	s.changed.ring()
}

// outcome ends a command for the shell, and returns it with its result. Others still
// see it run.
func (s *live) outcome(c *api.Command, result gateway.Result, reopened bool) api.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
	s.asks = nil
	done := *c
	done.Result, done.State, done.Prompt, done.To = &result, string(result.Verdict), nil, int64(s.log.End())
	s.settle(&done, reopened)
	if result.ExitCode >= 0 {
		done.ExitCode = &result.ExitCode
	}
	done.Why = whyDropped(s.log, done.From, done.To)
	return done
}

// settle says what its end makes of the session. That is locked.
func (s *live) settle(c *api.Command, reopened bool) {
	c.Result.Reopened = reopened
	c.Ended = c.Result.Ended && !reopened && s.resets == 0
}

// ended tells of a command's result. The session is locked.
func (s *live) ended(c *api.Command) {
	s.use()
	if c.Result.Cwd != "" {
		s.session.Cwd = c.Result.Cwd
	}
	s.startTimer()
	s.noteLocked("result", c)
	s.daemon.events.publish("state", s.infoLocked())
	if s.options.Once {
		go s.close("its command has ended") // bounded by the engine's timers
	}
}

// command maps a request to what the engine takes. The context ends with it.
func (s *live) command(ctx context.Context, r api.Run) session.Command {
	c := session.Command{
		Text: r.Text, Cwd: r.Cwd, Env: r.Env,
		TTY: r.TTY, Echo: r.Echo, Merge: r.Merge,
		Timeout: time.Duration(r.Timeout), Idle: time.Duration(r.Idle),
		Limit:   8 << 10, // enough for a prompt; the transcript keeps the output
		Waiting: func(p *session.Prompt) { s.waiting(ctx, p) },
	}
	if len(r.Stdin) > 0 {
		c.Stdin = bytes.NewReader(r.Stdin)
	}
	return c
}

// output takes what comes from the command, and returns the cursor behind it. It
// may be called concurrently.
func (s *live) output(from session.Stream, b []byte) int64 {
	end, err := s.log.Append(transcript.Stream(from), b)
	s.daemon.bytes.Add(int64(len(b)))
	s.mu.Lock()
	defer s.mu.Unlock()
	if (err != nil) != s.torn { // once, not for every piece
		s.torn = err != nil
		s.daemon.config.Log.Warn("transcript", "session", s.session.ID, "error", err)
	}
	s.quiet = time.Now()
	s.said.ring()
	return int64(end)
}

// waiting notes that the command waits for input, or that it does no more.
func (s *live) waiting(ctx context.Context, p *session.Prompt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p == nil {
		s.resumed()
		return
	}
	s.asks = &api.Prompt{Text: p.Text, Kind: string(p.Kind)}
	if s.sudoPassword != nil && !s.answered && p.Root && p.OfSudo() {
		go s.answerSudo(ctx, s.asks) // ends with the command, or with the reference's own bound
		s.answered = true            // a wrong one, shown again, would lock the account
		return
	}
	s.waitsLocked()
}

// waitsLocked leaves what the command asks to who types.
func (s *live) waitsLocked() {
	c := s.session.Command
	c.State, c.Prompt = string(api.WaitingInput), s.asks
	s.noteLocked("waiting_input", c)
	s.daemon.events.publish("waiting_input", s.infoLocked())
}

// resumed notes that the command waits no more. The session is locked.
func (s *live) resumed() {
	s.asks = nil
	if c := s.session.Command; c != nil && c.State == string(api.WaitingInput) {
		c.State, c.Prompt = string(api.Running), nil
		s.happened()
		s.daemon.events.publish("state", s.infoLocked())
	}
}

// save appends to the record. A record that can't be written stops nothing.
func (s *live) save(c api.Command) {
	if err := s.record.saveCommand(c); err != nil {
		s.daemon.config.Log.Warn("record of a command", "command", c.ID, "error", err)
	}
}
