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

func (p Place) String() string { return Show(p.Selector, p.Path) }

// ParsePlace parses PATH or SELECTOR:PATH. It is the latter if a colon stands
// before any slash: ./a:b is a file here. The colons of the terms tag:NAME and
// run:ID belong to the selector, and so does a slash behind run:. On a host, ~
// is the home directory, as is the empty path. The error's code is usage.
func ParsePlace(s string) (Place, error) {
	begin := 0 // of the term
	inRun := false
	for i := range len(s) {
		switch s[i] {
		case ',', '!', '&', ' ':
			begin, inRun = i+1, false
		case '/':
			if !inRun {
				return Place{Path: s}, nil
			}
		case ':':
			switch term := s[begin:i]; {
			case term == "tag":
				if !strings.Contains(s[i+1:], ":") {
					return Place{}, noPath(s)
				}
				begin = i + 1
				continue
			case term == "run":
				if !strings.Contains(s[i+1:], ":") {
					return Place{}, noPath(s)
				}
				inRun, begin = true, i+1
				continue
			}
			if i == 0 {
				return Place{}, &transport.Error{Code: "usage", Message: printable(s) + ": no host in front of the colon", Hint: "./" + s + " is a file here"}
			}
			return Place{s[:i], homePath(s[i+1:])}, nil
		}
	}
	return Place{Path: s}, nil
}

func noPath(s string) error {
	return &transport.Error{Code: "usage", Message: printable(s) + " is a selector without a path", Hint: s + ":PATH, or ./" + s + " for a file here"}
}

// homePath returns a path of a host without the ~ that stands for the home.
func homePath(path string) string {
	if path == "~" {
		return ""
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return strings.TrimLeft(rest, "/")
	}
	return path
}
