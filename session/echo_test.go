package session

import (
	"slices"
	"strings"
	"testing"
)

func TestWithoutShards(t *testing.T) {
	cut := func(n int) string { return typed('E', "130::/usr")[:n] }
	for _, test := range []struct{ name, said, want, exact string }{
		// The last column is what is left where a program's own bytes are.
		{"what begins every mark", cut(1) + "\n", "\n", cut(1) + "\n"},
		{"half a nonce", cut(9) + "\n", "\n", "\n"},
		{"half a nonce, on a terminal with onlcr", cut(9) + "\r\n", "\r\n", "\r\n"},
		{"half a payload", "a\n" + cut(25) + "\nb\n", "a\n\nb\n", "a\n\nb\n"},
		{"no new line yet", "a" + cut(30), "a", "a"},
		{"a prompt with half a nonce", "a\x1eP012345:0:#\x1e012345;b", "ab", "ab"},
		{"a prompt of somebody else's", "\x1eP12345:0:#\x1e12345;", "\x1eP12345:0:#\x1e12345;", "\x1eP12345:0:#\x1e12345;"},
		{"a prompt that is closed by another nonce", "\x1eP012345:0:#\x1e01234;", "\x1eP012345:0:#\x1e01234;", "\x1eP012345:0:#\x1e01234;"},
		{"a mark of somebody else's", "\x1eEfed\n", "\x1eEfed\n", "\x1eEfed\n"},
		{"a line of a program's", "\x1eE: disk full\n", "\x1eE: disk full\n", "\x1eE: disk full\n"},
		{"a line that begins as the nonce does", "\x1eE0:1\n", "\x1eE0:1\n", "\x1eE0:1\n"},
		{"a separator at the end of a line", "a\x1e\n", "a\n", "a\x1e\n"},
		{"a separator in a text", "a\x1eb\n", "a\x1eb\n", "a\x1eb\n"},
		{"what mksh says of a beginning", "E: mksh: syntax error: unexpected '('\n\n", "\n", "E: mksh: syntax error: unexpected '('\n\n"},
		{"what ksh93 says of one", "a\nksh: syntax error: `}' unexpected\r\nb", "a\nb", "a\nksh: syntax error: `}' unexpected\r\nb"},
		{"what yash says of one", "yash: no such command `_g'\n.: cannot read input: Is a directory\n", "", "yash: no such command `_g'\n.: cannot read input: Is a directory\n"},
		{"a text", "Password: ", "Password: ", "Password: "},
	} {
		if got := string(withoutShards([]byte(test.said), testNonce, false)); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
		if got := string(withoutShards([]byte(test.said), testNonce, true)); got != test.exact {
			t.Errorf("%s, exact: got %q, want %q", test.name, got, test.exact)
		}
	}
}

// TestEchoOfAFrame: in what pieces it comes does not matter, nor how the terminal shows
// its control characters.
func TestEchoOfAFrame(t *testing.T) {
	const frame = " PS2=;PS1='\x1eP${_gwn}#\x1e';\n\\command eval 'x'\n"
	for _, shown := range []string{
		frame, strings.ReplaceAll(frame, "\x1e", "^^"), strings.ReplaceAll(frame, "\n", "\r\n"),
		strings.NewReplacer("\x1e", "^^", "\n", "^J").Replace(frame),
	} {
		said := shown + "a ^^ b\n"
		for size := minEcho; size <= len(said); size++ {
			e := echo{typed: frame}
			var got []byte
			for piece := range slices.Chunk([]byte(said), size) {
				got = append(got, e.without(piece)...)
			}
			if string(got) != "a ^^ b\n" || !e.seen {
				t.Errorf("%q in pieces of %d: got %q", shown, size, got)
			}
		}
	}
}

// TestEchoCutShort: a command may be over when only the beginning of the frame's echo has
// come. The terminal has shown it all the same.
func TestEchoCutShort(t *testing.T) {
	const frame = " PS2=;PS1='\x1eP${_gwn}#\x1e';\\command eval 'x'\n"
	for _, shown := range []string{frame, strings.ReplaceAll(frame, "\x1e", "^^")} {
		for n := minEcho; n < len(shown); n++ {
			v := veil{echo: echo{typed: frame}}
			got := string(v.over(Terminal, []byte("a\n"+shown[:n]))) + string(v.rest(Terminal))
			if got != "a\n" || !v.echoed() {
				t.Errorf("%q: got %q", shown[:n], got)
			}
			due, late := v.due(), shown[n:]
			if followed := due.follow([]byte(late + "b\n")); followed != len(late) && strings.Contains(shown, "^^") {
				t.Errorf("%q: %d bytes of the rest are told, want %d", shown[:n], followed, len(late))
			}
		}
	}
}

// TestTraceThatShowsItself: once the terminal has shown that the shell traces the frame,
// nothing else of that trace is the command's, in whatever pieces a shell writes a line.
func TestTraceThatShowsItself(t *testing.T) {
	for _, pieces := range [][]string{
		{"+ _gwn=0123456789abcdef\n", "+ PS2=\n", "a\n"},
		{"+ _gwn=0123456789abcdef\n", "+", " PS2=", "\n", "a\n"},
	} {
		var e echo
		var got []byte
		for _, piece := range pieces {
			got = append(got, e.without([]byte(piece))...)
		}
		if string(got) != "a\n" || !e.traces {
			t.Errorf("%q: got %q", pieces, got)
		}
	}
}

// TestTraceInPieces: the terminal may hand on the trace of a frame in any pieces.
func TestTraceInPieces(t *testing.T) {
	const shown = "+ _gwn=0123456789abcdef\n+ PS2=\n++ PROMPT_COMMAND=\n+ 1>| /dev/null 2>& 1\n+ :\n+ /dev/null\na\n"
	for first := range len(shown) {
		for second := first; second < len(shown); second++ {
			e := echo{traced: true}
			var got []byte
			for _, piece := range []string{shown[:first], shown[first:second], shown[second:]} {
				got = append(got, e.without([]byte(piece))...)
			}
			if string(got) != "a\n" {
				t.Fatalf("cut at %d and %d: got %q", first, second, got)
			}
		}
	}
}
