package phrase

import (
	"regexp"
	"strings"
	"unicode"
)

// Sequences matches what terminals obey: CSI, OSC and the other strings, and
// escapes of two or three bytes (ECMA-48 sections 5.3 to 5.6).
var Sequences = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[ -/]*[0-~])")

// IsControl reports whether a character does not show, but acts on a terminal or turns
// around what is written.
func IsControl(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// Plain returns text as it can stand in any document: valid UTF-8 without
// control characters, but for newlines and tabs.
func Plain[T string | []byte](text T) string {
	s := strings.ToValidUTF8(string(text), "\uFFFD")
	s = Sequences.ReplaceAllString(s, "")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return '\n'
		case IsControl(r), r == 0xFFFE, r == 0xFFFF:
			return -1
		}
		return r
	}, s)
}
