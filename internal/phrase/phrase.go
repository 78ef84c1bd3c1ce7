// Package phrase has what several packages do to a text.
package phrase

import (
	"errors"
	"io/fs"
	"os"
	"unicode/utf8"
)

// Brief returns the first characters of s, at most so many, and an ellipsis in
// the place of the last one if there are more. A byte that is no UTF-8 counts as
// one.
func Brief(s string, most int) string {
	if len(s) <= most {
		return s
	}
	last := 0 // where the last character begins that there is room for
	for at, n := 0, 0; at < len(s); n++ {
		if n == most {
			return s[:last] + "…"
		}
		last = at
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return s
}

// End returns the last characters of s, at most so many, and an ellipsis in the
// place of the first one if there are more. It counts as [Brief] does.
func End(s string, most int) string {
	first := len(s) // where the first character begins that there is room for
	for at, n := len(s), 0; at > 0; n++ {
		if n == most {
			return "…" + s[first:]
		}
		first = at
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return s
}

// Margin is how many bytes beyond a cut [Ends] looks at.
const Margin = utf8.UTFMax - 1

// Ends returns the first head and the last tail bytes of a text that is longer
// than both. Where a cut would leave a part of a character, that is left out,
// too; bytes that are no UTF-8 stay. begin and end are the text's beginning and
// its end with Margin bytes more than wanted, or, both, all of it.
func Ends(begin, end []byte, head, tail int) (first, last []byte) {
	at := len(end) - tail
	left, _ := Halves(begin[:head], begin[head:])
	_, right := Halves(end[:at], end[at:])
	return begin[:head-left], end[at+right:]
}

// Halves returns how many bytes of a character are on either side of a cut.
func Halves(before, after []byte) (left, right int) {
	for n := 1; n <= min(Margin, len(before)); n++ {
		if !utf8.RuneStart(before[len(before)-n]) {
			continue
		}
		around := append(make([]byte, 0, 2*Margin), before[len(before)-n:]...)
		if _, size := utf8.DecodeRune(append(around, after[:min(Margin, len(after))]...)); size > n {
			return n, size - n
		}
		break
	}
	return 0, 0
}

// Unfinished returns how many bytes at the end of b may be the beginning of a
// character.
func Unfinished(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}

// WithoutPath returns the error of a file without the operation and the path, or paths, for
// a message that has them already.
func WithoutPath(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		return link.Err
	}
	return err
}

// Unique returns the elements without repetitions, in order, as a slice of its
// own.
func Unique[T comparable](words []T) []T {
	seen := make(map[T]bool, len(words))
	var once []T
	for _, word := range words {
		if !seen[word] {
			seen[word] = true
			once = append(once, word)
		}
	}
	return once
}
