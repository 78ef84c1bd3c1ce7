package api

import (
	"bytes"
	"regexp"

	"gateway/internal/phrase"
)

// An Expression finds lines by a regular expression: as they are, or else as they
// are read, without colours and whatever else a terminal obeys.
type Expression struct{ pattern *regexp.Regexp }

// Compile returns an Expression; the error says what is wrong with it.
func Compile(pattern string) (Expression, error) {
	compiled, err := regexp.Compile(pattern)
	return Expression{compiled}, err
}

func hasSequences(line []byte) bool { return bytes.IndexByte(line, 0x1b) >= 0 }

// read returns a line as it is read.
func read(line []byte) []byte { return phrase.Sequences.ReplaceAllLiteral(line, nil) }

// FindIndex returns where in a line the first match begins and ends; nil: there is
// none.
func (e Expression) FindIndex(line []byte) []int {
	at := e.pattern.FindIndex(line)
	if at != nil || !hasSequences(line) {
		return at
	}
	at = e.pattern.FindIndex(read(line))
	for _, s := range phrase.Sequences.FindAllIndex(line, -1) {
		for i := range at {
			if s[0] <= at[i] { // it stands in front
				at[i] += s[1] - s[0]
			}
		}
	}
	return at
}

// Behind reports whether a line matches with what has come behind its first bytes,
// so many, which are known. A match that is empty needs no more than that something
// has come.
func (e Expression) Behind(line []byte, known int) bool {
	if known == 0 {
		return e.FindIndex(line) != nil
	}
	return e.behind(line, known) || hasSequences(line) && e.behind(read(line), len(read(line[:known])))
}

func (e Expression) behind(line []byte, known int) bool {
	for _, at := range e.pattern.FindAllIndex(line, -1) {
		if at[1] > known || at[0] == at[1] {
			return true
		}
	}
	return false
}
