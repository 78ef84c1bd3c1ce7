package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gateway/internal/ends"
	"gateway/internal/statements"
	"gateway/session"
	"gateway/transport"
)

// RunScript runs a command whose text is a script: statement by statement, up to
// the first that does not exit with 0, which Result.Line names. The result is
// that of one command. Text that can't be split runs whole, with a warning, and so
// does the rest of one that redirects its own streams.
//
// Each statement is a command of the session: Cwd and Env hold for one of them,
// so that a script's are better given to [Gateway.Open]. Stdin and TTY are for a
// text that runs whole.
func (s *Session) RunScript(ctx context.Context, command Command) Result {
	pieces, unsplit := split(command, s.engine.Shell())
	s.warnUnsplit(unsplit)
	if len(pieces) < 2 {
		r := s.Run(ctx, command)
		if len(pieces) == 1 && unsplit == "" {
			r.Line = failedLine(r, pieces[0])
		}
		return r
	}
	command.part = new(session.Script)
	run := newScriptRun(s, command)
	for _, piece := range pieces {
		if run.step(ctx, piece) {
			break
		}
	}
	return run.finish()
}

// CheckScript gives the warning that RunScript would begin with, and runs nothing.
func (s *Session) CheckScript(command Command) { s.warnUnsplit(Unsplit(command, s.engine.Shell())) }

func (s *Session) warnUnsplit(unsplit string) {
	if unsplit != "" {
		s.gateway.config.Warn(s.name + ": " + unsplit)
	}
}

// Unsplit says what of a command RunScript would run whole in a shell, and why. It
// is empty where that is nothing. The shell is a name or a path, and empty if it is
// not known.
func Unsplit(command Command, shell string) string {
	_, unsplit := split(command, shell)
	return unsplit
}

// Unreadable says why a shell, which is that of [Unsplit], can't read a text as far as
// the parser knows it; empty if it can.
func Unreadable(text, shell string) string {
	err := statements.Check(text, shell)
	if err == nil {
		return ""
	}
	if at, ok := errors.AsType[*statements.Error](err); ok {
		return at.Message // the line is that of the text
	}
	return err.Error()
}

// split splits a command's text; see [Unsplit].
func split(command Command, shell string) (pieces []statements.Statement, unsplit string) {
	pieces, err := statements.Split(command.Text, shell)
	if err == nil {
		return pieces, ""
	}
	line := func(n int) int { return n }
	if command.Line != nil {
		line = command.Line
		err = elsewhere(err, line)
	}
	whole := cmp.Or(command.Name, "the script")
	if len(pieces) > 1 {
		whole = fmt.Sprintf("the rest of %s, from line %d on,", whole, line(pieces[len(pieces)-1].Line))
	}
	return pieces, fmt.Sprintf("%s runs whole, and does not stop at a statement that fails: %v", whole, err)
}

// elsewhere returns an error with its line in the file. A column is of the text only,
// which is indented there.
func elsewhere(err error, line func(int) int) error {
	var at *statements.Error
	if !errors.As(err, &at) || at.Line == 0 {
		return err
	}
	return &statements.Error{Line: line(at.Line), Message: at.Message}
}

// failedLine returns the line of a statement if it ended a script.
func failedLine(r Result, piece statements.Statement) int {
	if r.Verdict == session.Exited && r.ExitCode == 0 {
		return 0
	}
	return piece.Line
}

// A scriptRun is a script between its statements.
type scriptRun struct {
	session *Session
	command Command
	result  Result           // of the statements so far, but for what is kept
	kept    [2]*ends.Spooled // stdout and stderr
}

func newScriptRun(s *Session, command Command) *scriptRun {
	run := &scriptRun{session: s, command: command, result: s.result(command)}
	for i := range run.kept {
		var spool func() ends.Spool
		if command.Spool {
			spool = func() ends.Spool { return s.gateway.spools.open(run.result.ID, session.Stream(i)) }
		}
		run.kept[i] = ends.NewSpooled(command.Limit, spool)
	}
	return run
}

// pieceLimit is how much of a statement's streams its own result keeps: enough
// for a prompt, and for what it has said on the terminal.
const pieceLimit = 64 << 10

// step runs one statement, and reports whether the script is over.
func (run *scriptRun) step(ctx context.Context, piece statements.Statement) (over bool) {
	c := run.command
	c.Text, c.Spool, c.Limit = piece.Text, false, pieceLimit
	if begun := run.result.Started; !begun.IsZero() {
		c.Started = nil
		if c.Timeout > 0 {
			c.Timeout = max(c.Timeout-time.Since(begun), time.Nanosecond) // the next one finds out at once
		}
	}
	c.Output = func(from session.Stream, b []byte) {
		if from != session.Terminal {
			run.kept[from].Add(b)
		}
		if run.command.Output != nil {
			run.command.Output(from, b)
		}
	}
	r := run.session.Run(ctx, c)
	run.add(ctx, r)
	run.result.Line = failedLine(r, piece)
	// Where the session ended behind the statement, the next one finds that out.
	return run.result.Line > 0 || r.Ended && !r.EndedBehind
}

// add takes over what a statement's result says about the script's.
func (run *scriptRun) add(ctx context.Context, r Result) {
	before, sum := run.result, r
	sum.ID, sum.Command = before.ID, before.Command
	if !before.Started.IsZero() {
		sum.Started, sum.Connect = before.Started, before.Connect
		sum.Background, sum.Cut = before.Background || r.Background, before.Cut || r.Cut
		if r.Verdict == session.NotStarted {
			sum.Verdict, sum.Err = broken(ctx, r.Err)
		}
	}
	room := ends.DefaultLimit - len(before.Terminal)
	sum.Terminal = append(before.Terminal, r.Terminal[:min(len(r.Terminal), room)]...)
	if !sum.Started.IsZero() {
		sum.Duration = time.Since(sum.Started)
	}
	if sum.Verdict == session.TimedOut && Code(sum.Err) == "cmd.timeout" && ctx.Err() == nil { // else it is the caller's time
		sum.Err = &transport.Error{Code: "cmd.timeout", Message: fmt.Sprintf("session: command ended after its timeout of %v", run.command.Timeout), Err: r.Err}
	}
	run.result = sum
}

// broken returns the verdict on a script of which a statement could not be
// started, behind others that have run.
func broken(ctx context.Context, err error) (session.Verdict, error) {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return session.TimedOut, &transport.Error{Code: "cmd.timeout", Message: err.Error(), Err: err}
	case ctx.Err() != nil:
		return session.Interrupted, &transport.Error{Code: "cmd.interrupted", Message: err.Error(), Err: err}
	case Code(err) == "cmd.timeout": // its own: nobody takes what came before it
		return session.TimedOut, err
	}
	return session.Unknown, &transport.Error{
		Code: "link.lost", Message: "gateway: the script broke off: " + err.Error(),
		Hint: "what stands before this line has run: look before running it again", Err: session.ErrLost,
	}
}

func (run *scriptRun) finish() Result {
	r := run.result
	out, errs := run.kept[session.Stdout].Finish(), run.kept[session.Stderr].Finish()
	r.Truncated = r.Cut || out.Truncated || errs.Truncated
	if r.Spool, r.SpoolStderr = out.Spool, errs.Spool; !out.Truncated {
		r.Spool = r.SpoolStderr
	}
	r.Stdout, r.StdoutBytes = out.Data, out.Total
	r.Stderr, r.StderrBytes = errs.Data, errs.Total
	return r
}
