package session

import (
	"context"
	"io"
	"regexp"
	"strings"
	"time"

	"gateway/internal/ends"
)

// Stream names where a piece of output came from.
type Stream int

// The streams of a command.
const (
	Stdout Stream = iota
	Stderr
	// Terminal is what was written to the terminal itself.
	Terminal
)

func (s Stream) String() string { return [...]string{"stdout", "stderr", "terminal"}[s] }

// A Command is text for the session's shell, and its limits. Only Text is
// needed.
type Command struct {
	// Text is what the shell reads: any text of up to 4 MiB without NUL, also
	// of many lines. It runs in the shell itself: what it changes persists.
	Text string
	// Cwd is the directory to run in, for this command only. A relative one
	// starts at the session's; "~" is home. A command whose directory can't be
	// entered is not started.
	Cwd string
	// Env is added to the environment, for this command only.
	Env map[string]string
	// Stdin is the command's standard input; nil means that it is at its end.
	// It is read until its end, or until the command has ended: a Read that
	// blocks for longer than that keeps one goroutine.
	Stdin io.Reader
	// TTY runs the command on the terminal itself. Its output is in
	// Result.Stdout, and Session.Write types to it.
	TTY bool
	// Echo gives a TTY command the modes that a person expects: echo, and \r\n
	// for \n.
	Echo bool
	// Merge sends stderr to stdout, in true order.
	Merge bool
	// Script says that the command is a part of something, and so were those right
	// before it with the same one: what they have left running writes into it, also
	// what came in between, which Output may get before Started is called.
	Script *Script
	// Timeout ends the command that long after its start; 0 means never.
	Timeout time.Duration
	// Idle ends the command when nothing has come from it for that long; 0 means
	// never.
	Idle time.Duration
	// Limit is how many bytes of each stream are kept; 0 means 1 MiB.
	Limit int
	// Spool opens the spool for a stream of which more comes than is kept. It
	// may be nil, and may return nil.
	Spool func(Stream) Spool
	// Started is called once the command has been handed to the shell, before any
	// Output. What is typed from then on with Session.Write is the command's.
	Started func()
	// Output is called with the bytes of a stream as they come, in order per
	// stream and concurrently for different ones. The slice is valid during the
	// call. A call that blocks makes the command block, on the far side too.
	Output func(Stream, []byte)
	// Answer is called when the command waits for input. What it returns is
	// typed, with a newline; where the terminal shows a password, stars stand in its
	// place. Without it, or when it fails, the command is
	// interrupted: it never hangs. Its context ends with the command. A TTY
	// command without Answer is left to whoever types.
	Answer func(context.Context, Prompt) (string, error)
	// Waiting is called, where there is no Answer, when the command waits for
	// input, and with nil when it goes on: because something was typed with
	// Session.Write, or by itself. The command is left waiting meanwhile.
	Waiting func(*Prompt)
}

// A Spool takes the whole of a stream that is longer than a Result keeps.
type Spool = ends.Spool

// A Script is what several commands are parts of; see [Command.Script].
type Script struct{ _ byte }

// Prompt is what a command that waits for input has said last.
type Prompt struct {
	// Text is the unfinished last line.
	Text string
	// Kind is a guess from the text and the screen.
	Kind PromptKind
	// Root reports whether what waits runs as root, as sudo does. Any program can
	// print sudo's prompt.
	Root bool
}

// OfSudo reports whether a prompt reads as sudo's for a password, in the language of its
// machine. What has printed it may be any program; see Root.
func (p Prompt) OfSudo() bool { return sudoWords.MatchString(p.Text) }

// PromptKind says what a command waits for. Treat every answer as a secret.
type PromptKind string

// The kinds of a [Prompt].
const (
	PasswordPrompt PromptKind = "password"
	LinePrompt     PromptKind = "line"
	// ScreenPrompt is a program that waits for keys: on the full screen, or a
	// pager.
	ScreenPrompt PromptKind = "screen"
)

// asksSecret guesses from its text whether a prompt asks for a secret: some
// languages' words for it, but in a question that is answered with yes or no.
func asksSecret(text string) bool {
	return sudoWords.MatchString(text) || secretWords.MatchString(text) && !yesOrNo.MatchString(text)
}

var (
	secretWords = regexp.MustCompile(`(?i)pass(word|phrase|code|wd)?\b|\bpin\b|secret|verification code|\botp\b|\b(api[ -]?key|token)\b|passwort|kennwort|mot de passe|contraseña|\bsenha\b|пароль|密码|密碼|パスワード|암호`)
	// sudoWords begin it in all of sudo's translations, and in sudo-rs, which puts its own
	// words in front of all that PAM asks.
	sudoWords = regexp.MustCompile(`^\[(sudo\]|судо\]|sudo: authenticate\] Password:) `)
	yesOrNo   = regexp.MustCompile(`(?i)[[(]y(es)?/n(o)?(/[^])]*)?[])]`)
)

// EnvName matches the names that a command's environment may have.
var EnvName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// check refuses, before anything is sent, what no shell can be given.
func (c *Command) check() error {
	refuse := func(format string, args ...any) error {
		return failure(codeUsage, nil, "", format, args...)
	}
	switch {
	case len(c.Text) > maxText:
		return refuse("command of %d bytes: at most %d are possible", len(c.Text), maxText)
	case strings.ContainsRune(c.Text, 0):
		return refuse("command holds a NUL byte, which no shell can read")
	case len(c.Cwd) > maxLine/2:
		return refuse("directory of %d bytes: at most %d are possible", len(c.Cwd), maxLine/2)
	case !typable(c.Cwd) || strings.Contains(c.Cwd, "\n"):
		return refuse(`directory %.100q has a control character or the byte \xff`, c.Cwd)
	case c.TTY && c.Stdin != nil:
		return refuse("a command on the terminal reads the terminal, not a stdin of its own")
	case c.Timeout < 0, c.Idle < 0: // as what is left of a time that is over
		return refuse("timeout of %v, idle limit of %v: neither can be negative", c.Timeout, c.Idle)
	}
	for name, value := range c.Env {
		if !EnvName.MatchString(name) {
			return refuse("environment name %q", name)
		}
		if strings.HasPrefix(name, "_gw") {
			return refuse("environment name %q: what begins with _gw is the session's own", name)
		}
		if strings.ContainsRune(value, 0) {
			return refuse("environment variable %s holds a NUL byte", name)
		}
	}
	return nil
}
