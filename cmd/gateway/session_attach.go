package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/internal/statements"
	"gateway/transport"
)

func (a *app) sessionAttachCommand() *cobra.Command {
	var readOnly bool
	cmd := &cobra.Command{
		Use:   "attach NAME",
		Short: "Take a session's terminal over, or watch it",
		Long: `Take over a session's terminal: type commands for its shell, or input for what
runs in it. Meanwhile others can't run or type anything there, and agents can't
interrupt or close it; you can, from another terminal. What is already running
is shown: you can type to a program that is on the terminal; otherwise ^C
interrupts it, and its prompts can be answered.

An incomplete command, with an open quote, a here-document or an if without its
fi, continues on the next line, after the prompt "> ". There ^C discards it, and
^D sends what there is.

^D at an empty prompt or ~. at the beginning of a line detaches; what runs goes
on. With --read-only you watch, and q or ^C leaves.`,
		Example: `  gateway session attach work
  gateway session attach work --read-only`,
		Args:              exactly("NAME"),
		ValidArgsFunction: a.completeSessions(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !readOnly && (!isTerminal(os.Stdin) || !isTerminal(os.Stdout)) {
				return usage(cmd, "to run a command there is gateway session exec", "attach needs a terminal on stdin and stdout")
			}
			c, err := a.daemon(cmd)
			if err != nil {
				return err
			}
			return a.sessionAttach(cmd.Context(), c, args[0], readOnly)
		},
	}
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "watch, and leave the terminal to others")
	return cmd
}

// errDetached: the person wants to leave.
var errDetached = errors.New("detached")

// errOver: the session has ended.
var errOver = errors.New("over")

// sessionAttach lasts until the person detaches, or the session is over.
func (a *app) sessionAttach(ctx context.Context, c *client.Client, name string, readOnly bool) error {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	t := &takeover{app: a, client: c, readOnly: readOnly, leave: leave, done: make(chan struct{})}
	close(t.done)
	s, err := c.Session(ctx, name)
	if err == nil && !readOnly {
		var attached api.Attached
		if attached, err = c.Attach(ctx, s.ID, whoami()); err == nil {
			s, t.id = attached.Session, attached.Attachment
		}
	}
	if err != nil {
		return err
	}
	at := newAttachment(a.console)
	if isTerminal(os.Stdin) {
		if err := a.console.makeRaw(); err != nil {
			return err
		}
		t.raw = true
	}
	defer at.stop()
	err = t.run(ctx, s, at)
	t.resetTerminal()
	at.stop()
	var unheard error // whether the daemon hears it or not, its request ends
	if !readOnly {    // else who comes next could find it taken still
		unheard = c.Detach(context.WithoutCancel(ctx), s.ID, t.id)
	}
	switch {
	case errors.Is(err, errOver):
		return t.over(context.WithoutCancel(ctx), s)
	case errors.Is(err, errDetached) && errors.Is(unheard, client.ErrLost): // and nobody knows what goes on
		return unheard
	case errors.Is(err, errDetached):
		a.out.say("gateway: detached from " + s.Name + "; it goes on")
		return nil
	}
	return err
}

// over says how the session has ended.
func (t *takeover) over(ctx context.Context, s api.Session) error {
	s, err := t.client.Session(ctx, s.ID)
	if err != nil {
		return err
	}
	t.app.out.say("gateway: " + visible(s.Fate()))
	if s.State == api.Lost {
		return exitStatus(statusFailed)
	}
	return nil
}

// whoami names the person to others.
func whoami() string {
	name := "user " + fmt.Sprint(os.Geteuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if tty, err := os.Readlink("/proc/self/fd/0"); err == nil && strings.HasPrefix(tty, "/dev/") {
		name += " on " + strings.TrimPrefix(tty, "/dev/")
	}
	return name
}

// run connects the person with the session.
func (t *takeover) run(ctx context.Context, s api.Session, at *attachment) error {
	t.session, t.cwd = s, s.Cwd
	t.lines = newLineInput()
	t.renewEditor()
	t.keyboard = newKeyboard(func(b []byte) error {
		return t.client.Send(ctx, s.ID, api.Input{Data: b, Attachment: t.id, Command: t.running()})
	})
	t.keyboard.interrupt = func() { t.interrupt(ctx) }
	go t.keyboard.run(ctx)
	defer t.lines.Close()
	defer context.AfterFunc(ctx, func() { t.lines.Close() })()
	if t.readOnly && t.raw {
		t.app.out.say("gateway: you watch " + s.Name + "; q or ^C leaves")
	}
	since, err := t.join(ctx)
	if err != nil {
		return err
	}
	at.follow(transport.Size{}, func(transport.Size) error {
		t.resize(ctx)
		return nil
	})
	go func() { // ends with the session, or with ctx
		err := t.client.Follow(ctx, s.ID, since, func(e api.Event) error {
			t.event(ctx, e)
			return nil
		})
		if err == nil || gateway.Code(err) == "session.closed" {
			err = errOver
		}
		t.leave(err)
	}()
	if t.raw {
		go forward(&leavable{pass: func(b []byte) { t.typed(ctx, b) }, leave: func() {
			t.keyboard.flush()
			t.leave(errDetached)
		}})
	}
	if t.readOnly {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return t.prompt(ctx)
}

// prompt reads commands and runs them, until ctx ends.
func (t *takeover) prompt(ctx context.Context) error {
	for {
		select {
		case <-t.ready():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		text, err := t.read(ctx)
		if err != nil {
			return err
		}
		if strings.TrimSpace(text) != "" {
			if err := t.submit(ctx, text); err != nil {
				if gateway.Code(err) != "usage" && gateway.Code(err) != "session.busy" {
					return err
				}
				t.app.out.fail(err)
			}
		}
	}
}

// read reads a command, of as many lines as it takes to be complete. It is empty if
// the person gave it up.
func (t *takeover) read(ctx context.Context) (string, error) {
	text, prompt := "", t.promptText()
	for {
		t.editor.SetPrompt(prompt)
		line, err := t.editor.ReadLine()
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case errors.Is(err, io.EOF) && text != "": // ^D
			t.renewEditor()
			t.resize(ctx)
			t.app.out.newLine()
			return text, nil
		case err != nil:
			return "", errDetached
		case t.lines.dropped():
			return "", nil
		}
		text += line
		if !t.unfinished(text) {
			return text, nil
		}
		text, prompt = text+"\n", "> "
	}
}

// unfinished reports whether the session's shell would want another line.
func (t *takeover) unfinished(text string) bool {
	rest, continued := strings.CutSuffix(text, `\`)
	return continued && !strings.HasSuffix(rest, `\`) || statements.Incomplete(text, t.session.Shell)
}

// renewEditor makes an editor with the history of the one before, which reads a ^D
// that has ended it again, and again.
func (t *takeover) renewEditor() {
	editor := term.NewTerminal(struct {
		*lineInput
		*output
	}{t.lines, t.app.out}, "")
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.editor != nil {
		editor.History = t.editor.History
	}
	t.editor = editor
}

func (t *takeover) promptText() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ReplaceAll(visible(t.session.Name+":"+t.cwd), "\n", "?") + "$ "
}

// submit runs a line as the session's next command, as a person's shell would:
// on the terminal.
func (t *takeover) submit(ctx context.Context, text string) error {
	tty := t.session.Kind == api.PTY
	run := api.Run{Text: text, TTY: tty, Echo: tty, Attachment: t.id}
	if name := os.Getenv("TERM"); tty && name != "" {
		run.Env = map[string]string{"TERM": name} // that of who looks
	}
	t.begin(api.Command{TTY: tty, Echo: tty})
	command, err := t.client.Run(ctx, t.session.ID, run)
	if err != nil {
		t.finish()
		return err
	}
	t.known(command.ID)
	return nil
}
