package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// run is one command in progress.
type run struct {
	command Command
	nonce   string
	keeper  *keeper
	outputs [3]*output

	// wake is sent to when progress says something that the goroutine of Run has
	// to act on: not for every mark, for each waking costs more than the mark.
	wake     chan struct{}
	progress progress // guarded by Session.mu

	started  time.Time
	handed   chan struct{} // closed once Command.Started has been called
	activity atomic.Int64  // when the last byte came, in nanoseconds since started
	pressed  atomic.Bool   // ^C was typed: the shell starts a new line on the terminal

	// Used by the goroutine of Run only.
	answered [3]int64 // bytes of each stream at the last answer
	prompt   Prompt
	feeder   *feeder
}

// progress is what the marks of a command have told so far.
type progress struct {
	closed         [3]bool // mark E has come on that stream: what follows is not the command's
	stdout, stderr bool    // the end of that stream is here
	begun          bool    // its stdin is open
	prompted       bool    // the shell reads commands again
	status         string  // of mark E
	promptStatus   string
	job, cwd       string
}

// takes reports whether bytes of a stream are the command's. The caller holds
// Session.mu.
func (r *run) takes(from Stream) bool { return !r.progress.closed[from] }

// write takes bytes of the command.
func (r *run) write(from Stream, b []byte) {
	<-r.handed
	r.activity.Store(int64(time.Since(r.started)))
	if from == Terminal && r.pressed.Load() && len(bytes.Trim(b, "\r\n")) == 0 {
		return
	}
	if from == Terminal && (r.command.TTY || r.keeper == nil) {
		from = Stdout
	}
	if r.outputs[from].write(b) && r.command.Output != nil {
		r.command.Output(from, b)
	}
}

// Run runs a command and returns what happened. One command runs at a time; a
// second one is refused with [ErrBusy].
//
// A command that ends by itself is no error, whatever its status. The error is
// nil only if the verdict is exited or signaled. Otherwise it wraps, along
// with the Result of what is known,
//
//   - context.DeadlineExceeded after Command.Timeout, or the context's cause
//     after its end: the command was ended, the session lives unless
//     Result.Ended;
//   - [ErrNeedsInput] when a prompt went unanswered;
//   - [ErrLost] when the outcome is unknown. Nothing is sent a second time;
//   - [ErrClosed], [ErrBusy] or any other error with verdict not_started.
//
// After the context's end Run takes up to two seconds more to end the command.
func (s *Session) Run(ctx context.Context, command Command) (Result, error) {
	notStarted := Result{Verdict: NotStarted, ExitCode: -1, Streams: Split}
	if err := command.check(); err != nil {
		return notStarted, err
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	default:
		return notStarted, &Error{Code: "session.busy", Message: "session: another command is running", Hint: "wait for it, interrupt it, or open another session", Err: ErrBusy}
	}
	r, err := s.begin(ctx, command)
	if err != nil {
		return notStarted, err
	}
	defer s.leave(r)
	return s.await(ctx, r)
}

// begin does everything up to typing the frame. After an error nothing of the
// command has been sent to the shell.
func (s *Session) begin(ctx context.Context, command Command) (*run, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("session: %w", context.Cause(ctx))
	}
	if err := s.usable(); err != nil {
		return nil, err
	}
	if command.TTY && s.tty == "" {
		return nil, &Error{Code: "session.pty_refused", Message: "session: the account gets no terminal", Hint: "run the command without a terminal"}
	}
	if s.rotate {
		if err := s.renewKeeper(ctx); err != nil {
			return nil, err
		}
	}
	r := &run{command: command, nonce: newNonce(), keeper: s.keeper, wake: make(chan struct{}, 1), handed: make(chan struct{})}
	f := frame{dialect: s.dialect, nonce: r.nonce, keeper: r.keeper, command: command, once: s.once, cwd: s.cwd, quiet: s.isNoisy(command.Text) && !command.TTY}
	noPlace := r.keeper == nil || r.keeper.dir == ""
	switch {
	case r.keeper == nil && s.tty == "":
		return nil, &Error{Code: "shell.unsupported", Message: "session: the account gets no terminal, and the machine has no place for a FIFO", Hint: hintPlace}
	case noPlace && command.Stdin != nil:
		return nil, &Error{Code: "shell.unsupported", Message: "session: the machine has no place for a FIFO, which stdin needs", Hint: hintPlace}
	case noPlace && !f.typable():
		return nil, &Error{Code: "shell.unsupported", Message: fmt.Sprintf("session: the machine has no place for a command of %d bytes or with control characters", len(command.Text)), Hint: hintPlace}
	}
	if !f.typable() {
		if err := s.upload(ctx, r.keeper, command.Text); err != nil {
			return nil, err
		}
		f.uploaded = true
	}
	if command.Stdin != nil {
		var err error
		if r.feeder, err = openFeeder(ctx, s.transport, r.keeper); err != nil {
			return nil, err
		}
	}
	for i := range r.outputs {
		from := Stream(i)
		var spool func() Spool
		if command.Spool != nil {
			spool = func() Spool { return command.Spool(from) }
		}
		r.outputs[i] = newOutput(command.Limit, spool)
	}
	s.expect(r.nonce)
	typed := f.encode()
	r.started = time.Now()
	s.mu.Lock()
	s.run = r
	s.mu.Unlock()
	if n, err := io.WriteString(s.terminal, typed); err != nil && n == 0 {
		close(r.handed)
		s.leave(r)
		return nil, s.usableOr(err)
	}
	s.once = ""
	if command.Started != nil {
		command.Started()
	}
	close(r.handed)
	return r, nil
}

// isNoisy reports whether the shell will speak of its own while it runs a
// frame. Its first words may come when the next command is on its way already,
// hence the look at the text; a wrong guess costs nothing but time.
func (s *Session) isNoisy(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noisy = s.noisy || strings.Contains(text, "set -") || strings.Contains(text, "trap ")
	return s.noisy
}

const hintPlace = "make one of $XDG_RUNTIME_DIR, /tmp, /dev/shm or the home writable"

// usable refuses a session that has ended.
func (s *Session) usable() error {
	select {
	case <-s.ended:
		s.lost = true
	default:
	}
	if !s.lost && !s.closing.Load() {
		return nil
	}
	return &Error{Code: "session.closed", Message: "session: it has ended", Hint: "open another session", Err: ErrClosed}
}

func (s *Session) usableOr(err error) error {
	s.lost = true
	return &Error{Code: "session.closed", Message: fmt.Sprintf("session: its terminal is gone: %v", err), Hint: "open another session", Err: ErrClosed}
}

// leave ends the command's claim on the streams.
func (s *Session) leave(r *run) {
	s.detach(r)
	s.outlive(r.nonce)
	if r.feeder != nil {
		r.feeder.close()
	}
}

// detach ends the command's claim on the streams, and returns what its marks
// have told.
func (s *Session) detach(r *run) progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == r {
		s.run = nil
	}
	return r.progress
}

// progress returns what a command's marks have told so far.
func (s *Session) progress(r *run) progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.progress
}

// upload stores a text that can't be typed in the keeper's directory.
func (s *Session) upload(ctx context.Context, k *keeper, text string) error {
	nonce := newNonce()
	marks := s.expect(nonce)
	defer s.forget(nonce)
	if err := k.upload(nonce, text); err != nil {
		return s.usableOr(err)
	}
	select {
	case m := <-marks:
		if m.payload == "1" {
			return nil
		}
		return &Error{Code: "internal", Message: fmt.Sprintf("session: no room for a command of %d bytes in %s on the machine", len(text), k.dir), Hint: "free some space there"}
	case <-k.ended:
		return s.usableOr(io.ErrUnexpectedEOF)
	case <-ctx.Done():
		s.lost = true // the rest of the text may still be on its way
		return fmt.Errorf("session: %w", context.Cause(ctx))
	}
}

// promptGrace is how long marks may come behind a prompt that overtook them
// before they are asked for.
const promptGrace = 20 * time.Millisecond

// await waits for the command's end.
func (s *Session) await(ctx context.Context, r *run) (Result, error) {
	var deadline <-chan time.Time
	if r.command.Timeout > 0 {
		timer := time.NewTimer(r.command.Timeout)
		defer timer.Stop()
		deadline = timer.C
	}
	w := newWatch(s, ctx, r)
	defer w.stop()
	var grace <-chan time.Time
	fed := false
	for {
		select {
		case <-r.wake:
			p := s.progress(r)
			switch {
			case r.complete(p):
				return s.finish(r, "", nil)
			case p.prompted && grace == nil:
				grace = time.After(promptGrace)
			case p.begun && !fed:
				fed = true
				go r.feeder.feed(r.command.Stdin) // ends with the stdin, or with the feeder
			}
		case <-grace:
			// The shell reads commands again, and a mark is missing: the text made
			// it leave the line.
			s.drain(r)
			return s.finish(r, "", nil)
		case <-s.ended:
			return s.shellEnded(r)
		case <-deadline:
			return s.stop(r, TimedOut, &Error{
				Code:    "cmd.timeout",
				Message: fmt.Sprintf("session: command ended after its timeout of %v", r.command.Timeout),
				Err:     context.DeadlineExceeded,
			})
		case <-ctx.Done():
			return s.stop(r, Interrupted, &Error{
				Code:    "cmd.interrupted",
				Message: fmt.Sprintf("session: command interrupted: %v", context.Cause(ctx)),
				Err:     errors.Join(ctx.Err(), context.Cause(ctx)),
			})
		case <-w.timer.C:
			w.look()
		case m := <-w.probed:
			w.judge(m)
		case a := <-w.answers:
			if err := w.answer(a); err != nil {
				return s.stop(r, Interrupted, err)
			}
		}
	}
}

// take notes a mark of the command, and wakes Run if it has to act. The caller
// holds Session.mu.
func (r *run) take(m mark) {
	p := &r.progress
	switch m.kind {
	case 'B':
		p.begun = true
	case 'P':
		p.prompted, p.promptStatus = true, strings.TrimSuffix(m.payload, ":#")
	case 'E':
		p.closed[m.from] = true
		if m.payload == "" {
			p.stderr = true
			break
		}
		fields := strings.SplitN(m.payload, ":", 3) // three: it is well formed
		p.stdout, p.status, p.job, p.cwd = true, fields[0], fields[1], fields[2]
	}
	if m.kind != 'E' || r.complete(*p) {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// complete reports whether nothing of the command is still to come. A command
// on the terminal has its output before the prompt.
func (r *run) complete(p progress) bool {
	return p.stdout && p.stderr && (p.prompted || !r.command.TTY && r.keeper != nil)
}

// exitCode returns the command's status, or -1. A line that was left by an
// interrupt has 128 and the signal's number, which ksh93 and yash write in
// their own way.
func (p progress) exitCode() int {
	status := p.status
	if !p.stdout {
		status = p.promptStatus
	}
	code, err := strconv.Atoi(status)
	switch {
	case err != nil:
		return -1
	case code > 255:
		return 128 + code%128
	}
	return code
}

// verdict returns what the marks say by themselves.
func (p progress) verdict() Verdict {
	switch {
	case p.status == noCwd:
		return NotStarted
	case p.exitCode() < 0:
		return Unknown
	}
	return Exited
}
