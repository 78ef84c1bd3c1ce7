package script

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"gateway/gateway"
	"gateway/session"
	"gateway/transport"
)

// A shell is a session with what the runner has to know of it. What the runner
// itself runs there must do no harm under set -e, -u and -f.
type shell struct {
	*gateway.Session
	cwd string
	env []string // what enter has set, to be undone
	old string   // where enter came from; empty: nowhere else
}

// run runs a text of the runner's own, which is nowhere shown.
func (s *shell) run(ctx context.Context, text string) gateway.Result {
	r := s.Run(ctx, gateway.Command{Text: text})
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
		return r.Err
	case r.Verdict == session.Exited && r.ExitCode == 0:
		return nil
	}
	for _, name := range names {
		if r := s.run(ctx, assignments([]string{name}, values, secret)); r.Err != nil || r.ExitCode != 0 {
			return &transport.Error{
				Code: "script.invalid", Message: fmt.Sprintf("script: the shell (%s) refuses the variable %s", gateway.ShellName(r.Shell), name),
				Hint: "it is read-only there, or has a meaning of its own: choose another name",
			}
		}
	}
	return nil
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

// enter goes to a directory and sets environment, for a step.
func (s *shell) enter(ctx context.Context, cwd string, env map[string]string) error {
	s.env, s.old = nil, ""
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(env)) {
		// u: it was not set; p: not exported; e: exported.
		fmt.Fprintf(&text, "_gwk_%[1]s=u _gwv_%[1]s=\n"+
			"if [ -n \"${%[1]s+x}\" ]; then _gwk_%[1]s=p _gwv_%[1]s=$%[1]s; if [ -n \"$(/bin/sh -c 'echo \"${%[1]s+x}\"')\" ]; then _gwk_%[1]s=e; fi; fi\n"+
			"%[1]s=%[2]s\nexport %[1]s\n", name, session.Quote(env[name]))
		s.env = append(s.env, name)
	}
	from := s.cwd
	if cwd != "" {
		fmt.Fprintf(&text, "if cd -- %s; then echo '\n_gwt:0'; fi\n", directory(cwd))
		s.old = from
	}
	if text.Len() == 0 {
		return nil
	}
	r := s.run(ctx, text.String())
	switch {
	case r.Err != nil:
		return r.Err
	case cwd == "":
		return nil
	}
	if status, ok := tested(r); !ok || status != 0 {
		s.old = ""
		return &transport.Error{Code: "cmd.cwd", Message: fmt.Sprintf("script: directory %q can't be entered on the machine%s", cwd, said(r))}
	}
	return nil
}

// leave undoes what enter did.
func (s *shell) leave(ctx context.Context) {
	var text strings.Builder
	for _, name := range s.env {
		fmt.Fprintf(&text, "case ${_gwk_%[1]s-} in e) export %[1]s=\"$_gwv_%[1]s\";; p) unset %[1]s; %[1]s=$_gwv_%[1]s;; u) unset %[1]s;; esac\nunset _gwk_%[1]s _gwv_%[1]s\n", name)
	}
	if s.old != "" {
		fmt.Fprintf(&text, "if cd -- %s; then :; fi\n", directory(s.old))
	}
	if text.Len() > 0 && !s.ended() {
		s.run(ctx, text.String())
	}
	s.env, s.old = nil, ""
}

// ended reports whether the shell has ended.
func (s *shell) ended() bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

// test runs a test and returns whether its status is 0.
func (s *shell) test(ctx context.Context, what, text string) (bool, error) {
	r := s.run(ctx, "if eval "+session.Quote(text)+"\nthen echo '\n_gwt:0'; else echo \"\n_gwt:$?\"; fi")
	if r.Err != nil {
		return false, r.Err
	}
	status, ok := tested(r)
	if !ok {
		status = max(r.ExitCode, 126)
	}
	// 126 and 127 are no program that could be run (POSIX XCU 2.8.2).
	if status == 126 || status == 127 || !ok {
		return false, &transport.Error{
			Code: "script.invalid", Message: fmt.Sprintf("script: %s: the test could not be run: status %d%s", what, status, said(r)),
			Hint: "a test ends with 0 for yes, and another status for no",
		}
	}
	return status == 0, nil
}

// tested returns the status that a text of the runner's own has printed last.
func tested(r gateway.Result) (int, bool) {
	out := strings.TrimRight(string(r.Stdout), "\n")
	_, digits, ok := strings.Cut(out[strings.LastIndexByte(out, '\n')+1:], "_gwt:")
	status, err := strconv.Atoi(digits)
	return status, ok && err == nil
}

// said quotes the first line of what a command said about its failure.
func said(r gateway.Result) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(r.Stderr)), "\n")
	if line == "" {
		return ""
	}
	return ": " + line
}

// directory returns a directory as a word: "~" is the home, and one that is
// relative looks like no option and is not searched for in CDPATH.
func directory(dir string) string {
	switch {
	case dir == "~":
		return `"$HOME"`
	case strings.HasPrefix(dir, "~/"):
		return `"$HOME"` + session.Quote(dir[1:])
	case path.IsAbs(dir):
		return session.Quote(dir)
	}
	return session.Quote("./" + dir)
}
