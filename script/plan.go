package script

import (
	"cmp"
	"fmt"
	"strings"

	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/redact"
	"gateway/transfer"
)

// A Plan is what a script would do on one host, as far as that can be known
// before it runs. What steps register stays ${{ NAME }}.
type Plan struct {
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

// A PlannedExpect is what a step would have to leave, with the values of variables.
type PlannedExpect struct {
	Exit   []int  `json:"exit,omitempty"`
	Stdout *Match `json:"stdout,omitempty"`
	Stderr *Match `json:"stderr,omitempty"`
}

// A PlannedCopy is what a step would copy, with the values of its variables.
type PlannedCopy struct {
	Direction string   `json:"direction"`
	Src       string   `json:"src"`
	Dst       string   `json:"dst"`
	Options   []string `json:"options"`
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
	p := planner{r, host, sudo, r.Script.values(host.Name, r.Given)}
	plan := Plan{Vars: map[string]string{}}
	for _, v := range r.Script.Vars {
		plan.Vars[v.Name] = p.values[v.Name]
	}
	for _, secret := range r.Script.Secrets {
		plan.Secrets = append(plan.Secrets, secret.Name)
		p.values[secret.Name] = redact.Mask
	}
	first := r.first(host.Name)
	for i := range r.Script.Steps {
		plan.Steps = append(plan.Steps, p.step(&r.Script.Steps[i], Steps, i < first))
	}
	for i := range r.Script.Always {
		plan.Steps = append(plan.Steps, p.step(&r.Script.Always[i], Always, false))
	}
	return plan
}

// A planner plans for one host.
type planner struct {
	*Runner
	host   hosts.Host
	sudo   string
	values map[string]string // of the variables, as far as they are known
}

// resolve puts values in the place of their variables.
func (p *planner) resolve(text string) string {
	return expand(text, func(name string) string {
		if value, ok := p.values[name]; ok {
			return value
		}
		return "${{ " + name + " }}"
	})
}

// present is resolve for what must not become empty, which fails the step: that is
// as it is written.
func (p *planner) present(text string) string { return cmp.Or(p.resolve(text), text) }

func (p *planner) step(s *Step, block string, skipped bool) PlannedStep {
	planned := PlannedStep{
		Name: s.called(p.resolve), Block: block, Line: s.Line, Skipped: skipped,
		When: s.When, Cwd: p.present(s.Cwd), Expect: p.expect(s.Expect),
		Until: s.Until, Retry: s.Retry.Times, Idempotent: s.Idempotent, KeepGoing: s.KeepGoing,
		Answers: p.answers(s.Answers), Register: s.Register, Run: s.Run,
	}
	if s.Retry.Delay > 0 {
		planned.Delay = s.Retry.Delay.String()
	}
	if !skipped {
		planned.Warning = p.warning(s, planned.Name)
	}
	if s.Continue {
		planned.OnFail = "continue"
	}
	if s.Copy != nil {
		planned.Copy = p.copy(s.Copy)
	}
	if s.Sudo.On {
		planned.Sudo = cmp.Or(p.present(s.Sudo.User), p.sudo)
	}
	if s.Timeout > 0 {
		planned.Timeout = s.Timeout.String()
	}
	if len(s.Env) > 0 {
		planned.Env = map[string]string{}
		for name, value := range s.Env {
			planned.Env[name] = p.resolve(value)
		}
	}
	return planned
}

// warning says what of a step's text would run whole, and which of its tests can't be
// read.
func (p *planner) warning(s *Step, name string) string {
	warnings := p.Script.unreadable(s, name, p.host.Shell)
	if !s.KeepGoing {
		if unsplit := gateway.Unsplit(p.Script.command(s, name), p.host.Shell); unsplit != "" {
			warnings = append(warnings, unsplit)
		}
	}
	return strings.Join(warnings, "; ")
}

func (p *planner) expect(e Expect) *PlannedExpect {
	planned := PlannedExpect{e.Exit, p.match(e.Stdout), p.match(e.Stderr)}
	if planned.Exit == nil && planned.Stdout == nil && planned.Stderr == nil {
		return nil
	}
	return &planned
}

func (p *planner) match(m Match) *Match {
	if m == (Match{}) {
		return nil
	}
	planned := &Match{Contains: p.resolve(m.Contains), Matches: p.resolve(m.Matches)}
	if m.Equals != nil {
		planned.Equals = new(p.resolve(*m.Equals))
	}
	return planned
}

func (p *planner) answers(answers []Answer) []PlannedAnswer {
	var planned []PlannedAnswer
	for _, a := range answers {
		send := p.resolve(a.Text)
		if a.Secret != "" {
			send = "secret:" + a.Secret
		}
		planned = append(planned, PlannedAnswer{a.Prompt.String(), send})
	}
	return planned
}

// copy resolves the path on this machine to where it is. The one on the host
// depends on where the session is then.
func (p *planner) copy(c *Copy) *PlannedCopy {
	here := func(text string) string {
		text = p.present(text)
		if mention.MatchString(text) {
			return text // it may begin anywhere
		}
		return local(p.Script.dir, text)
	}
	planned := &PlannedCopy{Direction: direction(c), Options: []string{}}
	if c.Fetch {
		planned.Src, planned.Dst = p.present(c.Src), here(c.Dst)
	} else {
		planned.Src, planned.Dst = here(c.Src), p.present(c.Dst)
	}
	for _, option := range []struct {
		name string
		on   bool
	}{{"recursive", c.Recursive}, {"preserve", c.Preserve}, {"checksum", c.Checksum}, {"resume", c.Resume}} {
		if option.on {
			planned.Options = append(planned.Options, option.name)
		}
	}
	if c.Mode != nil {
		planned.Options = append(planned.Options, fmt.Sprintf("mode %04o", *c.Mode))
	}
	if c.Links != transfer.KeepLinks {
		planned.Options = append(planned.Options, "links "+c.Links.String())
	}
	for _, pattern := range c.Exclude {
		planned.Options = append(planned.Options, "exclude "+p.resolve(pattern))
	}
	return planned
}
