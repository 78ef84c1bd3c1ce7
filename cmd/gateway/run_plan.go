package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gateway/gateway"
	"gateway/hosts"
	"gateway/script"
	"gateway/session"
	"gateway/transfer"
)

// A plannedScript is what a script would do on one host, and how that is
// entered.
type plannedScript struct {
	planned
	script.Plan
}

// dryRun says what would run on each host. It connects to nothing.
func (r *scriptRun) dryRun(ctx context.Context, selected []hosts.Host) error {
	a := r.app
	var plans []plannedScript
	for _, host := range selected {
		where, err := a.planned(ctx, r.gateway, host.Name, gateway.Command{Text: r.file, Session: gateway.Options{Sudo: true}})
		if err != nil {
			return err
		}
		plan := r.runner.Plan(host, where.Sudo)
		for i := range plan.Steps {
			if unsplit := plan.Steps[i].Warning; unsplit != "" {
				a.warn(host.Name + ": " + unsplit)
			}
		}
		where.Sudo = "" // that is for each step to say
		plans = append(plans, plannedScript{where, plan})
	}
	if a.out.format != "text" {
		return list(a.out, plans)
	}
	for i := range plans {
		if i > 0 {
			if err := a.out.printf("\n"); err != nil {
				return err
			}
		}
		if err := a.out.printf("%s", plans[i].text()); err != nil {
			return err
		}
	}
	return nil
}

func (p *plannedScript) text() string {
	var b strings.Builder
	where := p.where()
	if p.Port != 0 {
		where = p.User + "@" + where
	}
	fmt.Fprintf(&b, "%s: %s, %s\n", p.Host, visible(where), p.Shell)
	for _, name := range slices.Sorted(maps.Keys(p.Vars)) {
		fmt.Fprintf(&b, "  %s=%s\n", name, visible(session.Quote(p.Vars[name])))
	}
	for _, name := range p.Secrets {
		fmt.Fprintf(&b, "  %s=******** (secret)\n", name)
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		block := ""
		if s.Block == script.Always {
			block = "always: "
		}
		fmt.Fprintf(&b, "  %d. %s%s (line %d)%s\n", i+1, block, oneLine(s.Name, 80), s.Line, limits(s))
		if s.Skipped {
			b.WriteString("     left out (--start-at)\n")
			continue
		}
		if s.Copy != nil {
			b.WriteString("     " + oneLine(p.copying(s.Copy), 400) + "\n")
			continue
		}
		for line := range strings.SplitSeq(strings.TrimRight(visible(s.Run), "\n"), "\n") {
			b.WriteString("     " + line + "\n")
		}
	}
	return b.String()
}

// copying says what a step would copy.
func (p *plannedScript) copying(c *script.PlannedCopy) string {
	from, to := transfer.Show("", c.Src), transfer.Show(p.Host, c.Dst)
	if c.Direction == "from_host" {
		from, to = transfer.Show(p.Host, c.Src), transfer.Show("", c.Dst)
	}
	return strings.Join(append([]string{"copy " + from + " -> " + to}, c.Options...), ", ")
}

// limits says how a step is to run.
func limits(s *script.PlannedStep) string {
	var words []string
	add := func(name, value string) {
		if value != "" {
			words = append(words, name+" "+oneLine(value, 80))
		}
	}
	add("when", s.When)
	add("sudo", s.Sudo)
	add("cwd", s.Cwd)
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		add("env", name+"="+s.Env[name])
	}
	add("timeout", s.Timeout)
	if e := s.Expect; e != nil {
		var codes []string
		for _, code := range e.Exit {
			codes = append(codes, fmt.Sprint(code))
		}
		add("expect exit", strings.Join(codes, " or "))
		addMatch(add, "expect stdout", e.Stdout)
		addMatch(add, "expect stderr", e.Stderr)
	}
	add("until", s.Until)
	if s.Retry > 0 {
		add("retry", fmt.Sprint(s.Retry))
		add("delay", s.Delay)
	}
	for _, flag := range []struct {
		name string
		on   bool
	}{{"idempotent", s.Idempotent}, {"keep_going", s.KeepGoing}} {
		if flag.on {
			words = append(words, flag.name)
		}
	}
	add("on_fail", s.OnFail)
	for _, answer := range s.Answers {
		add("answer", fmt.Sprintf("%q with %q", answer.Prompt, answer.Send))
	}
	add("register", s.Register)
	if len(words) == 0 {
		return ""
	}
	return " " + strings.Join(words, ", ")
}

// addMatch says what has to be in a stream.
func addMatch(add func(name, value string), stream string, m *script.Match) {
	if m == nil {
		return
	}
	quoted := func(name, value string) {
		if value != "" {
			add(stream+" "+name, fmt.Sprintf("%q", value))
		}
	}
	quoted("contains", m.Contains)
	quoted("matches", m.Matches)
	if m.Equals != nil {
		add(stream+" equals", fmt.Sprintf("%q", *m.Equals))
	}
}
