package session

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"gateway/transport"
)

// Sudo makes a session another user's, by sudo(8) on the machine.
//
// sudo asks for its password on the terminal, and the shell comes to sit there.
// The keeper has to be the other user's too: only then may it signal what
// commands start, and commands write to it. It is started beside the shell and
// speaks through a relay, which is the account's own; stdout and stderr stay
// apart, also where sudo is set to use a terminal of its own (use_pty), to want
// one (requiretty), or to ask nothing.
type Sudo struct {
	// User is the other user; empty means root, unless Flags name a user or a group.
	User string
	// Flags stand behind sudo, such as -H.
	Flags []string
	// Password returns the password, which is typed and kept nowhere. The attempt
	// counts from 1; sudo allows three. Without it, or when it fails, the session
	// is not opened.
	Password func(ctx context.Context, attempt int) (string, error)
}

var (
	sudoUser = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	sudoFlag = regexp.MustCompile(`^[A-Za-z0-9_.,=:/@+-]+$`)
	sudoAs   = regexp.MustCompile(`^(-[A-Za-z]*[ug]|--(user|group)\b)`)
)

func (u *Sudo) check() error {
	if u == nil {
		return nil
	}
	if u.User != "" && !sudoUser.MatchString(u.User) {
		return failure(codeUsage, nil, "", "sudo: user %q: only letters, digits and ._- may stand in it", u.User)
	}
	for _, flag := range u.Flags {
		if !sudoFlag.MatchString(flag) {
			return failure(codeUsage, nil, "", "sudo: flag %q: only letters, digits and .,=:/@+-_ may stand in it", flag)
		}
	}
	return nil
}

// startSudo starts the relay, and then, on the terminal, sudo with the shell
// and its keeper.
func (s *Session) startSudo(ctx context.Context) error {
	relayed, relay := s.expect("K")
	kept, keeper := s.expect("K")
	asked, questions := s.expect("Q")
	nonce, ready := s.expect("SP")
	defer s.forget(relayed)
	defer s.forget(kept)
	defer s.forget(asked)
	defer s.outlive(nonce, "P")

	s.note(nonce)
	s.note(relayed)
	pipe, err := s.transport.Pipe(s.together(ctx), relayPrelude(relayed))
	if err != nil {
		return err
	}
	opened := time.Now()
	k := s.newKeeper(pipe)
	s.turnTo(k)
	if err := s.awaitKeeper(ctx, k, relay); err != nil {
		return s.noKeeper(err)
	}
	s.trip = min(time.Since(opened), maxTrip)
	if k.stdout == "" {
		return failure(codeUnsupported, nil, hintNoPlace, "sudo: the machine has no place for a FIFO, or no /proc")
	}
	k.feed = k.dir
	behind, flushed := s.expectLate(k, "F", 2)
	s.behindSudo = flushed
	term, err := s.openShell(ctx, s.sudoPrelude(k, asked, kept, nonce, behind))
	if err != nil {
		return err
	}
	s.attach(term)
	if err := s.awaitReady(ctx, ready, questions); err != nil {
		return err
	}
	if err := s.awaitKeeper(ctx, k, keeper); err != nil {
		return s.noKeeper(err)
	}
	s.install(k)
	s.spawn(func() { s.endWith(k) })
	return nil
}

// endWith ends the session once the relay is gone, which nothing can replace, and
// what runs has ended.
func (s *Session) endWith(relay *keeper) {
	select {
	case <-relay.exited:
	case <-relay.ended:
	case <-s.ended:
	}
	s.endIdle()
}

// relayPrelude returns the exec request for a relay: it passes control lines on
// to a FIFO, which sudo has for its stdin, and holds the streams.
func relayPrelude(nonce string) string {
	return inSh(keeperBegin(nonce, "z=1", `mkfifo $d/c $d/o $d/e && : >$d/r`) +
		`if [ -z "$d" ]; then exec 3>&1; ` +
		`elif [ -p $w/1 ] && [ -p $w/2 ] && { { :; } 7>$w/1 8>$w/2; } 2>/dev/null; then exec 3>&1 4>&2; o=$w/3; e=$w/4; ` +
		`else o=$d/o; e=$d/e; exec 3<>$o 4<>$e; cat <$o 3>&- 4>&- & a=$!; cat <$e >&2 3>&- 4>&- & b=$!; fi; ` +
		`printf ` + controlMark('K', nonce, "::%s:%s:%s") + ` "$o" "$e" "$d" >&3; exec >/dev/null 2>&1; ` +
		`[ -z "$d" ] || { exec 9<>$d/c; [ "$z" ] || cat >&9; trap "" USR1; rm -rf "$d"; }; [ -z "$a" ] || kill -9 $a $b`)
}

// What mark Q says where there is no terminal to ask at, and for the shell to sit at; and
// where there is no relay, as each channel is in namespaces of its own.
const (
	noTerminal = "none"
	noRelay    = "apart"
)

// sudoPrelude returns the exec request for the terminal. sudo's prompt is mark
// Q. The scripts for the other user travel as printf formats: they are quoted
// twice. A shell stays in front of sudo and holds the terminal: sudo has it open
// only while it asks, and sshd takes a terminal that nobody has open for ended.
// The keeper is no child of the other user's shell: ksh93 would wait for it (wait). It is
// that of a shell which removes its directory if it is killed: the account can't.
//
// Where sudo has a terminal of its own, the shell comes to it from the background, and is
// stopped for that with all of its process group, until sudo lets them go on. What is being
// forked in that moment may stay stopped (seen with Linux 6.18). So the keeper, which is
// starting then, ignores these signals.
//
// dropbear leaves SIGTTOU ignored, and where sudo has a terminal of its own, zsh would take
// that unseen: only what is stopped for it has sudo pass on what is typed.
//
// Behind sudo it flushes the streams: where sudo records them (log_output), they go through it,
// and the keeper has lost its own. If sudo still has to write what it has read when the shell has
// ended, it waits for the end of what it reads from (seen with sudo 1.9.13), and no control line
// comes through it any more: so the shell's end is looked for beside the keeper, which then
// lets go of the streams.
func (s *Session) sudoPrelude(relay *keeper, asked, kept, nonce, behind string) string {
	u := s.config.Sudo
	flags, user := "", u.User
	for _, flag := range u.Flags {
		flags += ` "` + flag + `"`
	}
	if user == "" && !slices.ContainsFunc(u.Flags, sudoAs.MatchString) {
		user = "root" // sudo's own default may be another (runas_default)
	}
	if user != "" {
		flags += ` -u "` + user + `"`
	}
	inside := sudoInside + ` </dev/tty >/dev/tty 2>&1; cd "$HOME" 2>/dev/null || cd /; ` +
		`trap "" TSTP TTIN TTOU; ( ( /bin/sh -c "$(printf "` + octal(lettingGo+keeperScript(kept)) + `")" <&3 >&4 2>&5 3<&- 4>&- 5>&- & k=$!; [ /proc/self/fd/4 -ef ` + relay.stdout + ` ]; r=$?; exec 3<&- 4>&- 5>&- </dev/null >/dev/null 2>&1; trap "" HUP INT TERM; ` +
		`[ $r = 0 ] || { while kill -0 $$ && [ -e /proc/$k/exe ]; do sleep 1; done; kill -0 $$ || kill -USR2 $k; }; wait; ` +
		anywhere + `[ ! -O $x/.gw-` + kept + ` ] || rm -rf $x/.gw-` + kept + `; done ) & ); trap - TSTP TTIN TTOU; exec 3<&- 4>&- 5>&-; ` + shellScript(s.config, nonce)
	return inSh(`{ { :; } </dev/tty; } 2>/dev/null || { printf ` + controlMark('Q', asked, noTerminal) + `; exit 1; }; ` +
		`[ -p ` + relay.dir + `/c ] || { printf ` + controlMark('Q', asked, noRelay) + `; exit 1; }; ` +
		`q=$(printf ` + controlMark('Q', asked, "") + `); x=$(printf "` + octal(inside) + `"); ` +
		`trap : INT QUIT TSTP; r=1; v="env --default-signal=TTOU"; $v true 2>/dev/null || v=; { $v sudo -p "$q"` + flags + ` -- /bin/sh -c "$x" <` + relay.dir + `/c; ` +
		`r=$?; ( printf ` + controlMark('F', behind, "") + `; printf ` + controlMark('F', behind, "") + ` >&2 ); } >` + relay.stdout + ` 2>` + relay.stderr + `; [ $r -le 128 ] || { trap - INT QUIT TSTP; kill -$((r-128)) $$; }; exit $r`)
}

// lettingGo has a keeper let go of its streams for USR2.
const lettingGo = `trap "exec 3>&- 4>&- 5</dev/null 6</dev/null" USR2; `

// sudoInside begins what sudo is given to run.
const sudoInside = `exec 3<&0 4>&1 5>&2`

// wordsGrace bounds the wait for what sudo says before it ends.
const wordsGrace = 100 * time.Millisecond

// answerSudo types the password that sudo asks for with mark Q.
func (s *Session) answerSudo(ctx context.Context, q mark, attempt int) error {
	switch hint := "run the one command with sudo -n in front, where no password is asked for"; q.payload {
	case noTerminal:
		return failure(codePTYRefused, nil, hint, "sudo: the account gets no terminal, and a session of another user needs one")
	case noRelay:
		return failure(codeUnsupported, nil, hint, "sudo: the machine starts each channel in namespaces of its own, and a session of another user needs two that meet")
	}
	password := ""
	err := fmt.Errorf("nobody to ask")
	if s.config.Sudo.Password != nil {
		password, err = s.config.Sudo.Password(ctx, attempt)
	}
	switch {
	case err == nil:
		s.typeKeys(password + "\n")
		return nil
	case errors.Is(ctx.Err(), context.Canceled): // which says nothing about it
		return unanswered(ctx, "", "")
	case attempt > 1:
		return s.sudoRejected("the password is wrong", "it is that of the account itself, unless sudoers has rootpw or targetpw; it comes from the host's sudo.password or is typed")
	}
	hint := "give the host a sudo.password reference, or use exec on this host alone at a terminal"
	if known, ok := errors.AsType[*transport.Error](err); ok { // there is one, which could not be read
		hint = known.Hint
	}
	return failure(codeNeedsPassword, err, hint, "sudo wants a password: %v", err)
}

// sudoRejected explains why there is no shell behind sudo, in its own words.
func (s *Session) sudoRejected(why, hint string) error {
	within(wordsGrace, s.keeper.ended) // they come on another stream than the end
	return failure(codeRejected, nil, hint, "sudo: %s%s", why, s.said())
}
