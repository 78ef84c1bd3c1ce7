package session

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

const (
	testNonce   = "0123456789abcdef"
	keeperNonce = "aaaaaaaaaaaaaaaa"
)

// kept is a mark of the keeper's.
const kept = "\x1eA" + keeperNonce + ":\x1e" + keeperNonce + ";"

func typed(kind byte, payload string) string {
	return "\x1e" + string(kind) + testNonce + ":" + payload + "\x1e" + testNonce + ";"
}

// scanAll feeds input in chunks of the given sizes, repeated, and returns the
// data and the marks as text.
func scanAll(input []byte, sizes ...int) (data, marks string) {
	var s scanner
	var b bytes.Buffer
	expected := func(_ byte, nonce []byte) bool { return string(nonce) == testNonce || string(nonce) == keeperNonce }
	take := func(d []byte) { b.Write(d) }
	found := func(m mark) { marks += fmt.Sprintf("[%c %q at %d]", m.kind, m.payload, b.Len()) }
	for i := 0; len(input) > 0; i++ {
		n := min(max(1, sizes[i%len(sizes)]), len(input))
		chunk := bytes.Clone(input[:n])
		s.scan(chunk, expected, take, found)
		clear(chunk) // what scan keeps must be its own
		input = input[n:]
	}
	s.flush(take)
	return b.String(), marks
}

func TestScanner(t *testing.T) {
	for _, test := range []struct{ name, input, data, marks string }{
		{"data", "abc", "abc", ""},
		{"a mark", "a" + typed('E', "0::/tmp") + "b", "ab", `[E "0::/tmp" at 1]`},
		{"an empty mark", typed('E', ""), "", `[E "" at 0]`},
		{"a prompt", typed('P', "130:#"), "", `[P "130:#" at 0]`},
		{"two marks", typed('E', "1:12:/") + typed('P', "0:#"), "", `[E "1:12:/" at 0][P "0:#" at 0]`},
		{"a directory with separators", typed('E', "0::/a\x1e:b;\n"), "", `[E "0::/a\x1e:b;\n" at 0]`},
		{"a mark within another one", typed('E', "0::/a\n"+kept+"b"), "", `[A "" at 0][E "0::/a\nb" at 0]`},
		{"a mark within none", typed('E', "%s"+kept+"b"), typed('E', "%sb"), `[A "" at 21]`},
		{"a status that is none", typed('E', "%s:%s:%s"), typed('E', "%s:%s:%s"), ""},
		{"a prompt that is not expanded", typed('P', "$?:#"), typed('P', "$?:#"), ""},
		{"an answer that says nothing", typed('R', ""), typed('R', ""), ""},
		{"another nonce", strings.ReplaceAll(typed('E', "0::/"), "012", "fed"), strings.ReplaceAll(typed('E', "0::/"), "012", "fed"), ""},
		{"separators", "\x1e\x1e\x1eE", "\x1e\x1e\x1eE", ""},
		{"a separator before a mark", "\x1e" + typed('E', ""), "\x1e", `[E "" at 1]`},
		{"an unfinished mark", "x\x1eE" + testNonce + ":0:", "x\x1eE" + testNonce + ":0:", ""},
		{"a directory that is too long", "a" + typed('E', "3:7:"+strings.Repeat("x", 2*maxPayload)) + "b" + typed('E', ""), "ab", `[E "3:7:" at 1][E "" at 2]`},
		{"what is too long for another mark", typed('A', strings.Repeat("x", 2*maxPayload)), typed('A', strings.Repeat("x", 2*maxPayload)), ""},
		{"an endless mark", typed('E', "0::")[:22] + strings.Repeat("x", 2*maxPayload), "", `[E "0::" at 0]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, size := range []int{1, 2, 3, 7, 1 << 20} {
				if size <= 7 && len(test.input) > 10_000 {
					continue
				}
				data, marks := scanAll([]byte(test.input), size)
				if data != test.data || marks != test.marks {
					t.Errorf("in chunks of %d: got %.100q and %s, want %.100q and %s", size, data, marks, test.data, test.marks)
				}
			}
		})
	}
}

// FuzzScanner checks that the outcome does not depend on how the bytes arrive,
// and that no byte of data is lost or invented.
func FuzzScanner(f *testing.F) {
	f.Add([]byte("a"+typed('E', "0:1:/tmp")+"b"+typed('P', "0:#")), 1, 5)
	f.Add([]byte("\x1e\x1eE0123456789abcdef:"), 2, 3)
	f.Add([]byte(typed('E', "0::/\x1e0123456789abcde;")), 4, 1)
	f.Fuzz(func(t *testing.T, input []byte, a, b int) {
		data, marks := scanAll(input, len(input)+1)
		piecewise, pieces := scanAll(input, a%50, b%50)
		if data != piecewise || marks != pieces {
			t.Errorf("whole: %q %s, in pieces: %q %s", data, marks, piecewise, pieces)
		}
		if marks == "" && data != string(input) {
			t.Errorf("data = %q, want the input %q", data, input)
		}
	})
}

func TestQuoteIsOneWord(t *testing.T) {
	for _, s := range []string{"", "a", "it's", "''", "a\nb", `\`, "$x `y` \"z\" !!"} {
		quoted := Quote(s)
		if strings.ReplaceAll(strings.Trim(strings.ReplaceAll(quoted, `'\''`, "\x00"), "'"), "\x00", "'") != s {
			t.Errorf("Quote(%q) = %s", s, quoted)
		}
	}
}

// A frame must never show a whole mark: the terminal may echo it, and set -v
// prints it.
func FuzzFrameShowsNoMark(f *testing.F) {
	f.Add("echo hi", "/tmp", true)
	f.Add(typed('P', "0:#"), "", false)
	f.Fuzz(func(t *testing.T, text, cwd string, tty bool) {
		for _, d := range dialects {
			fr := frame{dialect: d, nonce: "fedcba9876543210", command: Command{Text: text, Cwd: cwd, TTY: tty}, keeper: &keeper{stdout: "/o", stderr: "/e", dir: "/d"}}
			_, marks := scanAllWith(fr.encode(), fr.nonce)
			if marks != 0 {
				t.Errorf("the frame of %q shows a mark", text)
			}
		}
	})
}

func scanAllWith(input, nonce string) (data string, marks int) {
	var s scanner
	var b bytes.Buffer
	s.scan([]byte(input), func(_ byte, n []byte) bool { return string(n) == nonce }, func(d []byte) { b.Write(d) }, func(mark) { marks++ })
	return b.String(), marks
}
