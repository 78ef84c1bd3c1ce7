package script

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/redact"
	"gateway/session"
	"gateway/transfer"
)

// A Plan is what a script would do on one host, as far as that can be known
// before it runs. What steps register stays ${{ NAME }}.
type Plan struct {
	Host    string            `json:"host"`
	Vars    map[string]string `json:"vars"`
	Secrets []string          `json:"secrets"` // their names
	Steps   []PlannedStep     `json:"steps"`
}

// A PlannedStep is a step with the values of its variables.
type PlannedStep struct {
	Name       string            `json:"name"`
	Block      string            `json:"block"`
	Line       int               `json:"line"`
	Skipped    bool              `json:"skipped"` // by --start-at
	When       string            `json:"when,omitempty"`
	Sudo       string            `json:"sudo,omitempty"`
	Cwd        string            `json:"cwd,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	Timeout    string            `json:"timeout,omitempty"`
	Expect     *PlannedExpect    `json:"expect,omitempty"`
	Until      string            `json:"until,omitempty"`
	Retry      int               `json:"retry,omitempty"`
	Delay      string            `json:"retry_delay,omitempty"`
	Idempotent bool              `json:"idempotent,omitempty"`
	OnFail     string            `json:"on_fail,omitempty"`
	KeepGoing  bool              `json:"keep_going,omitempty"`
	Answers    []PlannedAnswer   `json:"answer,omitempty"`
	Register   string            `json:"register,omitempty"`
	Run        string            `json:"run"`
	Warning    string            `json:"warning,omitempty"` // what would run whole, see [gateway.Unsplit], and tests that can't be read
	Copy       *PlannedCopy      `json:"copy,omitempty"`
}

// A PlannedExpect is what a step would have to leave.
type PlannedExpect struct {
	Exit   []int         `json:"exit,omitempty"`
	Stdout *PlannedMatch `json:"stdout,omitempty"`
	Stderr *PlannedMatch `json:"stderr,omitempty"`
}

// A PlannedMatch is a [Match] with the values of its variables.
type PlannedMatch struct {
	Contains string  `json:"contains,omitempty"`
	Matches  string  `json:"matches,omitempty"`
	Equals   *string `json:"equals,omitempty"`
}

// A PlannedAnswer is what would be typed behind a prompt: of a secret only
// secret:NAME.
type PlannedAnswer struct {
	Prompt string `json:"prompt"`
	Send   string `json:"send"`
}

// Plan returns what would run on a host, where a step whose sudo names nobody
// becomes sudo. It resolves no secret, and connects to nothing.
func (r *Runner) Plan(host hosts.Host, sudo string) Plan {
	values := r.Script.values(host.Name, r.Given)
	p := Plan{Host: host.Name, Vars: map[string]string{}}
	for _, v := range r.Script.Vars {
		p.Vars[v.Name] = values[v.Name]
	}
	for _, secret := range r.Script.Secrets {
		p.Secrets = append(p.Secrets, secret.Name)
		values[secret.Name] = redact.Mask
	}
	resolve := func(text string) string {
		return expand(text, func(name string) string {
			if value, ok := values[name]; ok {
				return value
			}
			return "${{ " + name + " }}"
		})
	}
	first := 0
	if r.StartAt != "" {
		first, _ = r.Script.Find(r.StartAt, host.Name, r.Given)
	}
	add := func(steps []Step, block string) {
		for i := range steps {
			s := &steps[i]
			planned := PlannedStep{
				Name: resolve(s.Name), Block: block, Line: s.Line, Skipped: block == Steps && i < first,
				When: s.When, Cwd: resolve(s.Cwd), Expect: planExpect(s.Expect, resolve),
				Until: s.Until, Retry: s.Retry.Times, Idempotent: s.Idempotent, KeepGoing: s.KeepGoing,
				Answers: planAnswers(s.Answers, resolve), Register: s.Register, Run: s.Run,
			}
			if s.Retry.Delay > 0 {
				planned.Delay = s.Retry.Delay.String()
			}
			if !planned.Skipped {
				planned.Warning = r.warning(s, planned.Name, host.Shell)
			}
			if s.Continue {
				planned.OnFail = "continue"
			}
			if s.Copy != nil {
				planned.Copy = r.planCopy(s.Copy, resolve)
			}
			if s.Sudo.On {
				planned.Sudo = cmp.Or(resolve(s.Sudo.User), sudo)
			}
			if s.Timeout > 0 {
				planned.Timeout = s.Timeout.String()
			}
			if len(s.Env) > 0 {
				planned.Env = map[string]string{}
				for name, value := range s.Env {
					planned.Env[name] = resolve(value)
				}
			}
			p.Steps = append(p.Steps, planned)
		}
	}
	add(r.Script.Steps, Steps)
	add(r.Script.Always, Always)
	return p
}

// warning says what of a step's text would run whole, and which of its tests can't be
// read.
func (r *Runner) warning(s *Step, name, shell string) string {
	warnings := r.Script.unreadable(s, name, shell)
	if !s.KeepGoing {
		if unsplit := gateway.Unsplit(r.Script.command(s, name), shell); unsplit != "" {
			warnings = append(warnings, unsplit)
		}
	}
	return strings.Join(warnings, "; ")
}

func planExpect(e Expect, resolve func(string) string) *PlannedExpect {
	p := PlannedExpect{e.Exit, planMatch(e.Stdout, resolve), planMatch(e.Stderr, resolve)}
	if p.Exit == nil && p.Stdout == nil && p.Stderr == nil {
		return nil
	}
	return &p
}

func planMatch(m Match, resolve func(string) string) *PlannedMatch {
	if m == (Match{}) {
		return nil
	}
	p := &PlannedMatch{Contains: resolve(m.Contains), Matches: resolve(m.Matches)}
	if m.Equals != nil {
		text := resolve(*m.Equals)
		p.Equals = &text
	}
	return p
}

func planAnswers(answers []Answer, resolve func(string) string) []PlannedAnswer {
	var planned []PlannedAnswer
	for _, a := range answers {
		send := resolve(a.Text)
		if a.Secret != "" {
			send = "secret:" + a.Secret
		}
		planned = append(planned, PlannedAnswer{a.Prompt.String(), send})
	}
	return planned
}

// Check finds out whether the script could begin on a host: it connects, sets
// the variables, and becomes each user that a step needs, but for those that a
// step finds out. It gives the warnings about the steps' texts, and is an error
// where the shell can't read a test. No step runs.
func (r *Runner) Check(ctx context.Context, host string) (result Result) {
	h := r.newRun(host)
	defer func() { result.Duration = time.Since(result.Started) }()
	defer h.close()
	err := h.open(ctx)
	for _, steps := range [][]Step{r.Script.Steps, r.Script.Always} {
		for i := range steps {
			if err == nil {
				err = h.check(ctx, &steps[i])
			}
		}
	}
	if err != nil {
		h.unbegun(ctx, err)
	}
	return h.result
}

// check becomes the user that a step needs, and warns of its text.
func (h *hostRun) check(ctx context.Context, s *Step) (err error) {
	shell := h.main
	if s.Sudo.On && !h.registered(s.Sudo.User) {
		shell, err = h.shell(ctx, s)
	}
	if err == nil && !s.KeepGoing {
		shell.CheckScript(h.Script.command(s, h.show(s.Name)))
	}
	for _, c := range s.conditions() {
		if err != nil {
			return err
		}
		var why string
		if why, err = shell.readable(ctx, c.text); why != "" {
			err = h.Script.unread(h.show(s.Name), c, why)
		}
	}
	return err
}

// Failed returns a result for a host that was not tried, or that is given up: a
// [Runner.Host] of it that still runs tells the observer no more. What is known of
// its steps is in the result. One that only has to close its session has its own.
func (r *Runner) Failed(host string, outcome fleet.Outcome, why error) Result {
	run, known := r.runs.LoadAndDelete(host)
	if known {
		if result, finished := run.(*hostRun).whole(); finished {
			return result
		}
	}
	h := r.newRun(host)
	h.result.Started = time.Time{}
	h.result.Err, h.result.Outcome = h.masked(why), outcome
	if known {
		if step := h.takeOver(run.(*hostRun)); step != nil {
			step.Outcome, step.Verdict, step.Attempts = outcome, session.Unknown, 1
			step.Err, h.result.Err = h.result.Err, nil
			h.end(step)
		}
	}
	reason := "not tried"
	if outcome == fleet.Unknown {
		reason = "it is not known whether it ran"
	}
	told := len(h.result.Steps)
	first := min(told, len(r.Script.Steps))
	h.skip(r.Script.Steps[first:], Steps, reason)
	h.skip(r.Script.Always[told-first:], Always, reason)
	return h.result
}

// A PlannedCopy is what a step would copy, with the values of its variables.
type PlannedCopy struct {
	Direction string   `json:"direction"`
	Src       string   `json:"src"`
	Dst       string   `json:"dst"`
	Options   []string `json:"options"`
}

// planCopy resolves the path on this machine to where it is. The one on the host
// depends on where the session is then.
func (r *Runner) planCopy(c *Copy, resolve func(string) string) *PlannedCopy {
	here := func(text string) string {
		text = resolve(text)
		if mention.MatchString(text) {
			return text // it may begin anywhere
		}
		return local(r.Script.dir, text)
	}
	p := &PlannedCopy{Direction: direction(c), Options: []string{}}
	if c.Fetch {
		p.Src, p.Dst = resolve(c.Src), here(c.Dst)
	} else {
		p.Src, p.Dst = here(c.Src), resolve(c.Dst)
	}
	for _, option := range []struct {
		name string
		on   bool
	}{{"recursive", c.Recursive}, {"preserve", c.Preserve}, {"checksum", c.Checksum}, {"resume", c.Resume}} {
		if option.on {
			p.Options = append(p.Options, option.name)
		}
	}
	if c.Mode != nil {
		p.Options = append(p.Options, fmt.Sprintf("mode %04o", *c.Mode))
	}
	if c.Links != transfer.KeepLinks {
		p.Options = append(p.Options, "links "+c.Links.String())
	}
	for _, pattern := range c.Exclude {
		p.Options = append(p.Options, "exclude "+resolve(pattern))
	}
	return p
}
