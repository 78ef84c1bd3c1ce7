package main

import (
	"bytes"
	"slices"
)

// maxPending is how long a line may be before it is shown in pieces.
const maxPending = 64 << 10

// lines cuts one stream of one host into whole lines with a label in front. A
// carriage return ends a line, too: what it would overwrite is another host's.
type lines struct {
	label    []byte
	terminal bool // it shows them

	pending  []byte
	returned bool // a carriage return stands behind pending
}

// take returns the lines that are whole with b.
func (l *lines) take(b []byte) []byte {
	var whole []byte
	for len(b) > 0 {
		if l.returned && b[0] != '\n' && b[0] != '\r' {
			whole = l.flush(whole)
		}
		end := bytes.IndexAny(b, "\r\n")
		if end < 0 {
			end = len(b)
		}
		if room := maxPending - len(l.pending); end > room {
			l.pending = append(l.pending, b[:room]...)
			whole, b = l.part(whole), b[room:]
			continue
		}
		l.pending = append(l.pending, b[:end]...)
		if b = b[end:]; len(b) == 0 {
			break
		}
		if b[0] == '\n' {
			whole = l.line(whole)
		} else {
			l.returned = true
		}
		b = b[1:]
	}
	return whole
}

// rest returns the last line if it has not ended.
func (l *lines) rest() []byte { return l.flush(nil) }

// flush appends the pending line if there is one.
func (l *lines) flush(to []byte) []byte {
	if len(l.pending) == 0 {
		l.returned = false
		return to
	}
	return l.line(to)
}

// part appends what is pending of a line that is too long, but for the character or
// the sequence that it ends within: that begins the next piece.
func (l *lines) part(to []byte) []byte {
	cut := len(l.pending) - incomplete(l.pending)
	next := slices.Clone(l.pending[cut:])
	l.pending = l.pending[:cut]
	to = l.line(to)
	l.pending = append(l.pending, next...)
	return to
}

// line appends the pending line.
func (l *lines) line(to []byte) []byte {
	text := l.pending
	if l.terminal {
		text = sanitize(text)
	}
	to = append(append(append(to, l.label...), text...), '\n')
	l.pending, l.returned = l.pending[:0], false
	return to
}
