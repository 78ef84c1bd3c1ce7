package session

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"gateway/internal/ends"
	"gateway/transport"
)

// begin does everything up to typing the frame. After an error nothing of the
// command has been sent to the shell.
func (s *Session) begin(ctx context.Context, command Command) (*run, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("session: %w", transport.Cause(ctx))
	}
	if strings.HasPrefix(command.Text, "-") {
		command.Text = " " + command.Text // else eval takes it for an option
	}
	if err := s.awaitTyped(ctx); err != nil {
		return nil, err
	}
	switch {
	case !command.TTY || s.tty != "":
	case s.config.NoTerminal:
		return nil, failure(codePTYRefused, nil, "open one with a terminal, or run the command without", "the session was opened without a terminal")
	default:
		return nil, failure(codePTYRefused, nil, "run the command without a terminal", "the account gets no terminal")
	}
	joins, before := s.joins(command), s.keeper
	if err := s.turnToKeeper(ctx, joins); err != nil {
		return nil, err
	}
	s.awaitHold(ctx, command.Text)
	r := s.newRun(ctx, command)
	if joins {
		r.before = s.asked
	}
	f := s.frame(r)
	if err := s.possible(f); err != nil {
		return nil, err
	}
	typed, err := s.prepare(ctx, r, f)
	if err != nil {
		return nil, err
	}
	s.announceEnd(r, f)
	r.veil.echo = echo{typed: typed, traced: f.traced}
	err = s.handOver(ctx, r, typed, joins, !joins && r.keeper == before)
	if err == nil && command.Started != nil {
		command.Started()
	}
	close(r.handed)
	if err != nil {
		s.leave(r)
		return nil, err
	}
	return r, nil
}

// handOver gives the streams to a command, and its frame to the shell. joins: it is a
// part of the last one's script. same: it has that one's streams, and is none.
func (s *Session) handOver(ctx context.Context, r *run, typed string, joins, same bool) error {
	r.typing.Lock() // who types to it waits until it is typed itself
	defer r.typing.Unlock()
	r.started = time.Now()
	came := s.claim(r, typed, same)
	if joins {
		if err := r.inherit(ctx, came); err != nil {
			return err
		}
	}
	if err := s.typeFrame(typed); err != nil {
		return err
	}
	s.modes = false
	return nil
}

// turnToKeeper turns to another keeper where the command needs one, or had better have it:
// nobody else may hold its streams, but for a part of the same script.
func (s *Session) turnToKeeper(ctx context.Context, joins bool) error {
	if s.config.Sudo != nil {
		if s.keeper.isGone() {
			return s.terminalGone(io.ErrUnexpectedEOF)
		}
		if s.shared && !joins {
			s.outdate()
		}
		return nil
	}
	s.holders.begun()
	held := !joins && s.holders.found.Swap(false) // by this keeper, and no other
	must := s.rotate || s.shared && !joins || s.keeper.isGone()
	if !must && !held {
		return nil
	}
	if err := s.renewKeeper(ctx); err != nil && (must || ctx.Err() != nil) {
		return err
	}
	return nil
}

// newRun makes a command's run, whose keeper is the session's.
func (s *Session) newRun(ctx context.Context, command Command) *run {
	r := &run{
		ctx: ctx, command: command, nonce: newNonce(), keeper: s.keeper, progress: progress{marksSignals: s.dialect.marksSignals},
		wake: make(chan struct{}, 1), typed: make(chan [3]int64, 1), pursued: make(chan Level, 1), handed: make(chan struct{}),
	}
	for i := range r.outputs {
		from := Stream(i)
		var spool func() ends.Spool
		if command.Spool != nil {
			spool = func() ends.Spool { return command.Spool(from) }
		}
		r.outputs[i] = ends.NewSpooled(command.Limit, spool)
	}
	if command.TTY {
		r.rest = newNonce()
	}
	return r
}

// frame makes a command's frame, by what its text and those before it may do, and notes in
// the run what is to be expected of it.
func (s *Session) frame(r *run) frame {
	command := r.command
	noisy, traced, limited := s.isNoisy(command.Text), s.isTraced(command.Text), s.isLimited(command.Text)
	resets := command.TTY || s.modes || changesModes(command.Text)
	r.awaited = noisy || traced || resets || mentionsTerminal(command.Text)
	r.silent = silent.MatchString(command.Text)
	r.loud = r.awaited || r.keeper == nil || command.TTY || (!s.settles() || s.dialect.regain != "") && !r.silent
	f := frame{
		dialect: s.dialect, nonce: r.nonce, keeper: r.keeper, command: command, once: s.once, cwd: s.cwd, reopen: s.config.Reopen,
		quiet: noisy && (!command.TTY || traced), traced: traced, loud: r.loud, modes: resets,
		limited: limited, typed: s.left || limited, tty: s.tty, rest: r.rest, piped: s.tty == "",
	}
	if f.piped && f.keeper != nil && f.keeper.dir != "" {
		f.dialect.oneLine = true
	}
	if mentions(command.Text, asksStatus, "?", "exit", "return") {
		f.status = s.status
	}
	if s.job != "" && strings.Contains(command.Text, "&") {
		f.once += s.dialect.recount
	}
	return f
}

// prepare brings to the machine what the command needs beside its frame, and returns what
// is typed.
func (s *Session) prepare(ctx context.Context, r *run, f frame) (typed string, err error) {
	if r.command.Stdin != nil {
		if r.feeder, err = s.openFeeder(ctx, r.keeper); err == nil {
			f.stdin = r.feeder.fifo
		}
	}
	if err == nil {
		typed, err = s.line(ctx, f)
	}
	if err != nil {
		s.rotate = r.keeper != nil && s.config.Sudo == nil // its directory may be gone
		r.feeder.close()
	}
	return typed, err
}

// announceEnd expects the marks of a frame.
func (s *Session) announceEnd(r *run, f frame) {
	kinds := "PE"
	if r.command.Stdin != nil {
		kinds += "B"
	}
	if r.command.TTY {
		kinds += "S"
	}
	if f.cuts() {
		kinds += "T"
	}
	s.announce(r.nonce, reply{kinds: kinds})
	if r.rest != "" {
		s.announce(r.rest, reply{kinds: "P"})
	}
}

// claim gives the streams to a command, and returns what has come since the one before. What
// has is late where the streams are still that one's.
func (s *Session) claim(r *run, typed string, same bool) between {
	s.mu.Lock()
	came := s.between
	s.run, s.script, s.between, s.idled = r, r.command.Script, between{}, false
	s.late = s.late || same && came.any()
	if s.dialect.draws && s.config.Term != "" {
		s.draws += strings.Count(typed, "\n")
	}
	size := s.config.Size
	s.mu.Unlock()
	if r.command.TTY {
		r.display = &s.display
		r.display.clear(size)
	}
	return came
}

// typeFrame types a frame. One of which a part is typed may have begun: that is no error here.
func (s *Session) typeFrame(typed string) error {
	if n, err := io.WriteString(s.terminal, typed); err != nil && n == 0 {
		return s.terminalGone(err)
	}
	return nil
}

// line returns what is typed for a frame, whose text is uploaded where that is
// too long.
func (s *Session) line(ctx context.Context, f frame) (string, error) {
	if typed, ok := f.line(); ok {
		return typed, nil
	}
	if err := s.upload(ctx, f.keeper, f.file()); err != nil {
		return "", err
	}
	f.uploaded = true
	if typed, ok := f.line(); ok {
		return typed, nil
	}
	return "", failure(codeUsage, nil, "", "the directories %.100q and %.100q are too long to be typed, or have control characters or the byte \\xff", f.command.Cwd, f.cwd)
}

// possible refuses what the machine has no means for.
func (s *Session) possible(f frame) error {
	lacks := func(format string, args ...any) error {
		return failure(codeUnsupported, nil, hintNoPlace, "the machine has no place for a FIFO or a file, which is needed for "+format, args...)
	}
	if u := s.config.Sudo; f.command.Stdin != nil && u != nil && u.User != "" && u.User != "root" {
		return failure(codeUnsupported, nil, "write the input to a file, or leave --stdin out", "%s can't read what the account's own processes feed", u.User)
	}
	if f.keeper != nil && f.keeper.dir != "" {
		return nil
	}
	switch {
	case f.keeper == nil && s.tty == "":
		return lacks("an account without a terminal")
	case f.command.Stdin != nil:
		return lacks("standard input")
	case !f.typable():
		return lacks("a command of %d bytes, or one with control characters or the byte \\xff", len(f.command.Text))
	}
	return nil
}

// usable refuses a session that has ended.
func (s *Session) usable() error {
	if closed(s.terminal.Done()) && !s.lost {
		s.end()
	}
	if !s.lost && !s.closing.Load() {
		return nil
	}
	return hasEnded()
}

func hasEnded() error {
	return failure(codeClosed, ErrClosed, hintClosed, "it has ended")
}

// end ends a session that can run nothing any more, so that Done tells it.
func (s *Session) end() {
	s.lost = true
	s.terminal.Close()
	within(time.Second, s.ended)
}

// terminalGone ends the session, and says so.
func (s *Session) terminalGone(err error) error {
	s.end()
	return failure(codeClosed, ErrClosed, hintClosed, "its terminal is gone: %v", err)
}

// leave ends the command's claim on the streams.
func (s *Session) leave(r *run) {
	s.detach(r)
	s.outlive(r.nonce, "PE")
	if r.rest != "" {
		s.outlive(r.rest, "P")
	}
	r.feeder.close()
	if r.told.Load() {
		allWithin(heedGrace, &r.signaling)
		s.heed(r) // what comes to an order's line late would take the next command's for its own
	}
}

// detach ends the command's claim on the streams, and returns what its marks
// have told.
func (s *Session) detach(r *run) progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == r {
		s.run = nil
		if s.echo = (echo{}); !r.pressed.Load() { // an interrupt has the terminal throw it away
			s.echo = r.veil.due()
		}
		if r.loud && !r.progress.prompted {
			s.owe(r.nonce)
		}
	}
	return r.progress
}

// progress returns what a command's marks have told so far.
func (s *Session) progress(r *run) progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.progress
}
