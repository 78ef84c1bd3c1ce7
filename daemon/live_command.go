package daemon

import (
	"bytes"
	"context"
	"fmt"
	"strings"
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.until(ctx, func() bool { return !s.ending }); err != nil {
		return nil, err
	}
	if err := s.freeLocked(r.Attachment); err != nil {
		return nil, err
	}
	s.count++
	end := int64(s.log.End())
	c := &api.Command{
		ID: fmt.Sprintf("%s.%d", s.session.ID, s.count), Session: s.session.ID, Host: s.session.Host, Text: r.Text, TTY: r.TTY, Echo: r.Echo,
		State: string(api.Running), StartedAt: time.Now(), From: end, To: end,
	}
	s.commands = append(s.commands, c)
	s.trim()
	ctx, stop := context.WithCancel(s.ctx) // the caller's end is not the command's
	s.runs, s.stop, s.begun, s.answered = true, stop, make(chan struct{}), false
	s.session.Command, s.session.State, s.session.UsedAt = c, api.Running, c.StartedAt
	s.timer.Stop()
	s.noteLocked("started", c)
	s.daemon.events.publish("state", s.infoLocked())
	s.save(*c)
	s.daemon.commands.Add(1)
	go s.work(ctx, c, r) // ends with the command
	return c, nil
}

// work runs a command to its end.
func (s *live) work(ctx context.Context, c *api.Command, r api.Run) {
	result := gateway.Result{
		ID: c.ID, Host: c.Host, User: s.session.User, Transport: s.session.Transport,
		Session: c.Session, Shell: s.session.Shell, Command: r.Text,
	}
	engine, command := s.shell(), s.command(ctx, r)
	paced, cancel := ctx, context.CancelFunc(func() {})
	if r.Timeout > 0 { // which is to be met
		paced, cancel = context.WithTimeout(ctx, time.Duration(r.Timeout))
	}
	defer cancel()
	command.Output = func(from session.Stream, b []byte) {
		s.pace.hold(paced, s.output(from, b))
	}
	command.Started = s.started()
	result.Result, result.Err = engine.Run(ctx, command)
	command.Started()
	said := spoken{id: c.ID, stdout: result.Stdout, stderr: result.Stderr}
	result.Stdout, result.Stderr, result.Terminal = nil, nil, nil // the transcript has them
	var fresh *session.Session
	if result.Ended && s.options.Reopen && s.ctx.Err() == nil {
		var err error
		if fresh, err = engine.Reopen(s.ctx); err != nil {
			s.daemon.config.Log.Info("reopen", "session", c.Session, "error", err)
		}
	}
	fresh = s.lockFor(fresh)
	defer s.mu.Unlock()
	s.stop()
	result.Reopened = fresh != nil
	s.runs, s.ending = false, result.Ended && fresh == nil && s.resets == 0
	s.ended(c, result)
	if !result.Truncated && c.To-c.From == int64(len(said.stdout)+len(said.stderr)) {
		s.last = said
	}
	if fresh != nil {
		s.replace(fresh)
	}
}

// started returns what notes that the shell has the command that is to run.
func (s *live) started() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sync.OnceFunc(func() { close(s.begun) })
}

// ended notes a command's result. The session is locked.
func (s *live) ended(c *api.Command, result gateway.Result) {
	s.sudoAsks = nil
	c.Result, c.State, c.Prompt, c.To, c.Ended = &result, string(result.Verdict), nil, int64(s.log.End()), s.ending
	if result.ExitCode >= 0 {
		c.ExitCode = &result.ExitCode
	}
	s.session.State, s.session.UsedAt = api.Idle, time.Now()
	if result.Cwd != "" {
		s.session.Cwd = result.Cwd
	}
	s.log.Rest()
	s.save(*c)
	s.timer.Reset(time.Duration(s.session.TTL))
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
	s.outputAt = time.Now()
	s.happened()
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
	asked := &api.Prompt{Text: p.Text, Kind: string(p.Kind)}
	if s.sudoPassword != nil && !s.answered && strings.HasPrefix(p.Text, "[sudo] password for ") {
		s.answered = true // a wrong one, shown again, would lock the account
		s.sudoAsks = asked
		go s.answerSudo(ctx, asked) // ends with the command, or with the reference's own bound
		return
	}
	s.waitsLocked(asked)
}

// waitsLocked leaves a prompt to who types.
func (s *live) waitsLocked(p *api.Prompt) {
	c := s.session.Command
	s.session.State, c.State, c.Prompt = api.WaitingInput, string(api.WaitingInput), p
	s.noteLocked("waiting_input", c)
	s.daemon.events.publish("waiting_input", s.infoLocked())
}

// resumed notes that the command waits no more. The session is locked.
func (s *live) resumed() {
	s.sudoAsks = nil
	if c := s.session.Command; s.session.State == api.WaitingInput {
		s.session.State, c.State, c.Prompt = api.Running, string(api.Running), nil
		s.happened()
		s.daemon.events.publish("state", s.infoLocked())
	}
}

// answerSudo types the password that the inventory refers to, unless the command
// has gone on from its prompt by then: another one would read it. If it can't be
// had, the prompt is left to who types.
func (s *live) answerSudo(ctx context.Context, p *api.Prompt) {
	password, err := s.sudoPassword(ctx)
	s.mu.Lock()
	engine, asks := s.engine, s.sudoAsks == p
	s.mu.Unlock()
	if !asks {
		return
	}
	if err == nil { // not under the lock: a link may be slow
		_, err = engine.WriteSecret([]byte(password + "\n"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.sudoAsks != p:
	case err == nil:
		s.resumed()
	default:
		s.daemon.config.Log.Warn("sudo.password", "session", s.session.ID, "error", err)
		s.sudoAsks = nil
		s.waitsLocked(p)
	}
}

// save appends to the record. A record that can't be written stops nothing.
func (s *live) save(c api.Command) {
	if err := s.record.saveCommand(c); err != nil {
		s.daemon.config.Log.Warn("record of a command", "command", c.ID, "error", err)
	}
}

// send types to the command that runs.
func (s *live) send(ctx context.Context, in api.Input) error {
	s.mu.Lock()
	err := s.heldLocked(in.Attachment)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	engine, err := s.running(ctx, in.Command)
	if err != nil {
		return err
	}
	if err := typeTo(engine, in); err != nil {
		return err
	}
	// Not only when the engine says so: who waits from now on waits for more.
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumed()
	return nil
}

// interrupt asks the command that runs to end.
func (s *live) interrupt(ctx context.Context, in api.Interrupt) error {
	engine, err := s.running(ctx, in.Command)
	if err != nil {
		return err
	}
	s.pace.hurry()
	return engine.Interrupt(session.Level(in.Level))
}

// running returns the shell, once it has the command that was accepted last. An
// id says which one is meant: it is an error if another one runs.
func (s *live) running(ctx context.Context, id string) (*session.Session, error) {
	s.mu.Lock()
	engine, begun, c := s.engine, s.begun, s.session.Command
	meant := id == "" || c != nil && c.ID == id && !c.Over()
	if !meant {
		c = s.commandLocked(id)
	}
	s.mu.Unlock()
	switch {
	case !meant && c == nil:
		return nil, &transport.Error{Code: "usage", Message: fmt.Sprintf("daemon: command %s does not run in session %s", id, s.session.Name)}
	case !meant:
		return nil, &transport.Error{Code: "usage", Message: fmt.Sprintf("daemon: command %s is over (%s)", id, s.now(c).State)}
	case begun == nil: // nothing was ever run
		return engine, nil
	}
	select {
	case <-begun:
		return engine, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func typeTo(engine *session.Session, in api.Input) error {
	switch {
	case len(in.Keys) > 0 && in.Text != "" || len(in.Data) > 0 && (in.Text != "" || len(in.Keys) > 0):
		return &transport.Error{Code: "usage", Message: "daemon: send text, data or keys, one of them"}
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
