package session

import (
	"bytes"
	"regexp"
	"strings"
)

// An echo takes out of what the terminal shows what is the engine's own: the
// frame, which set -v or a terminal's echo repeats, and its traces. The zero
// value takes out nothing. It is not safe for concurrent use.
type echo struct {
	typed  string // the frame
	traced bool   // the shell may show what it runs
	seen   bool   // the frame has been shown
	held   []byte // what may be the beginning of one of its lines
}

// minEcho is how much of a line must have come before the rest is waited for: a
// prompt may end as a frame begins, with a blank.
const minEcho = 5

// without returns what is not the engine's own of b and of what was held.
func (e *echo) without(b []byte) []byte {
	if len(e.held) > 0 {
		b, e.held = append(e.held, b...), nil
	}
	keep := 0
	for line := range strings.Lines(e.typed) {
		line = strings.TrimSuffix(line, "\n")
		if before, after, found := bytes.Cut(b, []byte(line)); found {
			after = bytes.TrimPrefix(bytes.TrimPrefix(after, []byte("\r")), []byte("\n"))
			b = append(bytes.Clone(before), after...)
			e.seen = true
		}
		if n := overlap(b, line); n >= minEcho {
			keep = max(keep, n)
		}
	}
	if e.traced {
		keep = max(keep, len(beginsTrace.Find(b))) // dash writes a line in pieces
	}
	e.held = bytes.Clone(b[len(b)-keep:])
	if b = b[:len(b)-keep]; e.traced || bytes.Contains(b, []byte("_gw")) {
		return withoutTraces(b)
	}
	return b
}

// traceOfFrame matches the lines that a frame leaves on the terminal under set
// -x and set -v.
var traceOfFrame = regexp.MustCompile(`_gw[ns]?=|\\036[A-Z][0-9a-f]{16}:|^\+.* (PS2|PROMPT_COMMAND)=('')?\s*$|^\++ ?(:|/dev/null)?\s*$|^\+ 1>\| /dev/null 2>& 1\s*$`)

// beginsTrace matches what may become such a line.
var beginsTrace = regexp.MustCompile(`(?m)^\+\S{0,40} ?((PS2|PROMPT_COMMAND|1>|:|/dev)[^\n]{0,40})?\z`)

// withoutTraces takes those lines out.
func withoutTraces(b []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(b) {
		if !traceOfFrame.Match(line) {
			kept = append(kept, line...)
		}
	}
	return kept
}
