package session

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"gateway/internal/ends"
	"gateway/transport"
)

// begin does everything up to typing the frame. After an error nothing of the
// command has been sent to the shell.
func (s *Session) begin(ctx context.Context, command Command) (*run, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("session: %w", context.Cause(ctx))
	}
	if strings.HasPrefix(command.Text, "-") {
		command.Text = " " + command.Text // else eval takes it for an option
	}
	if err := s.awaitTyped(ctx); err != nil {
		return nil, err
	}
	if command.TTY && s.tty == "" {
		return nil, &transport.Error{Code: "session.pty_refused", Message: "session: the account gets no terminal", Hint: "run the command without a terminal"}
	}
	if s.config.Sudo != nil && s.keeper.isGone() {
		return nil, s.terminalGone(io.ErrUnexpectedEOF)
	}
	s.holders.begun()
	joins, before := s.joins(command), s.keeper
	held := !joins && s.holders.found.Swap(false) // by this keeper, and no other
	if must := s.rotate || s.shared && !joins || s.keeper.isGone(); must || held {
		if err := s.renewKeeper(ctx); err != nil && (must || ctx.Err() != nil) {
			return nil, err
		}
	}
	r := &run{command: command, nonce: newNonce(), keeper: s.keeper, progress: progress{marksSignals: s.dialect.marksSignals}, wake: make(chan struct{}, 1), typed: make(chan [3]int64, 1), pursued: make(chan Level, 1), handed: make(chan struct{})}
	noisy, traced := s.isNoisy(command.Text), s.isTraced(command.Text)
	r.awaited = noisy || traced || mentionsTerminal(command.Text)
	r.silent = silent.MatchString(command.Text)
	r.loud = r.awaited || r.keeper == nil || command.TTY || (!s.settles() || s.dialect.regain != "") && !r.silent
	f := frame{
		dialect: s.dialect, nonce: r.nonce, keeper: r.keeper, command: command, once: s.once, cwd: s.cwd, reopen: s.config.Reopen,
		quiet: noisy && !command.TTY, traced: traced, loud: r.loud, modes: command.TTY || s.modes || changesModes(command.Text),
		limited: s.isLimited(command.Text),
	}
	f.typed = s.left || f.limited
	if mentions(command.Text, asksStatus, "?", "exit", "return") {
		f.status = s.status
	}
	if joins {
		r.before = s.asked
	}
	if command.TTY {
		r.rest = newNonce()
		f.rest = r.rest
	}
	if s.job != "" && strings.Contains(command.Text, "&") {
		f.once += s.dialect.recount
	}
	if err := s.possible(f); err != nil {
		return nil, err
	}
	if command.Stdin != nil {
		var err error
		if r.feeder, err = s.openFeeder(ctx, r.keeper); err != nil {
			s.rotate = r.keeper != nil && s.config.Sudo == nil // its directory may be gone
			return nil, err
		}
		f.stdin = r.feeder.fifo
	}
	typed, err := s.line(ctx, f)
	if err != nil {
		s.rotate = f.keeper != nil && s.config.Sudo == nil // as above
		r.feeder.close()
		return nil, err
	}
	for i := range r.outputs {
		from := Stream(i)
		var spool func() ends.Spool
		if command.Spool != nil {
			spool = func() ends.Spool { return command.Spool(from) }
		}
		r.outputs[i] = ends.NewSpooled(command.Limit, spool)
	}
	kinds := "PE"
	if command.Stdin != nil {
		kinds += "B"
	}
	if command.TTY {
		kinds += "S"
	}
	if f.cuts() {
		kinds += "T"
	}
	s.announce(r.nonce, reply{kinds: kinds})
	if r.rest != "" {
		s.announce(r.rest, reply{kinds: "P"})
	}
	r.veil.echo = echo{typed: typed, traced: traced}
	r.typing.Lock() // who types to it waits until it is typed itself
	r.started = time.Now()
	s.mu.Lock()
	came := s.between
	s.run, s.script, s.between = r, command.Script, between{}
	s.late = s.late || !joins && r.keeper == before && came.any()
	if s.dialect.draws && s.config.Term != "" {
		s.draws += strings.Count(typed, "\n")
	}
	size := s.config.Size
	s.mu.Unlock()
	if command.TTY {
		r.display = &s.display
		r.display.clear(size)
	}
	if joins {
		err = r.inherit(ctx, came)
	}
	if err == nil {
		err = s.typeFrame(typed)
	}
	r.typing.Unlock()
	if err != nil {
		close(r.handed)
		s.leave(r)
		return nil, err
	}
	s.modes = false
	if command.Started != nil {
		command.Started()
	}
	close(r.handed)
	return r, nil
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
	return "", &transport.Error{Code: "usage", Message: fmt.Sprintf("session: the directories %.100q and %.100q are too long to be typed, or have control characters", f.command.Cwd, f.cwd)}
}

// possible refuses what the machine has no means for.
func (s *Session) possible(f frame) error {
	lacks := func(format string, args ...any) error {
		return &transport.Error{
			Code: "shell.unsupported", Message: "session: the machine has no place for a FIFO or a file, which is needed for " + fmt.Sprintf(format, args...),
			Hint: "make one of $XDG_RUNTIME_DIR, /dev/shm, /tmp or the home writable",
		}
	}
	if u := s.config.Sudo; f.command.Stdin != nil && u != nil && u.User != "" && u.User != "root" {
		return &transport.Error{Code: "shell.unsupported", Message: "session: " + u.User + " can't read what the account's own processes feed", Hint: "write the input to a file, or leave --stdin out"}
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
		return lacks("a command of %d bytes, or one with control characters", len(f.command.Text))
	}
	return nil
}

// traces matches what makes a shell show what it runs, or run nothing.
var traces = regexp.MustCompile(`\bset(?:\s+[-+](?:[A-Za-z]*o\s+[a-z]+|[A-Za-z]+))*\s+-[A-Za-z]*[nxv]|(?:set(?:opt)?|shopt)\s[^\n;&|]*(?:xtrace|verbose|noexec)|options\[(?:xtrace|verbose|exec)|(?s:trap\s.*DEBUG)|TRAPDEBUG`)

// mentions reports whether a text matches, which has one of the words if it
// does. Texts may have megabytes, and words are found fifty times as fast.
func mentions(text string, matches *regexp.Regexp, words ...string) bool {
	has := func(word string) bool { return strings.Contains(text, word) }
	return slices.ContainsFunc(words, has) && matches.MatchString(text)
}

// isTraced reports whether the shell may show what it runs, for this command
// or because of an earlier one.
func (s *Session) isTraced(text string) bool {
	s.traced = s.traced || mentions(text, traces, "set", "xtrace", "verbose", "noexec", "DEBUG", "options[exec")
	return s.traced
}

// silent matches the texts that start no program and write to no terminal, if
// their words mean what they mean in a fresh shell. They are quick enough for a
// prompt behind them to be felt.
var silent = regexp.MustCompile("^(?:(?:true|false|:|cd|pwd|echo|export|test|umask)(?: [^\n()`|&;<>]*)?|[A-Za-z_][A-Za-z0-9_]*=[^ \t\n()`|&;<>]*)$")

// mentionsTerminal reports whether a text is likely to write to the terminal.
func mentionsTerminal(text string) bool {
	return strings.Contains(text, "tty") || strings.Contains(text, "/dev/pts") || changesModes(text)
}

// modes matches what changes the modes of the terminal.
var modes = regexp.MustCompile(`\b(stty|reset|tset)\b`)

func changesModes(text string) bool { return mentions(text, modes, "stty", "reset", "tset") }

// isNoisy reports whether the shell will speak of its own while it runs a
// frame. Its first words may come when the next command is on its way already,
// hence the look at the text; a wrong guess costs nothing but time.
func (s *Session) isNoisy(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noisy = s.noisy || strings.Contains(text, "set -") || strings.Contains(text, "trap ")
	return s.noisy
}

// limits matches what may leave the shell too few descriptors for a frame file, or no room
// for its exports.
var limits = regexp.MustCompile(`\bu?limit\b`)

// isLimited reports whether the shell may have few descriptors, or write no large files,
// because of this command or an earlier one.
func (s *Session) isLimited(text string) bool {
	s.limited = s.limited || mentions(text, limits, "limit")
	return s.limited
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
	return &transport.Error{Code: "session.closed", Message: "session: it has ended", Hint: "open another session", Err: ErrClosed}
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
	return &transport.Error{Code: "session.closed", Message: fmt.Sprintf("session: its terminal is gone: %v", err), Hint: "open another session", Err: ErrClosed}
}

// leave ends the command's claim on the streams.
func (s *Session) leave(r *run) {
	s.detach(r)
	s.outlive(r.nonce, "PE")
	if r.rest != "" {
		s.outlive(r.rest, "P")
	}
	r.feeder.close()
	if r.ordered.Load() != nil {
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
		if r.loud && !r.progress.prompted {
			s.owed, s.until = r.nonce, time.Now().Add(owedGrace+s.trip)
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
