package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/internal/ends"
	"gateway/session"
	"gateway/transport"
)

// An execution is one command of a session, as this call sees it: the daemon
// has it, and keeps it when the call is over.
type execution struct {
	app     *app
	client  *client.Client
	show    *show
	session string
	run     api.Run
	wait    time.Duration
	waits   bool // wait is given

	typing   bool             // the person's keys are the command's
	keyboard *keyboard        // of who is typing
	command  *api.Command     // once it has started
	late     <-chan time.Time // when the wait is over
	stopped  string           // at which level it was told to end, which may come before it has started; empty: it was not
	ask      asker            // nil: nobody
	asked    func()           // ends the question that is open
	answers  chan answered    // of ask
	refused  *transport.Error
	prompt   *api.Prompt // the question that was put last

	dropped int64              // bytes of the output that did not come
	why     *gateway.JSONError // they could not be kept; nil: a limit took them
	heard   [3]ends.Ends       // by stream, for a program, where the daemon gives no result any more
}

// answered is what came of a question.
type answered struct {
	text string
	err  error
}

// do runs the command and returns what is known of it at the end: its result,
// or that it still runs.
func (e *execution) do(ctx context.Context) gateway.Result {
	e.answers, e.asked = make(chan answered), func() {}
	for i := range e.heard {
		e.heard[i] = ends.Ends{Head: half, Tail: half}
	}
	if !e.waits {
		e.ask = e.show.asker(e.app.asker())
	}
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a signal is for the command
	defer cancel()
	go func() { // ends with requests
		select {
		case <-e.app.givenUp: // nobody waits for the daemon any more
			cancel()
		case <-requests.Done():
		}
	}()
	left := make(chan struct{})
	e.typing = e.run.TTY && !e.waits && isTerminal(os.Stdin) && e.app.out.format == "text"
	if e.typing {
		defer e.sit(requests, left)()
	}
	if e.waits { // also for a daemon that does not say that it has started
		e.late = time.After(e.wait + patience)
	}
	events, ended := e.send(requests)
	stop := ctx.Done()
	for {
		select {
		case event := <-events:
			if result, over := e.take(requests, event); over {
				return result
			}
		case answer := <-e.answers:
			e.answer(requests, answer)
		case <-left:
			e.app.console.restore()
			if e.command == nil {
				return e.leftEarly()
			}
			return e.unfinished(requests, nil)
		case <-e.late:
			if e.command == nil {
				return e.leftEarly()
			}
			return e.unfinished(requests, nil)
		case <-stop:
			stop = nil
			signal, ok := interrupted(context.Cause(ctx))
			if ok && signal.signal == syscall.SIGHUP {
				cancel() // as the second one of another kind does
				break
			}
			if e.stopped = string(session.Int); !ok { // nobody sees what it says
				e.stopped = api.End
			}
			if e.command != nil {
				e.interrupt(requests, e.stopped)
			}
		case err := <-ended:
			switch {
			case requests.Err() == nil:
				return e.lost(err)
			case e.command == nil:
				return e.leftEarly()
			}
			return e.abandoned(context.WithoutCancel(ctx), context.Cause(ctx))
		}
	}
}

// send has the daemon run the command, and returns what it tells of it, and how
// that has ended. Both end with the command, or with the context.
func (e *execution) send(ctx context.Context) (<-chan api.Event, <-chan error) {
	events := make(chan api.Event)
	ended := make(chan error, 1)
	go func() {
		ended <- e.client.Exec(ctx, e.session, e.run, func(event api.Event) error {
			select {
			case events <- event:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return events, ended
}

// take takes an event. It reports whether that is the last one for this call, and
// what is known of the command then.
func (e *execution) take(ctx context.Context, event api.Event) (result gateway.Result, over bool) {
	switch event.Event {
	case "started":
		e.started(ctx, event.Command)
	case "waiting_input":
		if e.waits {
			return e.unfinished(ctx, event.Command.Prompt), true
		}
		e.question(ctx, event.Command.Prompt)
	case "result":
		e.asked()
		return e.result(event.Command), true
	default:
		e.output(event)
	}
	return result, false
}

// sit puts the person at the session's terminal, until the returned function is
// called. left is closed when they type ~. .
func (e *execution) sit(ctx context.Context, left chan<- struct{}) (stand func()) {
	c := e.app.console
	if name := os.Getenv("TERM"); name != "" && e.run.Env["TERM"] == "" {
		e.run.Env["TERM"] = name
	}
	resize := func(size transport.Size) error { return e.client.Resize(ctx, e.session, size) }
	size := c.size() // with the command: one that is refused changes nothing for the one that runs
	e.run.Cols, e.run.Rows = size.Cols, size.Rows
	at := newAttachment(c)
	if err := c.makeRaw(); err != nil {
		e.app.warn("the terminal stays as it is: " + err.Error())
	}
	at.follow(size, resize)
	e.keyboard = newKeyboard(func(b []byte) error { return e.press(ctx, b) })
	e.keyboard.interrupt = func() { // its command has begun: it was typed to
		_ = e.client.Interrupt(ctx, e.session, api.Interrupt{Level: string(session.Int), Command: e.command.ID}) // it may have ended
	}
	go forward(&leavable{pass: e.keyboard.press, leave: func() {
		e.keyboard.flush()
		close(left)
	}})
	return at.stop
}

// press types keys to the command, and to no other that runs behind it.
func (e *execution) press(ctx context.Context, keys []byte) error {
	return e.client.Send(ctx, e.session, api.Input{Data: keys, Command: e.command.ID})
}

// started notes what runs. What was typed up to now is for the command.
func (e *execution) started(ctx context.Context, c *api.Command) {
	e.command = c
	if e.typing {
		go e.keyboard.run(ctx)
	}
	e.show.on(c.Host)
	e.show.started()
	if e.waits {
		e.late = time.After(e.wait)
	}
	if e.stopped != "" {
		e.interrupt(ctx, e.stopped)
	}
}

// abandoned returns what is known of a command that has started when signals end the
// call: that it goes on, only a daemon that answers can say.
func (e *execution) abandoned(ctx context.Context, cause error) gateway.Result {
	ctx, cancel := context.WithTimeout(ctx, hurry/2) // the process ends then
	defer cancel()
	verdict, what := session.Verdict(api.Running), "the command goes on"
	if _, err := e.client.Hello(ctx); err != nil {
		verdict, what = session.Unknown, "the daemon does not answer: the command may go on"
	}
	return e.soFar(verdict, &transport.Error{Code: "cmd.interrupted", Message: cause.Error() + ", and " + what, Hint: e.goOn(), Err: cause})
}

// goOn says how to come back to the command.
func (e *execution) goOn() string {
	return fmt.Sprintf("its id is %s: gateway session wait %[1]s --until exit, gateway session read %[1]s --since %d --follow", e.command.ID, e.command.To)
}

// output shows a piece of the output.
func (e *execution) output(event api.Event) {
	switch {
	case event.Event == "dropped":
		e.dropped += event.Dropped // told at the end: they may come by thousands
		if event.Why != nil {
			e.why = event.Why
		}
	case event.Piece != nil:
		e.command.To = event.Next
		if e.keyboard != nil {
			e.keyboard.hear()
		}
		from := streamOf(event.Piece.Stream)
		if e.app.out.format != "text" {
			e.heard[from].Add(event.Piece.Data)
		}
		e.show.output(from, event.Piece.Data)
	}
}

func streamOf(name string) session.Stream {
	for _, s := range []session.Stream{session.Stdout, session.Stderr} {
		if s.String() == name {
			return s
		}
	}
	return session.Terminal
}

// question has somebody answer what the command asks. Where nobody is, the
// command is ended, as it never hangs.
func (e *execution) question(ctx context.Context, p *api.Prompt) {
	e.asked()
	if e.refused != nil { // it asks anew while it is being ended
		return
	}
	e.prompt = p
	switch {
	case e.typing: // it is left to who types
		return
	case e.ask == nil:
		e.refuse(ctx, errors.New("nobody to ask"))
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	closed := make(chan struct{})
	e.asked = func() {
		cancel()
		<-closed // the terminal is as it was
	}
	go func() { // ends with the answer, or with the question
		defer close(closed)
		text, err := e.ask(ctx, gateway.Question{Kind: gateway.AskCommand, Host: e.command.Host, Prompt: p.Text})
		select {
		case e.answers <- answered{text, err}:
		case <-ctx.Done():
		}
	}()
}

// answer types what a person has answered.
func (e *execution) answer(ctx context.Context, a answered) {
	e.asked()
	if a.err != nil {
		e.refuse(ctx, a.err)
		return
	}
	err := e.client.Send(ctx, e.session, api.Input{Text: a.text, Enter: true, Secret: true, Command: e.command.ID})
	if err != nil {
		e.app.warn("the answer was not typed: " + err.Error()) // the command has gone on without it
	}
}

// refuse ends a command that waits for what nobody says.
func (e *execution) refuse(ctx context.Context, why error) {
	e.refused = &transport.Error{
		Code: "cmd.needs_input", Message: fmt.Sprintf("session: command waits for input%s: %v", atQuestion(e.prompt), why), Err: session.ErrNeedsInput,
		Hint: "answer it at a terminal, or leave it waiting with --wait, for gateway session answer",
	}
	if draws(e.prompt) {
		e.refused.Message = fmt.Sprintf("session: command draws on the screen, and waits for keys: %v", why)
		e.refused.Hint = "run it at a terminal, or leave it waiting with --wait, for gateway session attach"
	}
	e.interrupt(ctx, api.End)
}

// interrupt tells this command, and no other, to end. How it takes that shows in its
// result.
func (e *execution) interrupt(ctx context.Context, level string) {
	e.asked()
	if err := e.client.Interrupt(ctx, e.session, api.Interrupt{Level: level, Command: e.command.ID}); err != nil {
		e.app.log.Debug("interrupt", "command", e.command.ID, "error", err) // it has ended
	}
}
