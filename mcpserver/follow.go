package mcpserver

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"gateway/daemon/api"
	"gateway/session"
	"gateway/transport"
)

// settled is how long a program that was typed to must be silent for its answer
// to count as complete.
const settled = 500 * time.Millisecond

// leaves reports whether keys only end a password prompt: ctrl-c, ctrl-d, ctrl-z, ctrl-\
// and esc. What is no key is refused as such.
func leaves(keys []string) bool {
	pressed, err := session.Keys(keys...)
	return err != nil || len(bytes.Trim(pressed, "\x03\x04\x1a\x1c\x1b")) == 0
}

// running returns a target that has a command, which may be over.
func (c *call) running(in targetArgs) (target, error) {
	t, err := c.target(in)
	switch {
	case err != nil:
	case t.command == nil:
		err = usage("run starts one", "nothing has run in session %s", t.session.Name)
	}
	return t, err
}

func (c *call) send(in sendArgs) (any, error) {
	t, err := c.running(in.targetArgs)
	if err != nil {
		return nil, err
	}
	if in.Text == "" && len(in.Keys) == 0 {
		if !t.command.Over() {
			*t.command, _, err = c.await(*t.command, api.Wait{Until: api.UntilExit}, c.bound(in.WaitMS))
		}
		if err != nil {
			return nil, err
		}
		return c.answer(*t.command, t.session, c.limit(in.MaxOutput))
	}
	if err := c.mayType(t, in); err != nil {
		return nil, err
	}
	before, limit := t.session.To, c.limit(in.MaxOutput)
	input := api.Input{Keys: in.Keys, Command: t.command.ID}
	input.Text, input.Enter = strings.CutSuffix(in.Text, "\n")
	bound := c.bound(in.WaitMS)
	end := time.Now().Add(bound)
	switch read, err := c.typed(t, input, bound); {
	case err != nil:
		return nil, c.sessionError(t.session.ID, err)
	case !read:
		return c.unread(t, limit)
	}
	command, err := c.settle(*t.command, before, time.Until(end))
	if err != nil {
		return nil, err
	}
	if in.Text != "" && !input.Enter && !command.Over() {
		c.note("no Enter was typed: it is a newline at the end of text")
	}
	return c.answer(command, t.session, limit)
}

// typed types to a command, and reports whether that was done in time: a terminal
// takes a few KiB that nobody reads, and then no more.
func (c *call) typed(t target, input api.Input, limit time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(c.ctx, max(limit, settled)) // the daemon must have got it
	defer cancel()
	err := c.daemon.Send(ctx, t.session.ID, input)
	if err != nil && ctx.Err() != nil && c.ctx.Err() == nil {
		return false, nil
	}
	return true, err
}

// unread answers how a command stands that has not read what was typed.
func (c *call) unread(t target, limit int) (any, error) {
	command, err := c.daemon.Command(c.ctx, t.command.ID, limit)
	if err != nil {
		return nil, err
	}
	note := "the program does not read: a part of what you sent is typed already, and the rest will be when it reads, before what you send next. A ctrl-c would wait behind it, too: interrupt does not"
	if command.Over() {
		note = "it has ended, and has not read all that you sent"
	}
	c.note("%s", note)
	return c.answer(command, t.session, limit)
}

// mayType refuses what must not be typed.
func (c *call) mayType(t target, in sendArgs) error {
	p := t.command.Prompt
	switch {
	case in.Text != "" && len(in.Keys) > 0:
		return usage("", "send text or keys, not both")
	case t.session.State.Over():
		return closed(t.session)
	case t.command.Over():
		return usage("", "command %s is over (%s)", t.command.ID, t.command.State)
	case p != nil && p.Kind == "password" && (in.Text != "" || !leaves(in.Keys)):
		return &transport.Error{
			Code: "cmd.needs_input", Message: fmt.Sprintf("it asks for a password (%s): that is not yours to give", plain(p.Text)),
			Hint: fmt.Sprintf("ask a person to run gateway session answer %s, or have the inventory refer to it; or interrupt the command", t.command.ID),
		}
	}
	return nil
}

// settle waits until a command that was typed to has said what it has to say.
func (c *call) settle(command api.Command, since int64, limit time.Duration) (api.Command, error) {
	end := time.Now().Add(limit)
	command, w, err := c.await(command, api.Wait{Until: api.UntilMatch, Match: "^", Since: since}, limit)
	if err != nil || !w.Met || command.Over() || command.Prompt != nil {
		return command, err
	}
	command, _, err = c.await(command, api.Wait{Until: api.UntilIdle, Idle: api.Duration(settled)}, time.Until(end))
	return command, err
}

// longLine is how long a line may be that is told as a whole. Of a longer one it is
// what grep shows: the part around the match.
const longLine = 1 << 10

func (c *call) wait(in waitArgs) (any, error) {
	switch {
	case in.Until == api.UntilMatch && in.Match == "":
		return nil, usage("", "until=match needs match, a regular expression")
	case in.Until != api.UntilMatch && in.Match != "":
		return nil, usage("", "match goes with until=match")
	case in.Until == api.UntilIdle && in.IdleMS == 0:
		return nil, usage("", "until=idle needs idle_ms")
	case in.Until != api.UntilIdle && in.IdleMS != 0:
		return nil, usage("", "idle_ms goes with until=idle")
	}
	t, err := c.running(in.targetArgs)
	if err != nil {
		return nil, err
	}
	w := api.Wait{Until: in.Until, Match: in.Match, Idle: api.Duration(milliseconds(in.IdleMS)), Since: c.unseen(*t.command)}
	command, waited, bound := *t.command, api.Waited{Met: in.Until == api.UntilExit}, c.bound(in.WaitMS)
	switch {
	case !command.Over():
		command, waited, err = c.await(command, w, bound)
	case in.Until == api.UntilMatch:
		waited, err = c.daemon.Matched(c.ctx, command, w)
	}
	if err != nil {
		return nil, err
	}
	if len(waited.Line) > longLine {
		if part, err := c.daemon.Matched(c.ctx, command, w); err == nil && part.Met {
			waited.Line = part.Line
		}
	}
	a, err := c.answer(command, t.session, c.limit(in.MaxOutput))
	if err != nil {
		return nil, err
	}
	a.Met, a.Line = &waited.Met, plain(waited.Line)
	return a, nil
}

// unseen returns the cursor at which the next answer about a command begins.
func (c *call) unseen(command api.Command) int64 {
	p := c.shown.command(command.ID)
	p.Lock()
	defer p.Unlock()
	return p.from(command)
}

func (c *call) interrupt(in interruptArgs) (any, error) {
	t, err := c.running(in.targetArgs)
	if err != nil {
		return nil, err
	}
	if t.command.Over() {
		return nil, usage("", "nothing to interrupt: command %s is over (%s)", t.command.ID, t.command.State)
	}
	over, err := c.interruptOnce(c.ctx, *t.command, session.Level(in.Level), 3*time.Second)
	if err != nil {
		return nil, c.sessionError(t.session.ID, err)
	}
	command, err := c.daemon.Command(c.ctx, t.command.ID, 1)
	if err != nil {
		return nil, err
	}
	a, err := c.answer(command, t.session, c.config.Output)
	if err != nil {
		return nil, err
	}
	switch {
	case !over:
		a.Process = "it goes on"
		a.Next = "it did not end within 3 s: " + stronger(in.Level, t.session) + ", id " + a.ID
	case command.Ended && !t.session.Once:
		a.Process = "it ended, and the session's shell with it"
	case t.session.Once:
		a.Process = "it ended"
	default:
		a.Process = "it ended; the session and its state are there"
	}
	return a, nil
}

// stronger says what comes next for a command that an interrupt has not ended.
func stronger(level string, s api.Session) string {
	switch {
	case level == string(session.Int):
		return "wait, or interrupt with level term"
	case level == string(session.Term):
		return "wait, or interrupt with level kill"
	case s.Once:
		return "wait, or end it with its shell: sessions, action close, session " + s.Name
	}
	return "wait, or end it with its shell: sessions, action reset or close, session " + s.Name
}
