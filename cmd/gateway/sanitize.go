package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"gateway/internal/phrase"
)

// visible replaces what would act on the terminal instead of showing there:
// messages and prompts may come from a machine.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case phrase.IsControl(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

var (
	controls = regexp.MustCompile(`[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x{9f}]`)
	colors   = regexp.MustCompile(`\x1b(\[[0-9;:]*m)?`)
	lineEnds = regexp.MustCompile(`\r*\n|\r`)
)

// sanitize leaves of what acts on a terminal the colours, and ends them.
func sanitize(line []byte) []byte {
	line, colored := onlyColors(line)
	if colored {
		line = append(line, noColor...)
	}
	return line
}

const noColor = "\x1b[0m"

func onlyColors(line []byte) (left []byte, colored bool) {
	if bytes.IndexFunc(line, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }) < 0 {
		return line, false
	}
	line = phrase.Sequences.ReplaceAllFunc(line, func(s []byte) []byte {
		if colors.FindString(string(s)) == string(s) {
			return s
		}
		return nil
	})
	line = colors.ReplaceAllFunc(line, func(s []byte) []byte {
		if len(s) == 1 {
			return nil // the beginning of a sequence that has no end
		}
		colored = true
		return s
	})
	return controls.ReplaceAll(line, nil), colored
}

// maxSequence is how much of a sequence without an end is waited for.
const maxSequence = 4096

// A sanitizer does that with a stream that comes in pieces of any size, for a terminal
// that shows what others have been shown before: nobody is there now who asked the
// terminal for an answer, or drew on it. A carriage return begins a line, as with
// [lines]. The zero value is ready.
type sanitizer struct {
	rest    []byte // of a sequence, a character or a line's end
	colored bool
}

func (s *sanitizer) take(b []byte) []byte {
	b = slices.Concat(s.rest, b)
	whole := len(b) - incomplete(b)
	s.rest = slices.Clone(b[whole:])
	return s.sanitize(b[:whole])
}

func (s *sanitizer) sanitize(b []byte) []byte {
	b, colored := onlyColors(lineEnds.ReplaceAll(b, []byte("\n")))
	s.colored = s.colored || colored
	return b
}

// flush returns what is left at the end, which ends the colours.
func (s *sanitizer) flush() []byte {
	b := s.sanitize(s.rest)
	if s.rest = nil; s.colored {
		b = append(b, noColor...)
	}
	return b
}

// begun matches a sequence at the end whose own end has not come; see [phrase.Sequences].
var begun = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*|[\\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)$")

// incomplete returns how many bytes at the end of b say nothing without those that come
// next.
func incomplete(b []byte) int {
	tail := b[max(0, len(b)-maxSequence):]
	if at := begun.FindIndex(tail); at != nil {
		return len(tail) - at[0]
	}
	if bytes.HasSuffix(b, []byte("\r")) {
		return 1
	}
	return phrase.Unfinished(b)
}
