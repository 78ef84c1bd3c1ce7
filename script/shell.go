package script

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gateway/gateway"
	"gateway/session"
	"gateway/transport"
)

// A shell is a session with what the runner has to know of it. What the runner
// itself runs there must do no harm under set -e, -u and -f.
type shell struct {
	*gateway.Session
	limit time.Duration // of run
	cwd   string
	env   []string // what enter has set, to be undone
	old   string   // where enter came from; empty: nowhere else
	stuck error    // why that could not be undone
	// before is where it is to go before a step that does not say where it runs;
	// empty: it is there.
	before string
}

// run runs a text of the runner's own, which is nowhere shown.
func (s *shell) run(ctx context.Context, text string) gateway.Result {
	return s.command(ctx, gateway.Command{Text: text, Timeout: s.limit})
}

func (s *shell) command(ctx context.Context, c gateway.Command) gateway.Result {
	r := s.Run(ctx, c)
	if r.Cwd != "" {
		s.cwd = r.Cwd
	}
	return r
}

// set sets variables of the shell. Secret ones are not exported, also where the
// environment has one of that name.
func (s *shell) set(ctx context.Context, values map[string]string, secret bool) error {
	names := slices.Sorted(maps.Keys(values))
	if len(names) == 0 {
		return nil
	}
	r := s.run(ctx, assignments(names, values, secret))
	switch {
	case r.Err != nil:
		return about("set variables", r.Err)
	case r.Verdict == session.Exited && r.ExitCode == 0:
		return nil
	}
	for _, name := range names {
		switch r := s.run(ctx, assignments([]string{name}, values, secret)); {
		case r.Err != nil:
			return about("set variables", r.Err)
		case r.ExitCode != 0:
			return refused(r, name)
		}
	}
	return nil
}

// about returns an error that says what the runner was doing; nil for nil.
func about(what string, err error) error {
	if err == nil {
		return nil
	}
	return &transport.Error{Code: gateway.Code(err), Message: "script: " + what + ": " + err.Error(), Hint: gateway.Hint(err), Err: err}
}

func refused(r gateway.Result, name string) error {
	return invalid("it is read-only there, or has a meaning of its own: choose another name",
		"the shell (%s) refuses the variable %s", gateway.ShellName(r.Shell), name)
}

// assignments returns a text whose status is 0 only if all could be made.
func assignments(names []string, values map[string]string, secret bool) string {
	var b strings.Builder
	for _, name := range names {
		if secret {
			b.WriteString("unset " + name + " &&\n")
		}
		b.WriteString(name + "=" + session.Quote(values[name]) + " &&\n")
	}
	return b.String() + ":"
}

// A place is where a step runs.
type place struct {
	cwd  string // empty: where the shell is
	or   string // where it runs if cwd can't be entered; empty: nowhere
	hint string // what to do about that
}

// enter goes to a place and sets environment, for a step. A timeout of 0 means
// that of everything else that the runner types: a directory may be on a machine
// that does not answer.
func (s *shell) enter(ctx context.Context, where place, env map[string]string, timeout time.Duration) error {
	s.env, s.old = nil, ""
	cwd := where.cwd
	if cwd == "" && len(env) == 0 {
		return nil
	}
	var text strings.Builder
	// _gwy is what comes next: some shells end the text at an assignment that they
	// refuse, and others go on.
	text.WriteString("_gwy=1\n")
	for i, name := range slices.Sorted(maps.Keys(env)) {
		// u: it was not set; p: not exported; e: exported.
		fmt.Fprintf(&text, "if [ \"$_gwy\" = %[3]d ]; then _gwm=u _gwv_%[1]s=\n"+
			"if [ -n \"${%[1]s+x}\" ]; then _gwm=p _gwv_%[1]s=$%[1]s; if [ -n \"$(/bin/sh -c 'echo \"${%[1]s+x}\"')\" ]; then _gwm=e; fi; fi\n"+
			"if %[1]s=%[2]s && export %[1]s; then _gwk_%[1]s=$_gwm _gwy=%[4]d; fi; fi\n", name, session.Quote(env[name]), i+1, i+2)
		s.env = append(s.env, name)
	}
	last := len(env) + 1
	if cwd != "" {
		cd := "cd -- " + session.Directory(cwd)
		if where.or != "" {
			cd = "{ " + cd + " || cd -- " + session.Directory(where.or) + "; }"
		}
		fmt.Fprintf(&text, "if [ \"$_gwy\" = %d ] && %s; then _gwy=%d; fi\n", last, cd, last+1)
		s.old = s.cwd
		last++
	}
	const tell = "echo \"\n_gwt:$_gwy\""
	r := s.command(ctx, gateway.Command{Text: text.String() + tell, Timeout: cmp.Or(timeout, s.limit)})
	next, ok := tested(r)
	if why := r; r.Err == nil && !ok {
		r = s.run(ctx, tell)
		next, _ = tested(r)
		r.Stderr = why.Stderr
	}
	switch {
	case r.Err != nil && cwd == "":
		return about("env", r.Err)
	case r.Err != nil:
		return about("cwd", r.Err)
	case next == last:
		return nil
	}
	s.old = ""
	if next > 0 && next <= len(s.env) {
		return refused(r, s.env[next-1])
	}
	return &transport.Error{Code: "cmd.cwd", Message: fmt.Sprintf("script: directory %q can't be entered on the machine%s", cwd, said(r)), Hint: where.hint}
}

// leave undoes what enter did. Where that fails, the shell is no place for a further
// step, and counts as ended; where but a directory is gone, see before.
func (s *shell) leave(ctx context.Context) (err error) {
	var text strings.Builder
	for _, name := range s.env {
		fmt.Fprintf(&text, "case ${_gwk_%[1]s-} in e) export %[1]s=\"$_gwv_%[1]s\";; p) unset %[1]s; %[1]s=$_gwv_%[1]s;; u) unset %[1]s;; esac\nunset _gwk_%[1]s _gwv_%[1]s\n", name)
	}
	if s.old != "" {
		fmt.Fprintf(&text, "if cd -- %s; then :; fi\n", session.Directory(s.old))
	}
	if text.Len() > 0 && !s.ended() {
		err = about("put cwd and env back", s.run(ctx, text.String()).Err)
		s.stuck = err
	}
	switch {
	case s.old == "":
	case s.ended():
		s.cwd = s.old // where the next shell begins
	case s.cwd != s.old: // the step may have removed it
		s.before = s.old
	}
	s.env, s.old = nil, ""
	return err
}

// ended reports whether the shell has ended, or can be used no more.
func (s *shell) ended() bool {
	select {
	case <-s.Done():
		return true
	default:
		return s.stuck != nil
	}
}

// gone returns why there is no shell for a further step.
func (s *shell) gone() error {
	e := &transport.Error{Code: "session.closed", Message: "script: the session has ended", Hint: "an earlier step ended its shell: leave exit and set -e out, or put them into ( )"}
	if s.stuck != nil { // which the step does not say if it has an error of its own
		e.Message, e.Hint = "script: the session is given up after an earlier step: "+strings.TrimPrefix(s.stuck.Error(), "script: "), gateway.Hint(s.stuck)
	}
	return e
}

// said quotes the first line of what a command said about its failure. What set -x
// shows of it begins with + and goes on to where its quotes end.
func said(r gateway.Result) string {
	quoted := false
	for line := range strings.Lines(string(r.Stderr)) {
		line = strings.TrimSpace(line)
		if !quoted && !strings.HasPrefix(line, "+") && line != "" {
			return ": " + line
		}
		quoted = quoted != ((strings.Count(line, "'")-strings.Count(line, `\'`))%2 != 0)
	}
	return ""
}
