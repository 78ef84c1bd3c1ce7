package session

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// An echo takes out of what the terminal shows what is the engine's own: the
// frame, which set -v or a terminal's echo repeats, and its traces. The zero
// value takes out nothing. It is not safe for concurrent use.
//
// The frame comes in one piece, before anything of the command: a line of the
// text, which is in it, may well be what the command says.
type echo struct {
	typed  string // the frame, as far as it has not been shown
	traced bool   // the shell may show what it runs
	seen   bool   // the frame's first line has been shown, which has a nonce in it
	drawn  bool   // something of it has, in a form that is not known: by a shell that edits lines
	traces bool   // the shell has shown what it runs of it
	held   []byte // what may be the beginning of that line, or of a trace
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
	if e.seen {
		b = b[e.follow(b):]
	} else {
		b, keep = e.find(b)
	}
	if e.traced {
		keep = max(keep, beginsTrace(b))
	}
	e.held = bytes.Clone(b[len(b)-keep:])
	b = b[:len(b)-keep]
	ours := bytes.Contains(b, []byte("_gw"))
	if ours && tracesFrame.Match(b) {
		e.traces, e.traced = true, true // what is yet to come of the trace may name nothing of ours
	}
	e.drawn = e.drawn || ours && !e.traced
	if e.traced || ours {
		return withoutTraces(b)
	}
	return b
}

// find takes the frame out from its first line on, which set -v shows as it is and a
// terminal's echo with carets (ECHOCTL). keep is how much of the end may begin that line.
func (e *echo) find(b []byte) (rest []byte, keep int) {
	for _, typed := range e.shapes() {
		first, _, _ := strings.Cut(typed, "\n")
		if at := bytes.Index(b, []byte(first)); first != "" && at >= 0 {
			e.seen, e.typed = true, typed
			return slices.Concat(b[:at], b[at+e.follow(b[at:]):]), 0
		}
		if n := overlap(b, first); n >= minEcho {
			keep = max(keep, n)
		}
	}
	return b, keep
}

// shapes are what the terminal may make of the frame.
func (e *echo) shapes() []string {
	return []string{e.typed, strings.ReplaceAll(e.typed, "\x1e", "^^")}
}

// rest returns what was held and is not the engine's own, when the command is over: its marks
// may overtake the end of the frame's echo, which the terminal brings. That is yet to come.
func (e *echo) rest() []byte {
	b := e.held
	e.held = nil
	if e.seen {
		return b
	}
	for _, typed := range slices.Backward(e.shapes()) { // where both will do, it is a terminal's
		first, _, _ := strings.Cut(typed, "\n")
		if n := overlap(b, first); n >= minEcho {
			e.seen, e.typed = true, typed[n:]
			return b[:len(b)-n]
		}
	}
	return b
}

// follow returns how many bytes at the beginning of b are more of the frame.
func (e *echo) follow(b []byte) int {
	for i, c := range b {
		switch {
		case e.typed == "":
			return i
		case c == e.typed[0]:
			e.typed = e.typed[1:]
		case c == '^' && e.typed[0] == '\n': // in a mode without lines
			e.typed = "J" + e.typed[1:]
		case c != '\r': // something came between
			e.typed = ""
			return i
		}
	}
	return len(b)
}

// traceOfFrame matches the lines that a frame leaves on the terminal under set
// -x and set -v.
var traceOfFrame = regexp.MustCompile(`_gw[ns]?=|\\036[A-Z][0-9a-f]{16}:|^\+.* (PS2|PROMPT_COMMAND)=('')?\s*$|^\++ ?(:|/dev/null)?\s*$|^\+ 1>\| /dev/null 2>& 1\s*$`)

// tracesFrame matches what a shell shows of a frame that it runs.
var tracesFrame = regexp.MustCompile(`(?m)^\+.*(_gw|\\036[A-Z][0-9a-f]{16})`)

// traceHead matches what a shell puts before what it traces.
var traceHead = regexp.MustCompile(`^\+\S{0,40} ?`)

// beginsTrace returns how many bytes at the end of b may become such a line: a terminal may
// hand it on in any pieces.
func beginsTrace(b []byte) int {
	line := b[bytes.LastIndexByte(b, '\n')+1:]
	head := len(traceHead.Find(line))
	if head == 0 || len(line) > 80 {
		return 0
	}
	shown := string(line[head:])
	for _, ours := range []string{"PS2=", "PROMPT_COMMAND=", "_gw", "1>| /dev/null", ":", "/dev/null"} {
		if strings.HasPrefix(shown, ours) || strings.HasPrefix(ours, shown) {
			return len(line)
		}
	}
	return 0
}

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

// shard matches what an interrupt may leave of a mark on the terminal. bash writes
// there what its printf had made of one when the interrupt came, and a new line;
// yash runs the beginning of a frame whose end is thrown away, and its prompt has
// only so much of the nonce.
var shard = regexp.MustCompile(`\x1e(?:P([0-9a-f]+):[0-9]*:#\x1e([0-9a-f]+);|(?:E([0-9a-f]*)(:[^\n]*)?)?(\r?\n|\z))`)

// torn matches what shells, mksh and yash above all, say of a frame of which an interrupt has
// left but the beginning. What they say of a text goes to its stderr.
var torn = regexp.MustCompile("(?m)^((\\S+: )+([sS]yntax|parse) error.*|\\S+: no such command .*|\\.: cannot .*)\r?\n")

// pressedKeys matches what a terminal that echoes shows of the keys that end a command.
var pressedKeys = regexp.MustCompile(`(\^[C\\])+`)

// telling is how many digits of a nonce no program prints by chance.
const telling = 4

// withoutShards takes out what an interrupt has left of the marks with a nonce.
// From what a program writes, which is exact, only what can't be its own.
func withoutShards(b []byte, nonce string, exact bool) []byte {
	if !exact && bytes.Contains(b, []byte(": ")) { // as every line that is torn has: to match takes long
		b = torn.ReplaceAll(b, nil)
	}
	if bytes.IndexByte(b, rs) < 0 {
		return b
	}
	return shard.ReplaceAllFunc(b, func(found []byte) []byte {
		m := shard.FindSubmatch(found)
		prompt, end, payload, newline := string(m[1]), string(m[3]), m[4], m[5]
		switch {
		case prompt != string(m[2]), !strings.HasPrefix(nonce, prompt+end),
			len(payload) > 0 && end != nonce, exact && len(prompt+end) < telling:
			return found
		}
		return newline
	})
}
