package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"gateway/session"
)

// A Runner runs cases in one session after another: in the same one until a
// case ends it, or fails. It is for one goroutine.
type Runner struct {
	// Open opens a session whose environment has the scratch directory as T. The
	// rest of its configuration is the case's.
	Open func(context.Context, session.Config) (*session.Session, error)
	// Shell is the session's shell.
	Shell string
	// Dir is that directory.
	Dir string
	// Watch begins to watch a shell for a fault of its own that no session survives. The
	// returned function ends that, and reports whether it was seen.
	Watch func(shell, pid string) (seen func() bool)
	// Late is by how much the deadlines of the last case were missed at most.
	Late time.Duration
	// Again is whether the last case was run twice, as its shell was faulty.
	Again bool

	session *session.Session
	config  session.Config
	kept    int // the value of the variable that cases must not touch
}

// patience bounds a step, and the opening of a session.
const patience = 10 * time.Second

// Close ends the session, if there is one.
func (r *Runner) Close() {
	if r.session != nil {
		r.session.Close()
		r.session = nil
	}
}

// Start opens a session, if there is none.
func (r *Runner) Start(ctx context.Context) error {
	if r.session != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := r.Open(ctx, r.config)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	r.session, r.kept = s, 0
	// yash sets a terminal up that can do something.
	if wrong := r.do(ctx, Step{Text: `cd "$T"; kept=0`, Cwd: "$T", TerminalLike: Like("")}); len(wrong) > 0 {
		r.Close()
		return fmt.Errorf("open: %s", strings.Join(wrong, "; "))
	}
	return nil
}

// Run runs a case and returns what was wrong. A case that a fault of the shell's own has
// ended is run once more, in a fresh session.
func (r *Runner) Run(ctx context.Context, c Case) []string {
	problems, faulty := r.attempt(ctx, c)
	r.Again = faulty && len(problems) > 0
	if r.Again {
		problems, _ = r.attempt(ctx, c)
	}
	return problems
}

// attempt runs a case once. It reports whether the shell was seen to be faulty.
func (r *Runner) attempt(ctx context.Context, c Case) (problems []string, faulty bool) {
	defer func() {
		if len(problems) > 0 {
			r.Close()
		}
	}()
	r.Late = 0
	if c.Config != nil {
		r.Close()
		r.config = *c.Config
		defer func() {
			r.Close()
			r.config = session.Config{}
		}()
	}
	if err := r.Start(ctx); err != nil {
		return []string{err.Error()}, false
	}
	seen, err := r.watch(ctx)
	if err != nil {
		return []string{err.Error()}, false
	}
	problems = r.steps(ctx, c)
	return problems, seen()
}

// steps runs what a case is made of, and looks at the session behind it.
func (r *Runner) steps(ctx context.Context, c Case) (problems []string) {
	cwd := r.Dir
	for i, step := range c.Steps {
		wrong := r.do(ctx, step)
		for _, w := range wrong {
			problems = append(problems, fmt.Sprintf("step %d, %.60q: %s", i+1, step.Text, w))
		}
		if len(wrong) > 0 {
			return problems
		}
		if step.Moves {
			cwd = strings.ReplaceAll(step.Cwd, "$T", r.Dir)
		}
		if step.Ended {
			problems = r.do(ctx, Step{Text: "echo again", Verdict: session.NotStarted, Code: -1, Error: "session.closed"})
			if step.Reopens && len(problems) == 0 {
				problems = r.reopen(ctx)
			}
			if !step.Reopens {
				r.Close()
			}
			if !step.Reopens || len(problems) > 0 {
				return problems
			}
		}
	}
	if c.Steps[len(c.Steps)-1].Useless {
		r.Close()
		return nil
	}
	for _, w := range r.probe(ctx, cwd) {
		problems = append(problems, "afterwards: "+w)
	}
	return problems
}

// watch begins to watch the session's shell.
func (r *Runner) watch(ctx context.Context) (seen func() bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	result, err := r.session.Run(ctx, session.Command{Text: "echo $$"})
	if err != nil {
		return nil, fmt.Errorf("the shell's process number: %w", err)
	}
	return r.Watch(r.Shell, strings.TrimSpace(string(result.Stdout))), nil
}

// reopen opens the session again, which knows nothing but what was exported.
func (r *Runner) reopen(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	fresh, err := r.session.Reopen(ctx)
	if err != nil {
		return []string{"reopen: " + err.Error()}
	}
	if fresh.ID() != r.session.ID() {
		return []string{fmt.Sprintf("reopen: it is called %s, want %s", fresh.ID(), r.session.ID())}
	}
	r.session = fresh
	return r.do(ctx, Step{Text: fmt.Sprintf("kept=%d", r.kept)})
}

// probe looks at the session after a case, and prepares it for the next one.
func (r *Runner) probe(ctx context.Context, cwd string) []string {
	kept := r.kept
	r.kept++
	return r.do(ctx, Step{
		Text:   fmt.Sprintf(`echo out; echo err >&2; pwd; echo "$kept"; kept=%d; cd "$T"; (exit 7)`, r.kept),
		Stdout: fmt.Sprintf("out\n%s\n%d\n", cwd, kept), Stderr: "err\n", Code: 7, Cwd: "$T",
	})
}

// do runs one step and returns what was wrong.
func (r *Runner) do(ctx context.Context, step Step) []string {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("the patience of the suite has ended"))
	defer cancel()
	a := &actor{step: step, session: r.session, cancel: cancel, over: make(chan struct{})}
	command := step.With
	command.Text = step.Text
	command.Cwd = strings.ReplaceAll(command.Cwd, "$T", r.Dir)
	if step.Stdin != nil {
		command.Stdin = strings.NewReader(*step.Stdin)
	}
	if len(step.React) > 0 {
		command.Started = func() { a.came(nil) }
		command.Output = func(_ session.Stream, b []byte) { a.came(b) }
	}
	if len(step.Answers) > 0 || step.Unasked {
		command.Answer = a.answer
	}
	if step.Canceled {
		cancel()
	}
	result, err := r.session.Run(ctx, command)
	close(a.over)
	a.typing.Wait()
	if result.Verdict == session.TimedOut && command.Timeout > 0 {
		r.Late = max(r.Late, result.Duration-command.Timeout)
	}
	if step.Job && slices.Contains(announces, r.Shell) {
		result.Stderr = announced.ReplaceAll(result.Stderr, nil)
	}
	return append(a.wrong, step.compare(result, err, r.Dir)...)
}

// An actor reacts to what a command does.
type actor struct {
	step    Step
	session *session.Session
	cancel  context.CancelFunc
	typing  sync.WaitGroup
	over    chan struct{} // closed when the command is

	mu    sync.Mutex // guards what follows
	seen  []byte
	done  int // reactions
	asked int
	wrong []string
}

// came takes output, and does what is to be done after it.
func (a *actor) came(b []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = append(a.seen, b...)
	for a.done < len(a.step.React) {
		next := a.step.React[a.done]
		i := bytes.Index(a.seen, []byte(next.After))
		if i < 0 {
			return
		}
		a.seen = a.seen[i+len(next.After):]
		a.done++
		if rows := strings.Join(a.session.Screen().Rows, "\n"); next.Shows != nil && !next.Shows.match(rows) {
			a.wrong = append(a.wrong, fmt.Sprintf("after %q: the screen shows %q, want it %s", next.After, rows, next.Shows.name))
		}
		if next.Cancel {
			a.cancel()
		}
		a.typing.Go(func() { a.react(next) }) // apart: what is typed may have to wait until the output has been read
	}
}

// react types and interrupts. The result tells what came of it.
func (a *actor) react(next Reaction) {
	if next.Type != "" {
		_, _ = a.session.Write([]byte(next.Type))
	}
	if next.Press != "" {
		_ = a.session.Press(next.Press)
	}
	if next.Interrupt == "" {
		return
	}
	again := time.NewTicker(300 * time.Millisecond)
	defer again.Stop()
	for {
		_ = a.session.Interrupt(next.Interrupt)
		select {
		case <-again.C:
		case <-a.over:
			return
		}
	}
}

func (a *actor) answer(_ context.Context, p session.Prompt) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked >= len(a.step.Answers) {
		a.wrong = append(a.wrong, fmt.Sprintf("asked %+v once too often", p))
		return "", errors.New("nothing more to say")
	}
	if a.step.Asked != "" && p.Text != a.step.Asked || (p.Kind == session.PasswordPrompt) != a.step.Secret {
		a.wrong = append(a.wrong, fmt.Sprintf("asked %+v, want %q, secret %v", p, a.step.Asked, a.step.Secret))
	}
	a.asked++
	return a.step.Answers[a.asked-1], nil
}

// compare returns in which ways a result is not what was wanted.
func (s Step) compare(r session.Result, err error, dir string) (wrong []string) {
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	verdict := s.Verdict
	if verdict == "" {
		verdict = session.Exited
	}
	if s.Either && r.Verdict == session.Exited {
		verdict, s.Error = session.Exited, ""
	}
	codes := s.Codes
	if codes == nil {
		codes = []int{s.Code}
	}
	if r.Verdict != verdict || r.Signal != s.Signal || r.Ended != s.Ended ||
		!slices.Contains(codes, r.ExitCode) && (!slices.Contains(codes, Failure) || r.ExitCode <= 0) {
		complain("%s %d %s, ended %v; want %s %d %s, ended %v; stderr %.300q, terminal %.300q, %v",
			r.Verdict, r.ExitCode, r.Signal, r.Ended, verdict, codes, s.Signal, s.Ended, r.Stderr, r.Terminal, err)
	}
	stream := func(name string, got []byte, want string, like *Pattern) {
		want = strings.ReplaceAll(want, "$T", dir)
		switch {
		case like != nil && !like.match(string(got)):
			complain("%s %.600q, want it %s", name, got, like.name)
		case like == nil && want == "" && name == "terminal" && notices.match(string(got)):
		case like == nil && string(got) != want:
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			complain("%s of %d bytes %.600q, want %d bytes %.600q (they part at %d)", name, len(got), got, len(want), want, at)
		}
	}
	stream("stdout", r.Stdout, s.Stdout, s.StdoutLike)
	stream("stderr", r.Stderr, s.Stderr, s.StderrLike)
	stream("terminal", r.Terminal, s.Terminal, s.TerminalLike)
	if got := code(err); got != s.Error {
		complain("error %q (%v), want %q", got, err, s.Error)
	}
	if r.Prompt != s.Prompt && len(s.Answers) == 0 {
		complain("prompt %q, want %q", r.Prompt, s.Prompt)
	}
	if want := strings.ReplaceAll(s.Cwd, "$T", dir); want != "" && r.Cwd != want {
		complain("directory %q, want %q", r.Cwd, want)
	}
	if r.Truncated != s.Truncated || s.StdoutBytes != 0 && r.StdoutBytes != s.StdoutBytes {
		complain("%d bytes in all, truncated %v; want %d, %v", r.StdoutBytes, r.Truncated, s.StdoutBytes, s.Truncated)
	}
	if r.Duration < s.Least || s.Most > 0 && r.Duration > s.Most {
		complain("it took %v, want %v to %v", r.Duration, s.Least, s.Most)
	}
	return wrong
}

// notices are what a shell says on the terminal of its jobs, when it pleases.
var notices = Like(`\A\n?(\[\d+\][^\n]*(\n|\z))*\z`)

var announced = regexp.MustCompile(`(?m)^\[\d+\]\s+\d+\n`)

// code returns the code of an error.
func code(err error) string {
	var coded interface{ ErrorCode() string }
	switch {
	case err == nil:
		return ""
	case errors.As(err, &coded):
		return coded.ErrorCode()
	}
	return err.Error()
}
