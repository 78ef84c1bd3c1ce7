package api

import "regexp"

// Behind reports whether an expression matches a line with what has come behind its
// first bytes, so many, which are known. A match that is empty needs no more than
// that something has come.
func Behind(expression *regexp.Regexp, line []byte, known int) bool {
	if known == 0 {
		return expression.Match(line)
	}
	for _, at := range expression.FindAllIndex(line, -1) {
		if at[1] > known || at[0] == at[1] {
			return true
		}
	}
	return false
}
