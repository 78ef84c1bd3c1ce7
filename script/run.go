package script

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/internal/redact"
	"gateway/session"
	"gateway/transport"
)

// A Runner runs a script on hosts. It may be used for several at once.
type Runner struct {
	Script *Script
	// Open opens a session on a host; see [gateway.Gateway.Open].
	Open func(ctx context.Context, host string, options gateway.Options) (*gateway.Session, error)
	// Given are values for the script's variables; see [Script.Given].
	Given map[string]string
	// Secrets are those of [Script.ReadSecrets]. Mask has to know them.
	Secrets map[string]string
	Mask    *redact.Set
	// StartAt is the name of the step to begin with; empty means the first.
	StartAt string
	// Observe is told what happens.
	Observe Observer

	runs sync.Map // of *hostRun by host: those that have not come to their end
}

// An Observer is told what happens while it happens, without secrets. Its
// functions may be nil, and are called concurrently for different hosts; Output
// also for different streams. The bytes are valid during the call.
type Observer struct {
	Begin  func(host string, step *StepResult)
	Output func(host string, step *StepResult, from session.Stream, b []byte)
	End    func(host string, step *StepResult)
}

// Find returns the first step that is called name, as it is written or as it is
// called on a host.
func (s *Script) Find(name, host string, given map[string]string) (int, bool) {
	values := s.values(host, given)
	for i := range s.Steps {
		if written := s.Steps[i].Name; written == name || expand(written, func(n string) string { return values[n] }) == name {
			return i, true
		}
	}
	return 0, false
}

// Host runs the script on one host and returns what happened. The context's end
// interrupts the step that runs; what stands under always runs then, too.
func (r *Runner) Host(ctx context.Context, host string) (result Result) {
	h := r.newRun(host)
	r.runs.Store(host, h)
	defer func() { result.Duration = time.Since(result.Started) }()
	defer h.close()
	h.all(ctx)
	r.runs.Delete(host) // but not in a panic: what is known then is for Failed
	return h.result
}

// all runs all steps.
func (h *hostRun) all(ctx context.Context) {
	if err := h.open(ctx); err != nil {
		h.result.Err = h.masked(err)
		h.result.Outcome = fleet.NotStarted
		if ctx.Err() != nil {
			h.result.Outcome = fleet.Interrupted
		}
		h.skip(h.Script.Steps, Steps, "the host was not reached")
		h.skip(h.Script.Always, Always, "the host was not reached")
		return
	}
	h.steps(ctx)
	h.always(ctx)
}

// A hostRun is a script on one host.
type hostRun struct {
	*Runner
	host   string
	values map[string]string // variables, secrets, and what steps have registered
	main   *shell
	before string            // where the main session is to go back to; empty: it is there
	others map[string]*shell // under sudo, by user
	closed []*shell          // shells that ended; they may hold the connection of others

	registers map[string]bool // what steps set

	mu      sync.Mutex  // Failed reads what follows while the run goes on
	result  Result      // its steps and what open finds out are guarded by mu
	running *StepResult // the step that runs, as it began; guarded by mu
	over    bool        // nobody waits for it any more; guarded by mu
}

func (r *Runner) newRun(host string) *hostRun {
	h := &hostRun{
		Runner: r, host: host, values: r.Script.values(host, r.Given), registers: map[string]bool{},
		result: Result{Script: cmp.Or(r.Script.Name, r.Script.File), Host: host, Outcome: fleet.OK, Started: time.Now()},
	}
	maps.Copy(h.values, r.Secrets)
	for _, steps := range [][]Step{r.Script.Steps, r.Script.Always} {
		for i := range steps {
			if name := steps[i].Register; name != "" {
				h.values[name], h.registers[name] = "", true
			}
		}
	}
	return h
}

// registered reports whether a text names what only a step sets.
func (h *hostRun) registered(text string) bool {
	found := false
	expand(text, func(name string) string {
		found = found || h.registers[name]
		return ""
	})
	return found
}

// open opens the main session, and sets the variables in it. It replaces one
// that has ended; see back.
func (h *hostRun) open(ctx context.Context) error {
	s, err := h.Open(ctx, h.host, gateway.Options{Typed: func(secret string) { h.Mask.Add(secret) }})
	if err != nil {
		return err
	}
	main := &shell{Session: s, cwd: s.Origin()}
	about := s.Describe()
	h.mu.Lock()
	h.result.User, h.result.Transport, h.result.Session, h.result.Shell = about.User, about.Transport, about.Session, about.Shell
	h.result.Connect += about.Connect
	h.mu.Unlock()
	if err := h.define(ctx, main); err != nil {
		s.Close()
		return err
	}
	if h.main != nil {
		h.before = cmp.Or(h.before, h.main.cwd)
		h.retire()
	}
	h.main = main
	return nil
}

// back takes a new main session to where the one before it was. A step that says
// itself where it runs does not need that.
func (h *hostRun) back(ctx context.Context, s *Step) error {
	cwd := h.expand(s.Cwd)
	if h.before == "" || path.IsAbs(cwd) || strings.HasPrefix(cwd, "~") {
		return nil
	}
	if h.before != h.main.cwd {
		if err := h.main.enter(ctx, h.before, nil); err != nil {
			return err
		}
	}
	h.before, h.main.old = "", ""
	return nil
}

// retire puts the sessions of a connection aside, which are closed at the end.
func (h *hostRun) retire() {
	for _, s := range h.others {
		h.closed = append(h.closed, s)
	}
	h.closed = append(h.closed, h.main)
	h.others, h.main = nil, nil
}

func (h *hostRun) close() {
	if h.main != nil {
		h.retire()
	}
	for _, s := range h.closed {
		s.Close()
	}
}

// define sets all variables in a shell.
func (h *hostRun) define(ctx context.Context, s *shell) error {
	plain := make(map[string]string, len(h.values))
	for name, value := range h.values {
		if _, secret := h.Secrets[name]; !secret && name != HostVar {
			plain[name] = value
		}
	}
	if err := s.set(ctx, plain, false); err != nil {
		return err
	}
	return s.set(ctx, h.Secrets, true)
}

// steps runs the steps up to the first that fails.
func (h *hostRun) steps(ctx context.Context) {
	first := 0
	if h.StartAt != "" {
		first, _ = h.Script.Find(h.StartAt, h.host, h.Given)
		h.skip(h.Script.Steps[:first], Steps, "--start-at")
	}
	for i := first; i < len(h.Script.Steps); i++ {
		r := h.step(ctx, &h.Script.Steps[i], Steps)
		left := h.Script.Steps[i+1:]
		switch {
		case ctx.Err() != nil && len(left) > 0:
			h.fail(fleet.Interrupted)
			h.skip(left, Steps, "interrupted")
			return
		case r.Failed():
			h.skip(left, Steps, "an earlier step failed")
			return
		}
	}
}

// always runs what is to run whatever has happened, also after an interrupt: what
// ends it is that the gateway is closed.
func (h *hostRun) always(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for i := range h.Script.Always {
		h.step(ctx, &h.Script.Always[i], Always)
	}
}

// fail notes an outcome; the first one counts.
func (h *hostRun) fail(outcome fleet.Outcome) {
	if h.result.Outcome == fleet.OK {
		h.result.Outcome = outcome
	}
}

// newStep returns the result of a step that has not run.
func (h *hostRun) newStep(s *Step, block string) *StepResult {
	r := &StepResult{
		Name: h.show(s.Name), Block: block, Line: s.Line, Command: h.Mask.String(s.Run),
		Verdict: session.NotStarted, ExitCode: -1, Streams: session.Split, Register: s.Register,
	}
	if s.Copy != nil {
		r.Command = h.show(s.Copy.String())
	}
	if s.Sudo.On {
		r.Sudo = h.show(cmp.Or(s.Sudo.User, "root"))
	}
	return r
}

// skip notes steps that are left out.
func (h *hostRun) skip(steps []Step, block, reason string) {
	for i := range steps {
		r := h.newStep(&steps[i], block)
		r.Outcome, r.Reason = fleet.Skipped, reason
		h.end(r)
	}
}

func (h *hostRun) begin(r *StepResult) {
	h.note(func() {
		begun := *r
		h.running = &begun
		if h.Observe.Begin != nil {
			h.Observe.Begin(h.host, r)
		}
	})
}

func (h *hostRun) end(r *StepResult) {
	h.note(func() {
		h.running = nil
		h.result.Steps = append(h.result.Steps, *r)
		if h.Observe.End != nil {
			h.Observe.End(h.host, r)
		}
	})
}

// note notes and tells something, unless the end of it all is told already.
func (h *hostRun) note(what func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		what()
	}
}

// takeOver ends a run that nobody waits for any more, takes what is known of it,
// and returns the step that runs; nil if there is none.
func (h *hostRun) takeOver(from *hostRun) *StepResult {
	from.mu.Lock()
	defer from.mu.Unlock()
	from.over = true
	known := &from.result
	h.result.User, h.result.Transport, h.result.Session, h.result.Shell = known.User, known.Transport, known.Session, known.Shell
	h.result.Started, h.result.Connect, h.result.Steps = known.Started, known.Connect, slices.Clone(known.Steps)
	h.result.Duration = time.Since(known.Started)
	return from.running
}

// expand puts in the values of variables.
func (h *hostRun) expand(text string) string {
	return expand(text, func(name string) string { return h.values[name] })
}

// present is expand for what must not become empty: it would mean another user,
// or wherever the shell is.
func (h *hostRun) present(key, text string) (string, error) {
	value := h.expand(text)
	if value == "" && text != "" {
		return "", &transport.Error{Code: "script.invalid", Message: fmt.Sprintf("script: %s: %s is empty", key, text)}
	}
	return value, nil
}

// show is expand for what is shown.
func (h *hostRun) show(text string) string { return h.Mask.String(h.expand(text)) }

// hidden returns a text without secrets. One that shows only once the sequences
// between its characters are taken out, which reports do, takes them along.
func (h *hostRun) hidden(b []byte) []byte {
	b = h.Mask.Bytes(b)
	plain := Plain(b)
	if masked := h.Mask.String(plain); masked != plain {
		return []byte(masked)
	}
	return b
}

// masked returns an error without secrets.
func (h *hostRun) masked(err error) error {
	if err == nil {
		return nil
	}
	return &transport.Error{Code: gateway.Code(err), Message: string(h.hidden([]byte(err.Error()))), Hint: h.Mask.String(gateway.Hint(err)), Err: err}
}

// shell returns the session for a step: the main one, or one of another user on
// the same connection, which has its own variables and functions but for those
// of the script, and starts where the main one is.
func (h *hostRun) shell(ctx context.Context, s *Step) (*shell, error) {
	if h.main.ended() {
		return nil, &transport.Error{Code: "session.closed", Message: "script: the session has ended", Hint: "an earlier step ended its shell: leave exit and set -e out, or put them into ( )"}
	}
	if err := h.back(ctx, s); err != nil || !s.Sudo.On {
		return h.main, err
	}
	user, err := h.present("sudo", s.Sudo.User)
	if err != nil {
		return nil, err
	}
	if other := h.others[user]; other != nil && !other.ended() {
		return other, nil
	}
	opened, err := h.main.Beside(ctx, gateway.Options{
		Sudo: true, SudoUser: user,
		Typed:    func(secret string) { h.Mask.Add(secret) },
		Password: h.sudoPassword(s),
	})
	if err != nil {
		return nil, err
	}
	other := &shell{Session: opened, cwd: opened.Origin()}
	if err := h.define(ctx, other); err != nil {
		opened.Close()
		return nil, err
	}
	if h.others == nil {
		h.others = map[string]*shell{}
	}
	if ended := h.others[user]; ended != nil {
		h.closed = append([]*shell{ended}, h.closed...)
	}
	h.others[user] = other
	return other, nil
}

// sudoPassword returns what answers sudo's prompt if the inventory doesn't: the
// step's own answers.
func (h *hostRun) sudoPassword(s *Step) func(context.Context) (string, error) {
	prompt := "[sudo] password for " + h.main.Describe().User + ": "
	for _, a := range s.Answers {
		if a.Prompt.MatchString(prompt) {
			return func(context.Context) (string, error) { return h.answer(a), nil }
		}
	}
	return nil
}

func (h *hostRun) answer(a Answer) string {
	if a.Secret != "" {
		return h.Secrets[a.Secret]
	}
	return h.expand(a.Text)
}

// place returns the directory that a step runs in; empty for where the shell is.
func (h *hostRun) place(s *Step) (string, error) {
	cwd, err := h.present("cwd", s.Cwd)
	if err != nil || !s.Sudo.On || path.IsAbs(cwd) || strings.HasPrefix(cwd, "~") {
		return cwd, err
	}
	return path.Join(h.main.cwd, cwd), nil
}

func (h *hostRun) env(s *Step) map[string]string {
	env := make(map[string]string, len(s.Env))
	for name, value := range s.Env {
		env[name] = h.expand(value)
	}
	return env
}

// register sets the step's variable, in all shells.
func (h *hostRun) register(ctx context.Context, s *Step, stdout []byte, truncated bool) error {
	if s.Register == "" {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // what runs after an interrupt goes by it, too
	value := strings.TrimSpace(string(stdout))
	switch {
	case truncated:
		return &transport.Error{Code: "script.invalid", Message: fmt.Sprintf("script: register %s: stdout is too long for a variable", s.Register), Hint: "print less: head, tail or grep"}
	case strings.ContainsRune(value, 0):
		return &transport.Error{Code: "script.invalid", Message: fmt.Sprintf("script: register %s: stdout holds a NUL byte, which no shell can keep", s.Register)}
	}
	h.values[s.Register] = value
	for _, shell := range append([]*shell{h.main}, slices.Collect(maps.Values(h.others))...) {
		if !shell.ended() {
			if err := shell.set(ctx, map[string]string{s.Register: value}, false); err != nil {
				return err
			}
		}
	}
	return nil
}
