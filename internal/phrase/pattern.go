package phrase

import (
	"path"
	"strings"
)

// Glob is [path.Match] where, as in a shell, [!x] is what [^x] is. A class such as
// [[:digit:]] is no pattern: it would be read as those letters.
func Glob(pattern, name string) (bool, error) {
	p := []byte(pattern)
	within := false // of the brackets
	for i := 0; i < len(p); i++ {
		switch {
		case p[i] == '\\':
			i++
		case within && p[i] == '[' && i+1 < len(p) && p[i+1] == ':':
			return false, path.ErrBadPattern
		case p[i] == ']':
			within = false
		case p[i] == '[' && !within:
			if within = true; i+1 < len(p) && p[i+1] == '!' {
				p[i+1] = '^'
			}
		}
	}
	return path.Match(string(p), name)
}

// Match reports whether all of s matches a pattern of ssh_config(5): * is any
// text and ? any byte. Time is bounded by the product of the lengths: a star that
// failed is never revisited once a later one was reached.
func Match(pattern, s string) bool {
	p, i := 0, 0
	star, resume := -1, 0 // the last star, and where in s its remainder is tried next
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			resume++
			p, i = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// MatchList reports whether s matches one of the patterns of [Match], and none of those
// that are negated by a ! in front.
func MatchList(patterns []string, s string) bool {
	matches := false
	for _, pattern := range patterns {
		negated, not := strings.CutPrefix(pattern, "!")
		if not && Match(negated, s) {
			return false
		}
		matches = matches || !not && Match(pattern, s)
	}
	return matches
}
