package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"gateway/transport"
)

// Open starts a session's shell on a machine. The context covers the opening
// only. The transport stays the caller's and must outlive the session.
//
// Its errors are those of the transport and *[transport.Error], with the codes
// usage, shell.unsupported, shell.no_sync, cmd.cwd, sudo.needs_password,
// sudo.rejected.
func Open(ctx context.Context, t transport.Transport, config Config) (*Session, error) {
	config.Shell = strings.Join(strings.Fields(config.Shell), " ")
	if err := checkShell(config.Shell); err != nil {
		return nil, err
	}
	if err := config.Sudo.check(); err != nil {
		return nil, err
	}
	if config.Sudo != nil && config.NoTerminal {
		return nil, failure(codeUsage, nil, "open the session with a terminal", "sudo needs a terminal to ask on")
	}
	if config.ID == "" {
		config.ID = "s-" + newNonce()
	}
	if config.OpenTimeout <= 0 {
		config.OpenTimeout = OpenTimeout
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
	s.holders = newHolders(s)
	s.enter()
	if err := s.start(ctx); err != nil {
		s.hangUp(nil)
		return nil, err
	}
	if err := s.setUp(ctx); err != nil {
		s.Close()
		return nil, err
	}
	s.origin, s.status = s.cwd, 0
	s.terminal.AfterDone(s.endIdle) // where the terminal is not gone, and no command runs that would notice
	return s, nil
}

var errOpenTimeout = errors.New("the shell did not answer in time")

// start opens the terminal and the keeper at the same time, neither waiting
// for the other: a session costs no more round trips than one channel.
func (s *Session) start(ctx context.Context) error {
	if s.config.Sudo != nil {
		return s.startSudo(ctx)
	}
	nonce, ready := s.expect("SP")
	defer s.outlive(nonce, "P") // bash repeats an old prompt after some syntax errors
	s.note(nonce)

	opened := make(chan error, 1)
	waiting, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	go func() { // start waits for what it sends
		k, err := s.openKeeper(ctx)
		s.turnTo(k)
		opened <- err
		if err != nil {
			time.AfterFunc(lastWords, func() { giveUp(err) })
		}
	}()
	term, err := s.openShell(ctx, shellPrelude(s.config, nonce))
	if err == nil {
		s.attach(term)
		opened := time.Now()
		err = s.awaitReady(waiting, ready, nil)
		s.trip = min(time.Since(opened), maxTrip)
	}
	failed := <-opened
	if failed != nil {
		s.entry.Close(false) // a keeper that was killed has left its directory
	}
	one := err == nil || s.keeper != nil
	if err == nil || errors.Is(err, failed) {
		err = s.noKeeper(failed)
	}
	if one && errors.Is(err, errOpenTimeout) {
		err = hinted(err, "one of the session's two programs has answered, so the link is well: a forced command or a login script may let the account run one at a time, as flock does")
	}
	if err == nil && s.keeper != nil {
		err = s.meet(ctx, s.keeper)
	}
	if err == nil && s.keeper != nil {
		s.install(s.keeper)
		s.endAbandoned(s.keeper)
	}
	return err
}

// hinted gives an error another hint, where it has one.
func hinted(err error, hint string) error {
	e, ok := errors.AsType[*transport.Error](err)
	if !ok {
		return err
	}
	e = new(*e)
	e.Hint = hint
	return e
}

// lastWords is how long a shell is waited for that nobody needs any more, as there is no
// side channel: what it says meanwhile may be the reason, such as a password that has
// expired.
const lastWords = 2 * time.Second

// together is the context for all that the session starts.
func (s *Session) together(ctx context.Context) context.Context {
	return transport.Together(ctx, cmp.Or(s.config.Group, s.config.ID))
}

// attach reads what the terminal brings, to its end.
func (s *Session) attach(term transport.Terminal) {
	s.terminal = term
	s.pump(term, nil, Terminal, func() {
		s.giveUpIfLost()
		close(s.ended)
	})
}

// maxTrip bounds what is added to the patience of the ladder.
const maxTrip = 2 * time.Second

// awaitReady waits for the shell's report and its first prompt. Questions are
// sudo's. The prompt may overtake the report: they are stdout and stderr, which need not
// come the same way.
func (s *Session) awaitReady(ctx context.Context, marks, questions <-chan mark) error {
	attempt := 0
	for reported, prompted := false, false; !reported || !prompted; {
		select {
		case q := <-questions:
			attempt++
			if err := s.answerSudo(ctx, q, attempt); err != nil {
				return err
			}
		case m := <-marks:
			if m.kind == 'P' {
				prompted = true
				continue
			}
			if err := s.parseReady(m.payload); err != nil {
				return err
			}
			reported = true
			s.mu.Lock()
			k := s.keeper
			s.mu.Unlock()
			_ = s.hold(k) // while the shell is starting: its first command may replace it
		case <-s.ended:
			return s.noShell()
		case <-ctx.Done():
			err := unanswered(ctx, "no prompt from the shell", s.said())
			if s.config.Sudo != nil {
				err = hinted(err, "sudo's own question for the password is all that is answered here: PAM or a program in front of sudo may ask something else; see what sudo true asks at a terminal there")
			}
			return err
		}
	}
	s.once = "unset PS1 PS2 _gwn;PS2=;" + s.dialect.setup // takes them out of the environment
	s.mu.Lock()
	s.ready = true
	s.mu.Unlock()
	return nil
}

// unanswered is the error of an opening that took too long, or that its caller has given up.
func unanswered(ctx context.Context, what, said string) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("session: open: %w", transport.Cause(ctx))
	}
	return failure(codeNoSync, context.Cause(ctx), "the link may have gone silent, or a login shell, a file that it reads or a forced command is in the way; try ssh by hand",
		"%s: %v%s", what, context.Cause(ctx), said)
}

func (s *Session) parseReady(payload string) error {
	r, err := parseReady(payload)
	if err != nil {
		return err
	}
	d, ok := dialects[r.family]
	switch {
	case !ok && s.config.Shell == "":
		return failure(codeUnsupported, nil, "something sets the PATH of the account there, such as a startup file, environment in authorized_keys, ~/.ssh/environment, /etc/environment or secure_path of sudo", "no shell found on the machine: neither bash nor sh is in the PATH")
	case !ok:
		return failure(codeUnsupported, nil, "set the host's shell to one that is installed there", "shell %q not found on the machine", s.config.Shell)
	}
	s.dialect, s.tty, s.pid, s.sid, s.mounts, s.shell, s.cwd = d, r.tty, r.pid, r.sid, r.mounts, r.path, r.cwd
	return nil
}

// noShell explains why the terminal ended before the first prompt.
func (s *Session) noShell() error {
	exit, err := s.terminal.Wait()
	switch {
	case err != nil:
		return fmt.Errorf("session: start a shell: %w", err)
	case s.config.Sudo != nil:
		return s.sudoRejected("no shell", "see whether the machine has sudo, and what sudo -l lists there for the account; noexec, intercept, log_subcmds or a limit leaves it no shell")
	}
	return failure(codeNoSync, nil, "a forced command, a nologin shell or a login script that exits does this",
		"the shell ended with status %d before its first prompt%s", exit.Code, s.said())
}

// said quotes what the terminal said instead of a prompt.
func (s *Session) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.noise) == 0 {
		return ""
	}
	noise := stars.ReplaceAll(repeated.ReplaceAll(s.noise, []byte("$1…$2")), nil)
	return fmt.Sprintf("; it said %.512q", bytes.TrimSpace(noise))
}

// maxNoise is how much of it is kept: what refuses a command may repeat it first.
const maxNoise = 8 << 10

// repeated matches an exec request of ours, see [inSh]: to its end, which may be some lines
// further where an echo made newlines of what is escaped in it, or as far as it was repeated.
// Behind it is what sudo is given to run.
var repeated = regexp.MustCompile(`(exec /bin/sh -c ')(?:[^']*('\W|'$)|[^'\n]*)|` + regexp.QuoteMeta(sudoInside) + `(?s:.*)`)

// stars matches what sudo shows for a password that is typed (pwfeedback in sudoers; sudo-rs
// does it always), and takes back.
var stars = regexp.MustCompile(`\*+(\x08 \x08)+(\x1b\[0?K)?`)

// setUp brings the session where its Config wants it.
func (s *Session) setUp(ctx context.Context) error {
	if s.config.Login {
		// Behind a prompt that is readonly, no command would ever end.
		r, err := s.Run(ctx, Command{Text: fmt.Sprintf("%s\n%s\n(PS1= PS2=) 2>/dev/null || (exit %d)", s.dialect.profile, s.dialect.unkept, promptKept)})
		switch {
		case err != nil:
			return fmt.Errorf("session: login profile: %w", err)
		case r.Ended:
			return failure(codeNoSync, nil, "an exit or an exec in ~/.profile, ~/.bash_profile or the like does this",
				"the login profile ends the shell, with status %d; it said %.200q", r.ExitCode, bytes.TrimSpace(slices.Concat(r.Stdout, r.Stderr, r.Terminal)))
		case r.ExitCode == promptKept:
			return failure(codeNoSync, nil, "the session's prompt has to be its own: open it without the profile", "the login profile makes PS1 or PS2 readonly")
		}
	}
	if len(s.config.Env) > 0 {
		if err := (&Command{Env: s.config.Env}).check(); err != nil {
			return err
		}
		r, err := s.Run(ctx, Command{Text: exports(s.config.Env)})
		switch {
		case err != nil:
			return fmt.Errorf("session: export the environment: %w", err)
		case r.ExitCode != 0:
			return failure(codeNoSync, nil, "readonly variables and shell options such as noexec do this", "export the environment: the shell refuses a variable")
		}
	}
	if s.config.Cwd != "" {
		r, err := s.Run(ctx, Command{Text: s.dialect.cd + " " + Directory(s.config.Cwd)})
		if err != nil {
			return err
		}
		if r.ExitCode != 0 {
			return noDirectory(s.config.Cwd)
		}
	}
	return nil
}

// promptKept is a status that no profile is likely to end with, if it does not come to its end.
const promptKept = 97

func noDirectory(dir string) error {
	return failure(codeCwd, nil, "", "directory %q can't be entered on the machine", dir)
}
