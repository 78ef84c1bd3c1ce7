package session

import (
	"strconv"
	"strings"
)

// progress is what the marks of a command have told so far.
type progress struct {
	closed         [3]bool // mark T or E has come on that stream: what follows is not the command's
	ended          [3]bool // mark E has
	stdout, stderr bool    // the end of that stream is here
	joined         bool    // the machine sends stderr to where stdout goes
	begun          bool    // mark B or S has come: its stdin is open, or the terminal is its own
	prompted       bool    // the shell reads commands again
	status         string  // of mark E
	promptStatus   string
	marksSignals   bool // see dialect
	job, cwd       string
}

// take notes a mark of the command, and wakes Run if it has to act. The caller
// holds Session.mu.
func (r *run) take(m mark) {
	p := &r.progress
	switch m.kind {
	case 'B', 'S':
		p.begun = true
	case 'P':
		if !p.prompted { // the prompts of lines typed to bring it back say nothing of the text
			p.prompted, p.promptStatus = true, strings.TrimSuffix(m.payload, ":#")
		}
	case 'T':
		p.closed[m.from] = true
	case 'E':
		p.closed[m.from], p.ended[m.from] = true, true
		if m.payload == "" {
			p.stderr, p.joined = true, m.from == Stdout
			break
		}
		p.stdout = true
		p.status, p.job, p.cwd = parseEnd(m.payload)
	}
	if m.kind != 'T' && m.kind != 'E' || p.stdout && p.stderr {
		r.notice()
	}
}

// notice wakes Run.
func (r *run) notice() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// parseEnd takes the payload of mark E behind stdout apart, which is well
// formed.
func parseEnd(payload string) (status, job, cwd string) {
	fields := strings.SplitN(payload, ":", 3)
	if job = fields[1]; job == "0" { // zsh's word for none
		job = ""
	}
	return fields[0], job, fields[2]
}

// complete reports whether nothing of the command is still to come. A command
// on the terminal has its output before the prompt.
func (r *run) complete(p progress) bool {
	return p.stdout && p.stderr && (p.prompted || !r.command.TTY && r.keeper != nil)
}

// exitCode returns the command's status, or -1. It is what a shell that ends with it
// exits with: the last eight bits of what $? says, but for ksh93's word for a signal.
func (p progress) exitCode() int {
	status := p.status
	if !p.stdout {
		status = p.promptStatus
	}
	code, err := strconv.Atoi(status)
	switch {
	case err != nil:
		return -1
	case p.marksSignals && code == 256:
		return 130
	case p.marksSignals && isSignal(code):
		return 128 + code - 256
	}
	return code & 0xff
}

// isInterrupted reports whether the shell says that a signal met it, in a
// number that no program ends with.
func (p progress) isInterrupted() bool {
	code, err := strconv.Atoi(p.status)
	return err == nil && p.marksSignals && isSignal(code)
}

// isSignal reports whether a status is 256 and the number of a signal that ends a
// program. A function may return greater ones.
func isSignal(status int) bool { return 256 <= status && status < 256+32 }

// verdict returns what the marks say by themselves.
func (p progress) verdict() Verdict {
	switch {
	case notRun[p.status]:
		return NotStarted
	case p.exitCode() < 0, !p.stdout && p.promptStatus == "0":
		return Unknown // nothing leaves its line with 0: it was thrown away, or never ran
	}
	return Exited
}
