package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/session"
	"gateway/transport"
)

// A takeover is a person at the live terminal of a session: an editor for the
// next command while none runs, and else the way to the one that does.
type takeover struct {
	app      *app
	client   *client.Client
	id       string // of the attachment
	readOnly bool
	raw      bool
	leave    context.CancelCauseFunc
	session  api.Session
	lines    *lineInput
	keyboard *keyboard
	joined   time.Time // when the command began that ran then, or was over

	mu      sync.Mutex
	editor  *term.Terminal // written by prompt only, under mu
	cwd     string
	command *api.Command  // that runs; guarded by mu, as all below
	done    chan struct{} // closed when it has ended, and before the first one
	last    string        // the command that ended last
	asks    bool          // it waits for input
	answer  []byte        // what was typed of the answer
	crlf    bool          // its output has bare newlines
}

// ready returns what is closed once no command runs.
func (t *takeover) ready() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.done
}

// begin gives the terminal to a command.
func (t *takeover) begin(c api.Command) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.command, t.done, t.asks, t.answer, t.crlf = &c, make(chan struct{}), false, nil, !c.TTY || !c.Echo
	t.keyboard.next()
}

// known notes the id of a command that has begun. It may have ended by now.
func (t *takeover) known(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.command != nil && t.last != id {
		t.command.ID = id
		return
	}
	t.finishLocked()
}

// finish gives the terminal back to the editor.
func (t *takeover) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finishLocked()
}

func (t *takeover) finishLocked() {
	if t.command == nil {
		return
	}
	t.app.out.newLine()
	t.command = nil
	t.keyboard.next()
	close(t.done)
}

// running returns the id of the command that runs; empty where it is not known.
func (t *takeover) running() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.command == nil {
		return ""
	}
	return t.command.ID
}

// event takes what happens in the session.
func (t *takeover) event(ctx context.Context, e api.Event) {
	switch {
	case e.Missed > 0:
		t.missed(ctx)
	case e.Dropped > 0:
		t.app.warn(missing(e.Dropped, e.Why))
	case e.Piece != nil:
		t.keyboard.hear()
		t.show(e.Piece.Data)
	case e.Event == "started" && t.readOnly:
		t.app.out.newLine()
		_, _ = t.app.out.Write([]byte(strings.ReplaceAll(t.promptText()+visible(e.Command.Text)+"\n", "\n", "\r\n")))
		t.begin(*e.Command)
	case e.Event == "waiting_input":
		t.mu.Lock()
		t.asks = true
		t.mu.Unlock()
	case e.Event == "result":
		t.ended(e.Command)
	case e.Event == "reopened":
		t.app.out.say("gateway: the session has a fresh shell")
	}
}

// missed finds out whether the command that runs is over: that may be among what
// the daemon does not know any more.
func (t *takeover) missed(ctx context.Context) {
	id := t.running()
	if id == "" {
		return
	}
	switch c, err := t.client.Command(ctx, id, 1); {
	case err != nil:
		t.app.log.Debug("command", "id", id, "error", err) // it is asked again with the next one
	case c.Over():
		t.ended(&c)
	}
}

// ended takes the result of a command.
func (t *takeover) ended(c *api.Command) {
	t.mu.Lock()
	t.last = c.ID
	ours := t.command != nil && t.command.ID == c.ID
	t.mu.Unlock()
	seen := ours || c.StartedAt.After(t.joined)
	if r := c.Result; seen && r != nil && r.Err != nil && r.Verdict != session.Interrupted {
		t.app.out.newLine()
		t.app.out.fail(r.Err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Result != nil && c.Result.Cwd != "" {
		t.cwd = c.Result.Cwd
	}
	if ours || t.readOnly {
		t.finishLocked()
	}
}

// show shows output: under the editor's line, if that has the terminal.
func (t *takeover) show(b []byte) {
	t.mu.Lock()
	editor, editing, crlf := t.editor, t.command == nil && !t.readOnly, t.crlf && t.raw
	t.mu.Unlock()
	switch {
	case editing:
		_, _ = editor.Write(b) // the output remembers
	case crlf:
		_, _ = t.app.out.Write(bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")))
	default:
		_, _ = t.app.out.Write(b)
	}
}

// typed takes what the person types.
func (t *takeover) typed(ctx context.Context, b []byte) {
	t.mu.Lock()
	command, asks := t.command, t.asks
	t.mu.Unlock()
	switch {
	case t.readOnly:
		if bytes.ContainsAny(b, "q\x03\x04") {
			t.leave(errDetached)
		}
	case command == nil:
		t.lines.press(b)
	case command.TTY:
		t.keyboard.press(b)
	default:
		t.plain(ctx, b, asks)
	}
}

// interrupt asks the command that runs to end.
func (t *takeover) interrupt(ctx context.Context) {
	if err := t.client.Interrupt(ctx, t.session.ID, api.Interrupt{Level: string(session.Int), Command: t.running(), Attachment: t.id}); err != nil {
		t.app.log.Debug("interrupt", "session", t.session.ID, "error", err) // it has ended
	}
}

// plain is what keys do to a command that is not on the terminal: ^C interrupts
// it, and a line answers its prompt, without being shown.
func (t *takeover) plain(ctx context.Context, b []byte, asks bool) {
	for _, key := range b {
		switch {
		case key == ctrlC:
			t.interrupt(ctx)
		case !asks:
		case key == '\r' || key == '\n':
			t.reply(ctx)
			return
		case key == 0x7f || key == 8:
			t.mu.Lock()
			_, size := utf8.DecodeLastRune(t.answer)
			t.answer = t.answer[:len(t.answer)-size]
			t.mu.Unlock()
		default:
			t.mu.Lock()
			t.answer = append(t.answer, key)
			t.mu.Unlock()
		}
	}
}

// reply sends the answer to a prompt. The prompt of one that is refused, as what
// is no text is, still waits, and nobody tells of it again.
func (t *takeover) reply(ctx context.Context) {
	t.mu.Lock()
	command, text := t.command, string(t.answer)
	t.answer, t.asks = nil, false
	t.mu.Unlock()
	t.show([]byte("\n"))
	err := t.client.Send(ctx, t.session.ID, api.Input{Text: text, Enter: true, Secret: true, Attachment: t.id, Command: t.running()})
	if err == nil {
		return
	}
	t.mu.Lock()
	t.asks = t.asks || t.command == command
	t.mu.Unlock()
	t.app.out.fail(err)
}

// join shows what runs already, and returns where to go on.
func (t *takeover) join(ctx context.Context) (since int64, err error) {
	s, screen := t.session, session.Screen{}
	for range 5 { // a screen and a cursor that belong together
		before := s.To
		if screen, err = t.client.Screen(ctx, s.ID); err != nil {
			return 0, err
		}
		if s, err = t.client.Session(ctx, s.ID); err != nil {
			return 0, err
		}
		if s.To == before {
			break
		}
	}
	c := s.Command
	if c != nil {
		t.joined = c.StartedAt
	}
	if c == nil || c.Over() {
		return s.To, nil
	}
	t.begin(*c)
	t.mu.Lock()
	t.asks = s.State == api.WaitingInput
	t.mu.Unlock()
	if !c.TTY {
		t.app.out.say(fmt.Sprintf("gateway: %s runs since %s: %s", s.Name, ago(c.StartedAt), oneLine(c.Text, 48)))
		return max(c.From, s.To-4096), nil
	}
	t.paint(screen)
	if !t.readOnly && screen.Alternate { // it draws anew when its size changes
		size := t.app.console.size()
		_ = t.client.Resize(ctx, s.ID, transport.Size{Cols: size.Cols, Rows: max(size.Rows-1, 1)})
	}
	return s.To, nil
}

// paint shows a program's screen.
func (t *takeover) paint(s session.Screen) {
	var b strings.Builder
	if s.Alternate {
		b.WriteString("\x1b[?1049h")
		t.mu.Lock()
		t.crlf = false // such a program knows its terminal
		t.mu.Unlock()
	}
	if s.ApplicationCursor {
		b.WriteString("\x1b[?1h")
	}
	b.WriteString("\x1b[H\x1b[2J" + strings.Join(s.Rows, "\r\n"))
	fmt.Fprintf(&b, "\x1b[%d;%dH", s.CursorRow+1, s.CursorCol+1)
	_, _ = t.app.out.Write([]byte(b.String()))
}

// resetTerminal undoes what a program that goes on has done to the terminal.
func (t *takeover) resetTerminal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.raw && t.command != nil && t.command.TTY {
		_, _ = t.app.out.Write([]byte("\x1b[?1049l\x1b[?1l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1006l\x1b[?2004l\x1b[0m\r\n"))
	}
}

// resize tells the session how large the terminal is.
func (t *takeover) resize(ctx context.Context) {
	size := t.app.console.size()
	if size.Cols == 0 || t.readOnly {
		return
	}
	t.mu.Lock()
	editor := t.editor
	t.mu.Unlock()
	_ = editor.SetSize(size.Cols, size.Rows) // it fails for what is drawn only
	if err := t.client.Resize(ctx, t.session.ID, size); err != nil {
		t.app.log.Debug("resize", "session", t.session.ID, "error", err) // a size that is wrong
	}
}
