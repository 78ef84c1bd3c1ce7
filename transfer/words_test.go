package transfer

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What a machine says stays within a line, and within bounds.
func TestWordsAreQuoted(t *testing.T) {
	for _, words := range []string{
		"stat: odd\n::error file=a::forged\r\n", "\x1b[2J\x07", "\xff\xfe\u2028\u202e", strings.Repeat("\n", 10_000) + "x", strings.Repeat("long ", 10_000), "",
	} {
		text := problem("web1", "look at", "/f", spoken(words)).Error()
		if strings.ContainsAny(text, "\n\r\x1b\x07\u2028\u202e") || !utf8.ValidString(text) || len(text) > 1000 || !strings.HasSuffix(text, `"`) {
			t.Errorf("%.100q gives %q", words, text)
		}
	}
}
