package script

import (
	"strings"
	"unicode"

	"gateway/internal/phrase"
)

// Plain returns text as it can stand in any document: valid UTF-8 without
// control characters, but for newlines and tabs.
func Plain(b []byte) string {
	text := strings.ToValidUTF8(string(b), "\uFFFD")
	text = phrase.Sequences.ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return '\n'
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == 0xFFFE, r == 0xFFFF:
			return -1
		}
		return r
	}, text)
}
