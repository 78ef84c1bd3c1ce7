// Package session is the engine: a shell on a terminal that outlives its
// commands, and one result for each of them that is never wrong about what
// happened.
//
// The terminal is for control and pipes are for data. The shell sits on a
// terminal without echo; its commands write to two pipes of a [keeper], which
// come home apart and byte for byte. Two sentinels end a command: a mark
// with its status behind each stream, and the shell's next prompt on the
// terminal.
package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gateway/transport"
)

// Config says what a session is like. The zero value is bash where there is
// one, else sh, in the account's home.
type Config struct {
	// ID names the session in the environment of its processes
	// (GATEWAY_SESSION); empty means a random one. Letters, digits and dashes.
	ID string
	// Shell is the program that reads the commands; see the contract.
	Shell string
	// Login reads the login profile first.
	Login bool
	// Env is exported in the session.
	Env map[string]string
	// Cwd is where the session starts; empty means home.
	Cwd string
	// Sudo, if there is one, makes the session another user's.
	Sudo *Sudo
	// Size and Term describe the terminal. An empty Term means a terminal that
	// nobody looks at: TERM=dumb, and cat for every pager.
	Size transport.Size
	Term string
	// NoTerminal starts the shell on plain pipes: nothing has a terminal, and
	// nothing is asked there.
	NoTerminal bool
	// Reopen keeps what [Session.Reopen] needs, for 20 µs a command.
	Reopen bool
	// Ledger, if there is one, notes the session as long as something of it may be
	// on the machine, and tells it which others to end there.
	Ledger Ledger
	// OpenTimeout bounds Open beside its context; 0 means 30 s.
	OpenTimeout time.Duration
}

// A Session is a shell that outlives its commands. Methods may be called
// concurrently; one command runs at a time.
type Session struct {
	transport transport.Transport
	config    Config
	terminal  transport.Terminal
	display   display
	ended     chan struct{} // closed when the terminal has ended
	pumps     sync.WaitGroup
	closing   atomic.Bool
	heard     atomic.Int64 // reads that brought something
	entry     Entry
	account   string // empty: there is no ledger

	trip    time.Duration // a round trip and a little more: the answer to its start
	dialect dialect
	shell   string // its path
	pid     int
	origin  string // where it started
	tty     string // its terminal; empty: the account got none

	turn  chan struct{} // holds one token while a command runs
	alarm *alarm

	// Used by the holder of the turn only.
	cwd     string
	job     string // $! at the last mark
	once    string // goes into the next frame
	rotate  bool   // the next command needs a keeper of its own
	traced  bool   // the shell may show what it runs
	limited bool   // the shell may have few descriptors
	left    bool   // the last line was left before its end: what it did to the prompt stands
	modes   bool   // the terminal has modes that are not the session's
	lost    bool   // no further command is possible
	retired []*keeper

	mu      sync.Mutex
	keeper  *keeper          // where commands write; nil if the terminal carries everything
	merged  bool             // there is no keeper, and will be none
	run     *run             // the command in progress
	replies map[string]reply // by nonce: who waits for which marks
	late    bool             // bytes came while no command ran
	past    []string         // nonces of the last commands, whose prompts may still come
	noisy   bool             // the shell has said something of its own on the terminal
	owed    string           // the nonce of the last command's prompt, if it is still to come
	until   time.Time        // and for how long it may
	ready   bool             // the first prompt has come
	noise   []byte           // the beginning of what the terminal said before it
	names   []string         // what the ledger knows
}

// Open starts a session's shell on a machine. The context covers the opening
// only. The transport stays the caller's and must outlive the session.
//
// Its errors are those of the transport and *[transport.Error], with the codes
// usage, shell.unsupported, shell.no_sync, cmd.cwd, sudo.needs_password,
// sudo.rejected.
func Open(ctx context.Context, t transport.Transport, config Config) (*Session, error) {
	if err := checkShell(config.Shell); err != nil {
		return nil, err
	}
	if err := config.Sudo.check(); err != nil {
		return nil, err
	}
	if config.Sudo != nil && config.NoTerminal {
		return nil, &transport.Error{Code: "usage", Message: "session: sudo needs a terminal to ask on", Hint: "open the session with a terminal"}
	}
	if config.ID == "" {
		config.ID = "s-" + newNonce()
	}
	if config.OpenTimeout <= 0 {
		config.OpenTimeout = 30 * time.Second
	}
	ctx, cancel := context.WithTimeoutCause(ctx, config.OpenTimeout, errOpenTimeout)
	defer cancel()
	s := &Session{
		transport: t,
		config:    config,
		ended:     make(chan struct{}),
		turn:      make(chan struct{}, 1),
		alarm:     newAlarm(),
		replies:   map[string]reply{},
	}
	s.enter()
	if err := s.start(ctx); err != nil {
		s.abandon()
		return nil, err
	}
	if err := s.setUp(ctx); err != nil {
		s.Close()
		return nil, err
	}
	s.origin = s.cwd
	return s, nil
}

var errOpenTimeout = errors.New("the shell did not answer in time")

// start opens the terminal and the keeper at the same time, neither waiting
// for the other: a session costs no more round trips than one channel.
func (s *Session) start(ctx context.Context) error {
	if s.config.Sudo != nil {
		return s.startSudo(ctx)
	}
	nonce := newNonce()
	ready := s.expect(nonce, "SP")
	defer s.outlive(nonce, "P") // bash repeats an old prompt after some syntax errors
	s.note(nonce)

	opened := make(chan error, 1)
	go func() {
		k, err := s.openKeeper(ctx)
		s.mu.Lock()
		s.keeper, s.merged = k, k == nil
		s.mu.Unlock()
		opened <- err
	}()
	term, err := s.openShell(ctx, shellPrelude(s.config, nonce))
	if err == nil {
		s.attach(term)
		opened := time.Now()
		err = s.awaitReady(ctx, ready, nil)
		s.trip = min(time.Since(opened), maxTrip)
	}
	if failed := <-opened; err == nil {
		err = failed
	}
	if err == nil && s.keeper != nil {
		s.install(s.keeper)
		s.endAbandoned(s.keeper)
	}
	return err
}

// attach reads what the terminal brings, to its end.
func (s *Session) attach(term transport.Terminal) {
	s.terminal = term
	s.pumps.Go(func() {
		s.pump(term, nil, Terminal)
		s.giveUpIfLost()
		close(s.ended)
	})
}

// maxTrip bounds what is added to the patience of the ladder.
const maxTrip = 2 * time.Second

// awaitReady waits for the shell's report and its first prompt. Questions are
// sudo's.
func (s *Session) awaitReady(ctx context.Context, marks, questions <-chan mark) error {
	attempt := 0
	for {
		select {
		case <-questions:
			attempt++
			if err := s.answerSudo(ctx, attempt); err != nil {
				return err
			}
		case m := <-marks:
			switch m.kind {
			case 'S':
				if err := s.parseReady(m.payload); err != nil {
					return err
				}
			case 'P':
				s.once = "unset PS1 PS2 _gwn;PS2=;" + s.dialect.setup // takes them out of the environment
				s.mu.Lock()
				s.ready = true
				s.mu.Unlock()
				return nil
			}
		case <-s.ended:
			if s.config.Sudo != nil && s.shell == "" {
				return s.sudoRejected("no shell")
			}
			return s.noShell()
		case <-ctx.Done():
			return &transport.Error{
				Code:    "shell.no_sync",
				Message: fmt.Sprintf("session: no prompt from the shell: %v%s", context.Cause(ctx), s.said()),
				Hint:    "a login shell or forced command may be in the way; try ssh by hand",
				Err:     context.Cause(ctx),
			}
		}
	}
}

func (s *Session) parseReady(payload string) error {
	r, err := parseReady(payload)
	if err != nil {
		return err
	}
	d, ok := dialects[r.family]
	if !ok {
		return &transport.Error{Code: "shell.unsupported", Message: fmt.Sprintf("session: shell %q not found on the machine", s.config.Shell), Hint: "set the host's shell to one that is installed there"}
	}
	s.dialect, s.tty, s.pid, s.shell, s.cwd = d, r.tty, r.pid, r.path, r.cwd
	return nil
}

// noShell explains why the terminal ended before the first prompt.
func (s *Session) noShell() error {
	exit, err := s.terminal.Wait()
	if err != nil {
		return fmt.Errorf("session: start a shell: %w", err)
	}
	return &transport.Error{
		Code:    "shell.no_sync",
		Message: fmt.Sprintf("session: the shell ended with status %d before its first prompt%s", exit.Code, s.said()),
		Hint:    "a forced command, a nologin shell or a login script that exits does this",
	}
}

// said quotes what the terminal said instead of a prompt.
func (s *Session) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.noise) == 0 {
		return ""
	}
	return fmt.Sprintf("; it said %q", strings.TrimSpace(string(s.noise)))
}

// setUp brings the session where its Config wants it.
func (s *Session) setUp(ctx context.Context) error {
	if s.config.Login {
		if _, err := s.Run(ctx, Command{Text: s.dialect.profile}); err != nil {
			return fmt.Errorf("session: login profile: %w", err)
		}
	}
	if len(s.config.Env) > 0 {
		command := Command{Text: exports(s.config.Env)}
		if err := (&Command{Env: s.config.Env}).check(); err != nil {
			return err
		}
		r, err := s.Run(ctx, command)
		switch {
		case err != nil:
			return fmt.Errorf("session: export the environment: %w", err)
		case r.ExitCode != 0:
			return &transport.Error{Code: "shell.no_sync", Message: "session: export the environment: the shell refuses a variable", Hint: "readonly variables and shell options such as noexec do this"}
		}
	}
	if s.config.Cwd != "" {
		r, err := s.Run(ctx, Command{Text: s.dialect.cd + " " + directory(s.config.Cwd)})
		if err != nil {
			return err
		}
		if r.ExitCode != 0 {
			return noDirectory(s.config.Cwd)
		}
	}
	return nil
}

func noDirectory(dir string) *transport.Error {
	return &transport.Error{Code: "cmd.cwd", Message: fmt.Sprintf("session: directory %q can't be entered on the machine", dir)}
}

// ID returns the session's name.
func (s *Session) ID() string { return s.config.ID }

// Shell returns the path of the session's shell.
func (s *Session) Shell() string { return s.shell }

// Origin returns the directory that the session started in.
func (s *Session) Origin() string { return s.origin }

// Done is closed once the session's shell has ended, or the way to it.
func (s *Session) Done() <-chan struct{} { return s.ended }

// Exit returns how the shell ended. It blocks until Done. The error wraps
// [transport.ErrLost] where nobody knows.
func (s *Session) Exit() (transport.Exit, error) { return s.terminal.Wait() }

// Terminal reports whether the account got a terminal.
func (s *Session) Terminal() bool { return s.tty != "" }

// Resize tells the terminal its new size.
func (s *Session) Resize(size transport.Size) error {
	s.mu.Lock()
	s.config.Size = size
	s.mu.Unlock()
	s.display.resize(size)
	return s.terminal.Resize(size)
}

// Write types b to the command that runs: one with TTY, or one that waits for
// input. Anything else would leave it to the shell, as its next command, and is
// refused.
func (s *Session) Write(b []byte) (int, error) { return s.write(b, false) }

// WriteSecret is Write for what nobody is to see: in what comes from the command
// from now on, on the terminal or elsewhere, stars stand in its place. A secret
// of less than four bytes is not looked for.
func (s *Session) WriteSecret(b []byte) (int, error) { return s.write(b, true) }

func (s *Session) write(b []byte, secret bool) (int, error) {
	s.mu.Lock()
	r := s.run
	reads := r != nil && (r.command.TTY || r.asking)
	s.mu.Unlock()
	if !reads {
		return 0, &transport.Error{Code: "usage", Message: "session: no command reads what is typed", Hint: "type to a command with a terminal, or to one that waits for input"}
	}
	if secret {
		r.veil.hide(string(b))
	}
	if r.command.TTY && bytes.IndexByte(b, 3) >= 0 && r.isEarly(s) {
		r.pursue(typedLevel)
	}
	seen := r.counts() // before the write: what comes next may be the next prompt
	n, err := s.terminal.Write(b)
	select {
	case r.typed <- seen:
	default: // there is news of it already
	}
	return n, err
}

// Close ends the session in order: the shell exits, background jobs go on as
// they do after a logout, and what is left of the session's own goes away on
// the machine by itself. A command that runs is hung up.
func (s *Session) Close() error {
	if s.closing.Swap(true) {
		<-s.ended
		return nil
	}
	select {
	case s.turn <- struct{}{}:
		if !s.lost {
			// The second one counts where jobs made the shell refuse the first.
			_, _ = io.WriteString(s.terminal, "exit\nexit\n") // the hang-up that follows does it too
			within(time.Second, s.ended)
		}
	default:
	}
	s.abandon()
	return nil
}

// within waits for done, but not for longer than d.
func within(d time.Duration, done <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// closed reports whether done is.
func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// abandon hangs up and gives everything back.
func (s *Session) abandon() {
	s.mu.Lock()
	keepers := s.retired
	if s.keeper != nil {
		keepers = append(keepers, s.keeper)
	}
	s.mu.Unlock()
	orderly := s.endedInOrder()
	for _, k := range keepers {
		if orderly {
			_ = k.disarm() // a keeper that is gone does not hear it
		}
		k.release()
	}
	if s.terminal != nil {
		s.terminal.Close()
	}
	for _, k := range keepers {
		k.close()
	}
	s.entry.Close(s.sawEnd(keepers))
	s.pumps.Wait()
}

// endedInOrder reports whether the shell has ended by itself.
func (s *Session) endedInOrder() bool {
	select {
	case <-s.ended:
		_, err := s.terminal.Wait()
		return err == nil
	default:
		return false
	}
}
