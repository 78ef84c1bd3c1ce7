package script

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/internal/ends"
	"gateway/internal/phrase"
	"gateway/session"
	"gateway/transport"
)

// step runs one step, as often as it takes and may.
func (h *hostRun) step(ctx context.Context, s *Step, block string) *StepResult {
	r := h.newStep(s, block)
	r.Outcome = fleet.OK
	h.begin(r)
	begun := time.Now()
	err := h.attempts(ctx, s, r)
	r.Duration = time.Since(begun)
	if r.Err = h.masked(err); err != nil && r.Outcome == fleet.OK {
		r.Outcome = fleet.Failed
	}
	well := r.Outcome == fleet.OK || r.Outcome == fleet.Skipped
	if ctx.Err() != nil && r.Outcome == fleet.Failed {
		r.Outcome = fleet.Interrupted
	}
	if !well {
		// A link that is lost is nothing that the next step could go on with.
		r.Ignored = s.Continue && ctx.Err() == nil && r.Outcome != fleet.Unknown
		if !r.Ignored {
			h.fail(r.Outcome)
		}
	}
	h.end(r)
	return r
}

// attempts tries a step until it is right or must not be tried again. An attempt
// that could not begin leaves what the one before it has left.
func (h *hostRun) attempts(ctx context.Context, s *Step, r *StepResult) error {
	var known error
	var outcome fleet.Outcome
	var verdict session.Verdict
	for tries := 0; ; tries++ {
		before := r.Attempts
		r.Outcome = fleet.OK
		retry, err := h.attempt(ctx, s, r, tries > 0)
		switch {
		case err == nil:
			return nil
		case r.Attempts > before && r.Verdict != session.NotStarted:
			known, outcome, verdict = err, r.Outcome, r.Verdict
		case known != nil:
			r.Outcome, r.Verdict = outcome, verdict
			err = &transport.Error{Code: gateway.Code(known), Message: known.Error() + "; the next attempt could not begin: " + err.Error(), Hint: gateway.Hint(err), Err: known}
		}
		if !retry && r.Outcome == fleet.TimedOut && tries < s.Retry.Times && !s.Idempotent {
			err = &transport.Error{Code: gateway.Code(err), Message: err.Error(), Hint: "it may have run, and is tried again only with idempotent: true", Err: err}
		}
		if !retry || tries >= s.Retry.Times || ctx.Err() != nil || !pause(ctx, s.Retry.Delay) {
			return err
		}
	}
}

// pause waits, and reports whether the context allowed it.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// attempt runs a step once, which may be again. It reports whether another attempt
// is allowed after what the error says.
func (h *hostRun) attempt(ctx context.Context, s *Step, r *StepResult, again bool) (retry bool, err error) {
	if h.main.ended() && (again || r.Block == Always) {
		// Functions, and variables other than the script's, are gone with it.
		if err := h.open(ctx); err != nil {
			return true, err
		}
	}
	shell, err := h.shell(ctx, s)
	if err != nil {
		return lost(err), unsent(r, err)
	}
	where, err := h.place(s, shell)
	if err != nil {
		return false, err
	}
	defer func() {
		// What puts things back must work after an interrupt, too.
		if left := shell.leave(context.WithoutCancel(ctx)); left != nil && err == nil {
			r.Outcome = fleet.Failed
			err = noted(r, left)
		}
	}()
	if err := shell.enter(ctx, where, h.env(s), s.Timeout); err != nil {
		return lost(err), unsent(r, err)
	}
	if s.When != "" && r.Attempts == 0 {
		yes, err := h.test(ctx, shell, s, r, "when", s.When)
		if err != nil {
			return false, err
		}
		if !yes {
			r.Outcome, r.Reason = fleet.Skipped, "when: "+h.Mask(strings.TrimSpace(s.When))
			return false, nil
		}
	}
	r.Attempts++
	return h.perform(ctx, shell, s, r)
}

// perform does what a step is for, and looks whether that was right. It reports
// what attempt does.
func (h *hostRun) perform(ctx context.Context, shell *shell, s *Step, r *StepResult) (retry bool, err error) {
	var result gateway.Result
	if s.Copy != nil {
		result.Verdict, err = h.copy(ctx, shell, s, r)
	} else {
		result = h.run(ctx, shell, s, r)
		err = h.judge(s, r, result)
	}
	if err != nil && !(s.Continue && result.Verdict == session.Exited) {
		return h.again(s, result) && !(s.Copy != nil && lasting(err)), err
	}
	// What it said is what its test goes by, and the next steps.
	unregistered := noted(r, h.register(ctx, s, result.Stdout, result.Truncated))
	switch {
	case err != nil:
		return h.again(s, result), errors.Join(err, unregistered)
	case unregistered != nil || s.Until == "":
		return s.Idempotent && r.Outcome == fleet.Unknown, unregistered
	}
	yes, err := h.test(ctx, shell, s, r, "until", s.Until)
	switch {
	case err != nil:
		return s.Idempotent && (r.Outcome == fleet.TimedOut || r.Outcome == fleet.Unknown), err
	case !yes:
		return true, &transport.Error{Code: "script.failed", Message: "script: until is not met: " + strings.TrimSpace(s.Until)}
	}
	return false, nil
}

// test runs a test, which may take as long as the step.
func (h *hostRun) test(ctx context.Context, shell *shell, s *Step, r *StepResult, what, text string) (bool, error) {
	yes, err := shell.test(ctx, what, text, s.Timeout)
	return yes, noted(r, err)
}

// noted notes how a command of the runner's own has failed. What the step itself
// has done stays its verdict.
func noted(r *StepResult, err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		r.Outcome = fleet.TimedOut
	case errors.Is(err, session.ErrLost):
		r.Outcome = fleet.Unknown
	}
	return err
}

// unsent notes how a command of the runner's own has failed before the step: what
// was never sent has not run, whatever became of the link.
func unsent(r *StepResult, err error) error {
	if errors.Is(err, session.ErrLost) {
		return err
	}
	return noted(r, err)
}

// again reports whether a failed step may be tried again. What may have run, and
// may still do so, is sent again only if the script says that it may be.
func (h *hostRun) again(s *Step, result gateway.Result) bool {
	switch result.Verdict {
	case session.Exited, session.Signaled, session.NotStarted:
		return true
	case session.TimedOut, session.Unknown:
		return s.Idempotent
	}
	return false
}

// run runs the text of a step.
func (h *hostRun) run(ctx context.Context, shell *shell, s *Step, r *StepResult) gateway.Result {
	captured := newCaptures(h.mask(), func(from session.Stream, b []byte) {
		h.note(func() {
			for _, o := range h.Observe {
				if o.Output != nil {
					o.Output(h.host, r, from, b)
				}
			}
		})
	})
	command := h.Script.command(s, r.Name)
	command.Timeout, command.Answer = s.Timeout, h.answers(s)
	command.Output = func(from session.Stream, b []byte) { captured[from].write(b) }
	var result gateway.Result
	if s.KeepGoing {
		result = shell.Run(ctx, command)
	} else {
		result = shell.RunScript(ctx, command)
	}
	captured.flush()
	if result.Cwd != "" {
		shell.cwd = result.Cwd
	}
	if r.Started.IsZero() {
		r.Started = result.Started
	}
	r.Verdict, r.ExitCode, r.Signal, r.Cwd = result.Verdict, result.ExitCode, result.Signal, h.Mask(result.Cwd)
	r.Streams, r.StdoutBytes, r.StderrBytes = result.Streams, result.StdoutBytes, result.StderrBytes
	kept := func(from session.Stream) []byte { return h.hidden(captured[from].bytes()) }
	r.Stdout, r.Stderr, r.Terminal = kept(session.Stdout), kept(session.Stderr), kept(session.Terminal)
	r.FailedLine = 0
	if result.Line > 0 {
		r.FailedLine = s.LineOf(result.Line)
	}
	return result
}

// command returns the text of a step that is called name, with its place.
func (s *Script) command(step *Step, name string) gateway.Command {
	return gateway.Command{Text: step.Run, Name: fmt.Sprintf("%s:%d: step %s", s.File, step.Line, name), Line: step.LineOf}
}

// answers returns what answers a step's prompts. A secret is given to a prompt
// once: who asks the same again has refused it, and would lock the account.
func (h *hostRun) answers(s *Step) func(context.Context, session.Prompt, bool) (string, error) {
	if len(s.Answers) == 0 {
		return nil
	}
	return func(_ context.Context, p session.Prompt, again bool) (string, error) {
		for _, a := range s.Answers {
			if !a.Prompt.MatchString(p.Text) {
				continue
			}
			if a.Secret != "" && again {
				return "", fmt.Errorf("secret:%s was typed once, and the same is asked again: it is wrong, or another program asks", a.Secret)
			}
			return h.answer(a), nil
		}
		return "", errors.New("no answer of the step fits")
	}
}

// hintAnswer is what there is to do about a prompt in a script, where nobody is asked.
const hintAnswer = "give the step an answer, or the host a reference to sudo's password"

// judge compares what a step has left with what is expected. It sets the
// outcome, and returns what is wrong.
func (h *hostRun) judge(s *Step, r *StepResult, result gateway.Result) error {
	switch result.Verdict {
	case session.Exited, session.Signaled:
	default:
		r.Outcome = fleet.OutcomeOf(result)
		asked := errors.Is(result.Err, session.ErrNeedsInput)
		if asked || result.Verdict == session.NotStarted {
			r.Outcome = fleet.Failed
		}
		if asked { // the engine's hint begins with a terminal, where nobody is asked
			return &transport.Error{
				Code: gateway.Code(result.Err), Message: result.Err.Error(), Err: result.Err,
				Hint: hintAnswer + ", or use an option of the command that asks nothing",
			}
		}
		return result.Err
	}
	err := h.unexpected(s, r, result)
	if err != nil {
		r.Outcome = fleet.Failed
	}
	return err
}

func (h *hostRun) unexpected(s *Step, r *StepResult, result gateway.Result) error {
	wrong := func(format string, args ...any) error {
		return &transport.Error{Code: "script.failed", Message: "script: " + fmt.Sprintf(format, args...)}
	}
	at := ""
	if r.FailedLine > 0 {
		at = fmt.Sprintf("line %d: ", r.FailedLine)
	}
	expected := s.Expect.Exit
	if len(expected) == 0 {
		expected = []int{0}
	}
	if result.Verdict == session.Signaled {
		return wrong("%sthe shell died of signal %s", at, cmp.Or(result.Signal, "unknown"))
	}
	if !slices.Contains(expected, result.ExitCode) {
		want := ""
		if len(s.Expect.Exit) > 0 {
			want = ", not " + numbers(s.Expect.Exit)
		}
		return wrong("%sexit status %d%s", at, result.ExitCode, want)
	}
	for _, stream := range []struct {
		name  string
		want  Match
		got   []byte
		total int64
	}{{"stdout", s.Expect.Stdout, result.Stdout, result.StdoutBytes}, {"stderr", s.Expect.Stderr, result.Stderr, result.StderrBytes}} {
		got, whole := apart(stream.got, stream.total)
		if what := h.mismatch(stream.want, got, !whole || result.Cut); what != "" {
			return wrong("%s %s", stream.name, what)
		}
	}
	return nil
}

// apart returns what is kept of a stream, and whether that is all of it. Where it is not, the
// end does not follow on the beginning: what separates them is in no text that is wanted.
func apart(got []byte, total int64) (text []byte, whole bool) {
	if int64(len(got)) >= total {
		return got, true
	}
	const cut = ends.DefaultLimit - ends.DefaultLimit/2 // the beginning may be a part of a character shorter
	return slices.Concat(got[:cut-phrase.Margin], []byte("\ufffd\n\ufffd"), got[cut:]), false
}

func numbers(list []int) string {
	var words []string
	for _, n := range list {
		words = append(words, fmt.Sprint(n))
	}
	return strings.Join(words, " or ")
}

// mismatch returns what is wrong with a stream; empty if nothing is. It is looked for
// as it came, and as reports show it: without colours, and what a carriage return has
// begun on a line of its own. What is wanted is masked first: quoted, a secret is not
// known for one.
func (h *hostRun) mismatch(m Match, got []byte, truncated bool) string {
	note := ""
	if truncated {
		note = " (only its beginning and end were kept)"
	}
	text := string(got)
	has := func(there func(text string) bool) bool { return there(text) || there(phrase.Plain(got)) }
	if want := h.expand(m.Contains); !has(func(text string) bool { return strings.Contains(text, want) }) {
		return fmt.Sprintf("does not contain %q%s", h.show(m.Contains), note)
	}
	if m.Matches != "" {
		pattern := expand(m.Matches, func(name string) string { return regexp.QuoteMeta(h.values[name]) })
		compiled, err := regexp.Compile(pattern)
		if err != nil || !has(func(text string) bool { return compiled.MatchString(strings.TrimRight(text, "\r\n")) }) {
			return fmt.Sprintf("does not match %q%s", h.show(m.Matches), note)
		}
	}
	if m.Equals != nil {
		if want := h.expand(*m.Equals); strings.TrimRight(text, "\r\n") != strings.TrimRight(want, "\r\n") {
			return fmt.Sprintf("is not %q%s", h.show(*m.Equals), note)
		}
	}
	return ""
}
