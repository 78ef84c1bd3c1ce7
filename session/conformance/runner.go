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
			if problems = r.afterEnd(ctx, step); !step.Reopens || len(problems) > 0 {
				return problems
			}
		}
	}
	for _, w := range r.probe(ctx, cwd) {
		problems = append(problems, "afterwards: "+w)
	}
	return problems
}

// afterEnd looks at a session whose shell has ended, and reopens it if the step does.
func (r *Runner) afterEnd(ctx context.Context, step Step) (problems []string) {
	problems = r.do(ctx, Step{Text: "echo again", Verdict: session.NotStarted, Code: -1, Error: "session.closed"})
	switch {
	case !step.Reopens:
		r.Close()
	case len(problems) == 0:
		problems = r.reopen(ctx)
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

// announced matches what a shell says on stderr of a job that it starts.
var announced = regexp.MustCompile(`(?m)^\[\d+\]\s+\d+\n`)

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
