package transfer

import (
	"strings"

	"gateway/transport"
)

// A Place is a path on this machine, or on the hosts that a selector picks.
type Place struct {
	// Selector is empty for this machine.
	Selector string
	// Path is empty for the home directory of a host.
	Path string
}

// Remote reports whether a host is named.
func (p Place) Remote() bool { return p.Selector != "" }

// ParsePlace parses PATH or SELECTOR:PATH. It is the latter if a colon stands
// before any slash: ./a:b is a file here. The colons of the terms tag:NAME and
// run:ID belong to the selector, and so do slashes behind them. On a host, ~ is
// the home directory, as is the empty path. The error's code is usage.
func ParsePlace(s string) (Place, error) {
	begin := 0 // of the term
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ',', '!', '&', ' ':
			begin = i + 1
		case '/':
			return Place{Path: s}, nil
		case ':':
			if i == 0 {
				return Place{}, &transport.Error{Code: "usage", Message: printable(s) + ": no host in front of the colon", Hint: "./" + s + " is a file here"}
			}
			kind := s[begin:i]
			if kind != "tag" && kind != "run" {
				return Place{s[:i], HomePath(s[i+1:])}, nil
			}
			name := i + 1
			colon, end, err := endOfTerm(s, name, kind == "tag")
			if err != nil {
				return Place{}, err
			}
			if colon >= 0 {
				return Place{s[:colon], HomePath(s[colon+1:])}, nil
			}
			i = end - 1
		}
	}
	if strings.HasPrefix(s[begin:], "tag:") || strings.HasPrefix(s[begin:], "run:") {
		return Place{}, noPath(s)
	}
	return Place{Path: s}, nil
}

// endOfTerm finds the colon behind the name of a tag or a run, which begins at
// from. Without one, colon is -1, and end is where the term ends. A tag may have
// colons of its own, and so may those behind it: then what is behind the right one
// has to look like a path.
func endOfTerm(s string, from int, colons bool) (colon, end int, err error) {
	end = len(s)
	if n := strings.IndexAny(s[from:], ",!& "); n >= 0 {
		end = from + n
	}
	first := strings.IndexByte(s[from:end], ':')
	if first < 0 {
		return -1, end, nil
	}
	first += from
	if !colons || strings.Count(s[from:], ":") == 1 {
		return first, end, nil
	}
	for i := first; i < len(s); i++ {
		if s[i] == ':' && looksLikePath(s[i+1:]) {
			return i, end, nil
		}
	}
	return 0, 0, &transport.Error{
		Code: "usage", Message: printable(s) + ": which colon ends the selector? A tag may have some",
		Hint: "begin the path with / or ./ or ~",
	}
}

// looksLikePath reports whether s can't be taken for more of a tag.
func looksLikePath(s string) bool {
	for _, begin := range []string{"/", "~", "./", "../"} {
		if strings.HasPrefix(s, begin) {
			return true
		}
	}
	return s == ""
}

func noPath(s string) error {
	return &transport.Error{Code: "usage", Message: printable(s) + " is a selector without a path", Hint: s + ":PATH, or ./" + s + " for a file here"}
}

// HomePath returns a path of a host without the ~ that stands for the home.
func HomePath(path string) string {
	if path == "~" {
		return ""
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return strings.TrimLeft(rest, "/")
	}
	return path
}
