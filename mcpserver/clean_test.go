package mcpserver

import (
	"strings"
	"testing"
	"unicode/utf8"

	"gateway/daemon/api"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ name, in, want, rest string }{
		{"text", "a\nb", "a\nb", ""},
		{"colours", "\x1b[1;38;5;10mred\x1b[0m", "red", ""},
		{"progress", "10%\r20%\r100%\n", "100%\n", ""},
		{"a shorter state", "downloading\rdone\x1b[K\n", "done\n", ""},
		{"a shorter state, not erased", "12345\rab\n", "ab345\n", ""},
		{"erase the line", "secret\x1b[2K\rx\n", "x\n", ""},
		{"end of a line on a terminal", "a\r\nb\r\n", "a\nb\n", ""},
		{"backspaces", "abc\b\b\bX\n", "Xbc\n", ""},
		{"spinner", "|\b/\b-\bok\n", "ok\n", ""},
		{"columns", "ab\x1b[5Gc\x1b[2Dd\n", "ab dc\n", ""},
		{"title", "\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b", "ab", ""},
		{"queries", "a\x1b[6n\x1b[?2004h\x1bP+q544e\x1b\\b", "ab", ""},
		{"character sets", "\x1b(Ba\x1b=b", "ab", ""},
		{"controls", "a\x00\x07\x0e\x7fb", "ab", ""},
		{"C1 controls", "a\u009bb", "ab", ""},
		{"no UTF-8", "a\xffb", "a\ufffdb", ""},
		{"half a character", "a\xc3", "a", "\xc3"},
		{"half an escape", "a\x1b[3", "a", "\x1b[3"},
		{"an escape that has begun", "a\x1b", "a", "\x1b"},
		{"half a title", "a\x1b]0;tit", "a", "\x1b]0;tit"},
		{"a carriage return at the end", "a\r", "a", "\r"},
		{"an escape that is none", "a\x1b[3\nb", "a\nb", ""},
		{"a far column", "\x1b[99999999999999Gx", strings.Repeat(" ", 1<<12) + "x", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, rest, valid := clean([]byte(c.in))
			if got != c.want || string(rest) != c.rest || valid == (c.name == "no UTF-8") {
				t.Errorf("clean(%q) = %q, %q, %v, want %q, %q", c.in, got, rest, valid, c.want, c.rest)
			}
		})
	}
}

// However long what it begins with, a sequence that never ends is let go.
func TestCleanLetsGo(t *testing.T) {
	text, rest, _ := clean([]byte("\x1b]" + strings.Repeat("x", 2*maxUnfinished)))
	if len(rest) > maxUnfinished || len(text) < maxUnfinished {
		t.Errorf("%d bytes of text, %d of the rest", len(text), len(rest))
	}
}

// However it is written, a text does not become many times as long.
func TestCleanIsBounded(t *testing.T) {
	const size = 64 << 10
	for _, piece := range []string{"\x1b[4096Cx\n", "\x1b[4096Gx\r", "\x1b[4000Gx\x1b[2K", "\x1b[9C\n", "x\x1b[99999999C", "\xff"} {
		b := []byte(strings.Repeat(piece, size/len(piece)))
		var c cleaner
		text, _, _ := c.clean(b)
		if most := widest + expansion*len(b); len(text) > most+len(b) || c.padded > most {
			t.Errorf("%d bytes of %q become %d, with %d blanks put there", len(b), piece, len(text), c.padded)
		}
	}
	// Nor do the lines that grep finds.
	var pieces []api.Piece
	for range size / 9 {
		pieces = append(pieces, api.Piece{Data: []byte("\x1b[4096Cx\n")})
	}
	if text := new(call).lines(pieces); len(text) > widest+2*expansion*size {
		t.Errorf("%d lines become %d bytes", len(pieces), len(text))
	}
}

// Columns of a table stay where they are, in however many lines.
func TestCleanKeepsColumns(t *testing.T) {
	const lines = 10000
	b := strings.Repeat("Starting \x1b[32mnginx\x1b[0m\x1b[60G[ \x1b[32mOK\x1b[0m ]\n", lines)
	want := strings.Repeat("Starting nginx"+strings.Repeat(" ", 45)+"[ OK ]\n", lines)
	if got := plain(b); got != want {
		t.Errorf("the last line is %q", got[max(0, len(got)-80):])
	}
}

// The end of a string is looked for once in each byte, whether there is one or not.
func TestCleanLooksOnce(t *testing.T) {
	for _, piece := range []string{"\x1b]", "\x1b]x\a", "\x1bPx\x1b\\", "\x1b^\x1b\\\x1b_\a", "\x1bX\x1b"} {
		b := []byte(strings.Repeat(piece, 4096))
		var c cleaner
		if c.clean(b); c.looked > len(b) {
			t.Errorf("%d bytes of %q are looked at %d times", len(b), piece, c.looked)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"a\r\nb", "\x1b[31m\xc3\xa4\x1b[0m", "\x1b]0;x\x07y", "10%\r20%\b\b", "\x1b[9C\x1b[K"} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		text, rest, _ := clean(b)
		if !utf8.ValidString(text) || strings.ContainsAny(text, "\x1b\r\b\x00\x07\x7f") {
			t.Errorf("clean(%q) = %q", b, text)
		}
		if len(rest) > maxUnfinished || !strings.HasSuffix(string(b), string(rest)) {
			t.Errorf("clean(%q) leaves %q", b, rest)
		}
		// What is on finished lines does not depend on how it was cut.
		if cut < 0 || cut > len(b) {
			return
		}
		first, _, _ := clean(b[:cut])
		if i := strings.LastIndexByte(first, '\n'); !strings.HasPrefix(text, first[:i+1]) {
			t.Errorf("clean(%q) = %q and %q, but %q cut at %d", b, text, rest, first, cut)
		}
	})
}
