package api

import (
	"bytes"
	"iter"
	"regexp"

	"gateway/internal/phrase"
)

// An Expression finds lines by a regular expression: as they are, or else as they
// are read, without colours and whatever else a terminal obeys, and what was written
// over in them, as by a progress bar, for itself.
type Expression struct{ pattern *regexp.Regexp }

// Compile returns an Expression; the error says what is wrong with it.
func Compile(pattern string) (Expression, error) {
	compiled, err := regexp.Compile(pattern)
	return Expression{compiled}, err
}

// isDrawn reports whether a terminal shows a line as something else.
func isDrawn(line []byte) bool { return bytes.ContainsAny(line, "\x1b\r") }

// read returns a line as it is read.
func read(line []byte) []byte { return phrase.Sequences.ReplaceAllLiteral(line, nil) }

// states are what a line is, and what it was from one carriage return to the next,
// each behind where it begins.
func states(line []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		begin, over := 0, !yield(0, line) || bytes.IndexByte(line, '\r') < 0
		for state := range bytes.SplitSeq(line, []byte("\r")) {
			if over || len(state) > 0 && !yield(begin, state) {
				return
			}
			begin += len(state) + 1
		}
	}
}

// FindIndex returns where in a line the first match begins and ends; nil: there is
// none.
func (e Expression) FindIndex(line []byte) []int {
	at := e.pattern.FindIndex(line)
	if at != nil || !isDrawn(line) {
		return at
	}
	at = e.find(read(line))
	for _, s := range phrase.Sequences.FindAllIndex(line, -1) {
		for i := range at {
			if s[0] <= at[i] { // it stands in front
				at[i] += s[1] - s[0]
			}
		}
	}
	return at
}

func (e Expression) find(line []byte) []int {
	for begin, state := range states(line) {
		if at := e.pattern.FindIndex(state); at != nil {
			return []int{begin + at[0], begin + at[1]}
		}
	}
	return nil
}

// Behind reports whether a line matches with what has come behind its first bytes,
// so many, which are known. A match that is empty needs no more than that something
// has come.
func (e Expression) Behind(line []byte, known int) bool {
	if known == 0 {
		return e.FindIndex(line) != nil
	}
	return e.behind(line, known) || isDrawn(line) && e.behind(read(line), len(read(line[:known])))
}

func (e Expression) behind(line []byte, known int) bool {
	for begin, state := range states(line) {
		for _, at := range e.pattern.FindAllIndex(state, -1) {
			if begin+at[1] > known || at[0] == at[1] {
				return true
			}
		}
	}
	return false
}
