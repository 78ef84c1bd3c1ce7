package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/internal/transcript"
	"gateway/session"
	"gateway/transport"
)

// A live is an open session: its shell, its transcript, and the command that
// runs in it.
type live struct {
	daemon  *Daemon
	record  *record
	log     *transcript.Log
	options api.Open
	release func() // gives the connection back
	// sudoPassword is what sudo is answered; nil: it is left to who types.
	sudoPassword func(context.Context) (string, error)

	// ctx ends with the session, and its commands with it.
	ctx context.Context
	end context.CancelFunc

	over chan struct{} // closed once nothing happens any more

	mu        sync.Mutex
	engine    *session.Session
	session   api.Session
	runs      bool           // a command is in the engine, or it is being replaced
	resetting bool           // it is being replaced
	count     int            // commands so far
	commands  []*api.Command // the last ones; their results hold no streams
	last      spoken         // by one of them
	notes     []note
	forgotten int           // how many notes there were before these
	changed   chan struct{} // closed and replaced with everything that happens
	outputAt  time.Time     // when something came last
	stop      func()        // ends the command that runs
	answered  bool          // sudo was, by the command that runs
	torn      bool          // the transcript could not be written last time
	holder    string        // the attachment that may run and type; empty: everybody
	timer     *time.Timer   // ends the session once it was idle for its TTL
	closing   string        // why it is being closed, or is over: nothing begins any more
	ending    bool          // a command has ended the shell
}

// spoken is all that a command has said, for those who read it at once: little
// of it, and nothing on the terminal.
type spoken struct {
	id             string
	stdout, stderr []byte
}

// A note is something that happened at a place of the transcript, for those who
// follow it.
type note struct {
	at    int64
	event api.Event
}

// What is kept of a session in memory; the record has it all.
const (
	keptCommands = 64
	keptNotes    = 128
	keptTexts    = 1 << 20 // bytes of the commands
	resultLimit  = 1 << 20 // of each stream of a result
)

// info returns what is known about the session now.
func (s *live) info() api.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.infoLocked()
}

func (s *live) infoLocked() api.Session {
	info := s.session
	info.From, info.To = int64(s.log.Start()), int64(s.log.End())
	if info.Command = s.nowLocked(info.Command); info.Command != nil {
		info.Command.Result = nil
	}
	return info
}

// nowLocked returns a copy of a command as it is now; nil for nil.
func (s *live) nowLocked(c *api.Command) *api.Command {
	if c == nil {
		return nil
	}
	now := *c
	if !now.Over() {
		now.To = int64(s.log.End())
	}
	return &now
}

func (s *live) now(c *api.Command) *api.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nowLocked(c)
}

func (s *live) visible(scope string) bool { return scope == "" || s.options.Scope == scope }

// happened wakes whoever waits for something to happen. The session is locked.
func (s *live) happened() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// noteLocked keeps an event for followers at the transcript's end: one of a
// command, or else of the session.
func (s *live) noteLocked(name string, c *api.Command) {
	at := int64(s.log.End())
	event := api.Event{Time: time.Now(), Event: name, Next: at}
	if c != nil {
		copied := *c
		event.Command = &copied
	} else {
		info := s.infoLocked()
		event.Session = &info
	}
	s.notes = append(s.notes, note{at, event})
	if len(s.notes) > 2*keptNotes {
		s.forgetNotes(keptNotes)
	}
	s.happened()
}

// trim forgets the oldest commands: sessions may live for months, and texts have
// megabytes. The session is locked.
func (s *live) trim() {
	texts, keep := 0, 0
	for keep < len(s.commands) {
		texts += len(s.commands[len(s.commands)-1-keep].Text)
		if keep > 0 && texts > keptTexts {
			break
		}
		keep++
	}
	forget := len(s.commands) - keep
	if forget > 0 { // with what followers were told of them
		last := s.commands[forget-1]
		for i := len(s.notes) - 1; i >= 0; i-- {
			if s.notes[i].of(last) {
				s.forgetNotes(i + 1)
				break
			}
		}
	}
	if len(s.commands) > 2*keptCommands {
		forget = max(forget, keptCommands)
	}
	if forget > 0 {
		s.commands = slices.Clone(s.commands[forget:])
	}
}

// forgetNotes forgets the first n. The session is locked.
func (s *live) forgetNotes(n int) {
	s.notes = slices.Clone(s.notes[n:])
	s.forgotten += n
}

// shell returns the session's engine.
func (s *live) shell() *session.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine
}

// run starts a command, if none runs. What changes of it is read with now.
func (s *live) run(r api.Run) (*api.Command, error) {
	s.mu.Lock()
	if s.ending {
		s.mu.Unlock()
		<-s.over // how it ended is known then
		return nil, closedError(s.info())
	}
	defer s.mu.Unlock()
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
	ctx, stop := context.WithCancel(s.ctx)
	s.runs, s.stop, s.answered = true, stop, false
	s.session.Command, s.session.State, s.session.UsedAt = c, api.Running, c.StartedAt
	s.timer.Stop()
	s.noteLocked("started", c)
	s.daemon.events.publish("state", s.infoLocked())
	s.save(*c)
	s.daemon.commands.Add(1)
	go s.work(ctx, c, r) // ends with the command
	return c, nil
}

// openLocked reports why nothing can begin in the session any more.
func (s *live) openLocked() error {
	switch {
	case s.session.State.Over():
		return closedError(s.session)
	case s.closing != "":
		return &transport.Error{
			Code: "session.closed", Message: fmt.Sprintf("daemon: session %s is closing: %s", s.session.Name, s.closing),
			Hint: "open another session",
		}
	}
	return nil
}

// freeLocked reports why no command can be run now.
func (s *live) freeLocked(attachment string) error {
	if err := s.openLocked(); err != nil {
		return err
	}
	switch {
	case s.resetting:
		return &transport.Error{Code: "session.busy", Message: fmt.Sprintf("daemon: session %s gets a fresh shell", s.session.Name), Hint: "try again in a moment"}
	case s.runs:
		c := s.session.Command
		return &transport.Error{
			Code:    "session.busy",
			Message: fmt.Sprintf("daemon: session %s has been running %q for %v", s.session.Name, brief(c.Text), time.Since(c.StartedAt).Round(time.Second)),
			Hint:    "wait for it, interrupt it, or open another session",
		}
	}
	return s.heldLocked(attachment)
}

// heldLocked reports whether somebody else has taken the terminal over.
func (s *live) heldLocked(attachment string) error {
	if s.holder == "" || s.holder == attachment {
		return nil
	}
	return &transport.Error{
		Code:    "session.busy",
		Message: fmt.Sprintf("daemon: %s has attached to session %s", s.session.Attached, s.session.Name),
		Hint:    "wait until they detach, or open another session",
	}
}

// brief cuts a text for a message.
func brief(text string) string {
	const enough = 80
	for at, n := 0, 0; at < len(text); n++ {
		if n == enough {
			return text[:at] + "…"
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return text
}

// work runs a command to its end.
func (s *live) work(ctx context.Context, c *api.Command, r api.Run) {
	result := gateway.Result{
		ID: c.ID, Host: c.Host, User: s.session.User, Transport: s.session.Transport,
		Session: c.Session, Shell: s.session.Shell, Command: r.Text,
	}
	engine := s.shell()
	result.Result, result.Err = engine.Run(ctx, s.command(r))
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
	s.runs, s.ending = false, result.Ended && fresh == nil
	s.ended(c, result)
	if !result.Truncated && c.To-c.From == int64(len(said.stdout)+len(said.stderr)) {
		s.last = said
	}
	if fresh != nil {
		s.replace(fresh)
	}
}

// ended notes a command's result. The session is locked.
func (s *live) ended(c *api.Command, result gateway.Result) {
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

// command maps a request to what the engine takes.
func (s *live) command(r api.Run) session.Command {
	c := session.Command{
		Text: r.Text, Cwd: r.Cwd, Env: r.Env,
		TTY: r.TTY, Echo: r.Echo, Merge: r.Merge,
		Timeout: time.Duration(r.Timeout), Idle: time.Duration(r.Idle),
		Limit:   8 << 10, // enough for a prompt; the transcript keeps the output
		Output:  s.output,
		Waiting: s.waiting,
	}
	if len(r.Stdin) > 0 {
		c.Stdin = bytes.NewReader(r.Stdin)
	}
	return c
}

// output takes what comes from the command. It may be called concurrently.
func (s *live) output(from session.Stream, b []byte) {
	_, err := s.log.Append(transcript.Stream(from), b)
	s.daemon.bytes.Add(int64(len(b)))
	s.mu.Lock()
	defer s.mu.Unlock()
	if (err != nil) != s.torn { // once, not for every piece
		s.torn = err != nil
		s.daemon.config.Log.Warn("transcript", "session", s.session.ID, "error", err)
	}
	s.outputAt = time.Now()
	s.happened()
}

// waiting notes that the command waits for input, or that it does no more.
func (s *live) waiting(p *session.Prompt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.session.Command
	if p == nil {
		s.resumed()
		return
	}
	if s.sudoPassword != nil && !s.answered && strings.HasPrefix(p.Text, "[sudo] password for ") {
		s.answered = true // a wrong one, shown again, would lock the account
		go s.answerSudo() // ends with the command, or with the reference's own bound
		return
	}
	s.session.State, c.State = api.WaitingInput, string(api.WaitingInput)
	c.Prompt = &api.Prompt{Text: p.Text, Kind: string(p.Kind)}
	s.noteLocked("waiting_input", c)
	s.daemon.events.publish("waiting_input", s.infoLocked())
}

// resumed notes that the command waits no more. The session is locked.
func (s *live) resumed() {
	if c := s.session.Command; s.session.State == api.WaitingInput {
		s.session.State, c.State, c.Prompt = api.Running, string(api.Running), nil
		s.happened()
		s.daemon.events.publish("state", s.infoLocked())
	}
}

// answerSudo types the password that the inventory refers to. If it can't be
// had, the prompt is left to who types.
func (s *live) answerSudo() {
	password, err := s.sudoPassword(s.ctx)
	if err == nil {
		_, err = s.shell().WriteSecret([]byte(password + "\n"))
	}
	if err != nil {
		s.daemon.config.Log.Warn("sudo.password", "session", s.session.ID, "error", err)
	}
}

// save appends to the record. A record that can't be written stops nothing.
func (s *live) save(c api.Command) {
	if err := s.record.saveCommand(c); err != nil {
		s.daemon.config.Log.Warn("record of a command", "command", c.ID, "error", err)
	}
}

// send types to the command that runs.
func (s *live) send(in api.Input) error {
	s.mu.Lock()
	err := s.heldLocked(in.Attachment)
	engine := s.engine
	s.mu.Unlock()
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

// idle waits until no command runs.
func (s *live) idle(ctx context.Context) {
	for {
		s.mu.Lock()
		runs, changed := s.runs, s.changed
		s.mu.Unlock()
		if !runs {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// watch waits for the shell's end, and ends the session with it, unless there is
// another shell in its place by then.
func (s *live) watch(engine *session.Session) {
	<-engine.Done()
	if !s.endsWith(engine) {
		return
	}
	exit, err := engine.Exit()
	s.finish(engine, func(info *api.Session) string {
		switch {
		case info.Reason != "":
			info.State = api.Closed
			return "closed"
		case err != nil:
			info.State, info.Reason = api.Lost, err.Error()
			if !errors.Is(err, transport.ErrLost) {
				info.State = api.Closed
			}
			return string(info.State)
		}
		info.State, info.ExitCode, info.Reason = api.Closed, &exit.Code, fmt.Sprintf("its shell ended with status %d", exit.Code)
		return "exited"
	})
}

// endsWith waits until nothing runs: a command ends with its shell. It reports
// whether the session ends with it, too, and lets nothing begin then.
func (s *live) endsWith(engine *session.Session) bool {
	for {
		s.idle(context.Background())
		s.mu.Lock()
		runs, replaced := s.runs, s.engine != engine
		if !runs && !replaced && s.closing == "" {
			s.closing = "its shell has ended"
		}
		s.mu.Unlock()
		if !runs || replaced {
			return !replaced
		}
	}
}

// closeLocked lets nothing begin any more. The first reason counts.
func (s *live) closeLocked(reason string) {
	if s.closing == "" {
		s.closing, s.session.Reason = reason, reason
	}
}

// close ends the session, and what runs in it. It may be called more than once,
// and waits for the end.
func (s *live) close(reason string) api.Session {
	s.mu.Lock()
	s.closeLocked(reason)
	engine := s.engine // no other one comes: see lockFor
	s.mu.Unlock()
	s.end()
	engine.Close() // the end of watch
	<-s.over
	return s.info()
}

// finish makes the session one of the past. It is called once, by watch.
func (s *live) finish(engine *session.Session, how func(*api.Session) (event string)) {
	s.end()
	engine.Close()
	s.mu.Lock()
	s.timer.Stop()
	now := time.Now()
	s.session.ClosedAt = &now
	event := how(&s.session)
	s.noteLocked(event, nil)
	info := s.infoLocked()
	s.mu.Unlock()
	if err := s.log.Close(); err != nil {
		s.daemon.config.Log.Warn("transcript", "session", info.ID, "error", err)
	}
	if err := s.record.saveSession(info); err != nil {
		s.daemon.config.Log.Warn("record of a session", "session", info.ID, "error", err)
	}
	s.record.close()
	s.release()
	s.daemon.retire(info)
	s.daemon.events.publish(event, info)
	close(s.over)
}
