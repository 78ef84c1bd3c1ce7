package hosts

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"gateway/internal/phrase"
)

// Files says which paths of a host an agent's file tool may touch: those that a
// pattern of Allow covers, or all if there is none, without what one of Deny
// covers. See [Covers]; a ~ at the beginning is the account's home.
type Files struct{ Allow, Deny []string }

// Covers reports whether a pattern stands for a path, or for a directory above
// it. Both are absolute. In an element of the pattern, *, ? and [a-z] are as in
// [path.Match], and [!a] is [^a]: none of them stands for a slash, each may stand for a dot.
func Covers(pattern, name string) bool {
	want, have := elements(pattern), elements(name)
	return len(want) <= len(have) && match(want, have)
}

// Above reports whether a path may be that of a directory above what a pattern
// stands for, or is one that the pattern stands for itself.
func Above(pattern, name string) bool {
	want, have := elements(pattern), elements(name)
	return len(have) <= len(want) && match(want[:len(have)], have)
}

// match is about the first elements of a path, one for each of want.
func match(want, have []string) bool {
	for i, element := range want {
		if ok, _ := phrase.Glob(element, have[i]); !ok { // what is no pattern matches nothing
			return false
		}
	}
	return true
}

func elements(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return r == '/' })
}

// pathPattern reads one for [Covers].
func (r *reader) pathPattern(n *yaml.Node) (string, bool) {
	s, ok := r.remotePath(n)
	if !ok {
		return s, false
	}
	for _, element := range elements(s) {
		if element == "." || element == ".." {
			return "", r.fail(n, "name the directory itself", "%s: no . or .. in a pattern", brief(s))
		}
		if _, err := phrase.Glob(element, ""); err != nil {
			return "", r.fail(n, `a [ wants its ], and a class is written as in [0-9]; \[ stands for itself`, "%s is no pattern", brief(s))
		}
	}
	return s, true
}
