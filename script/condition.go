package script

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gateway/gateway"
	"gateway/session"
)

// A condition is a test of a step that there is.
type condition struct {
	key, text string
	at        Place
}

func (s *Step) conditions() (all []condition) {
	for _, c := range []condition{{"when", s.When, s.whenAt}, {"until", s.Until, s.untilAt}} {
		if c.text != "" {
			all = append(all, c)
		}
	}
	return all
}

// whole is a test as one command: a shell reads all of it before it runs any, and no
// status comes of one that it can't read.
func whole(text string) string {
	return "if {\n" + text + "\n}\nthen _gwy=0; else _gwy=$?; fi"
}

// misread says why a shell can't read a test as far as the parser knows it, without a
// word of what whole puts around it if that can be; empty if it can read it.
func misread(text, shell string) string {
	why := gateway.Unreadable(whole(text), shell)
	if why == "" {
		return ""
	}
	return cmp.Or(gateway.Unreadable(text, shell), why)
}

// unread is the error of a test that can't be read.
func (s *Script) unread(step string, c condition, why string) *Error {
	return s.wrong(c.at, "a test is one or more commands, the last of which ends with 0 for yes",
		"step %s: %s: the test can't be read: %s", step, c.key, why)
}

// unreadable says what of a step's tests a shell can't read, as [gateway.Unsplit] does
// of its text.
func (s *Script) unreadable(step *Step, name, shell string) (warnings []string) {
	for _, c := range step.conditions() {
		if why := misread(c.text, shell); why != "" {
			warnings = append(warnings, s.unread(name, c, why).Error())
		}
	}
	return warnings
}

// readable has the shell itself read a test that the parser can't, without running any
// of it. Of what the parser reads, only the run can tell: a step may change how the
// shell reads, as shopt does.
func (s *shell) readable(ctx context.Context, text string) (why string, err error) {
	path := s.Describe().Shell
	if why = misread(text, path); why == "" {
		return "", nil
	}
	program := session.Quote(path)
	if gateway.ShellName(path) == "busybox" {
		program += " sh"
	}
	r := s.run(ctx, program+" -n -c "+session.Quote(whole(text)))
	switch {
	case r.Err != nil:
		return "", about("read the test", r.Err)
	case r.ExitCode == 126, r.ExitCode == 127: // it can't be asked
		return "", nil
	case r.ExitCode == 0 && !complains(r.Stderr):
		return "", nil
	}
	return why, nil
}

// complains reports whether a shell that only reads says more than warnings: bash has
// the status 0 where it can't read what stands in [[ ]].
func complains(stderr []byte) bool {
	for line := range bytes.Lines(stderr) {
		if len(bytes.TrimSpace(line)) > 0 && !bytes.Contains(line, []byte("warning: ")) {
			return true
		}
	}
	return false
}

// test runs a test of a step and returns whether its status is 0.
func (s *shell) test(ctx context.Context, what, text string, timeout time.Duration) (bool, error) {
	// In mksh, set -e holds in eval.
	r := s.command(ctx, gateway.Command{Text: "_gwy=; if eval " + session.Quote(whole(text)) + "\nthen :; fi; echo \"\n_gwt:$_gwy\"", Timeout: timeout})
	if r.Err != nil {
		return false, about(what, r.Err)
	}
	status, ok := tested(r)
	why := said(r)
	if ok {
		why = fmt.Sprintf(": status %d%s", status, why)
	}
	// 126 and 127 are no program that could be run (POSIX XCU 2.8.2).
	if status == 126 || status == 127 || !ok {
		return false, invalid("a test ends with 0 for yes, and another status for no", "%s: the test could not be run%s", what, why)
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
