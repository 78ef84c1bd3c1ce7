package mcpserver

import (
	"strings"
	"unicode/utf8"
)

// maxUnfinished bounds an escape sequence: a longer one is none.
const maxUnfinished = 4096

// clean makes bytes that were meant for a terminal into text: without escape
// sequences and control characters, and with every line as a person would see
// it in the end, which for a progress bar is its last state. Bytes that are no
// UTF-8 become U+FFFD, and valid is false then.
//
// rest is what b ends with that is not finished: a part of a character, or of an
// escape sequence. It belongs before what comes next.
func clean(b []byte) (text string, rest []byte, valid bool) { return new(cleaner).clean(b) }

// plain is clean for a text that is whole.
func plain(s string) string {
	text, rest, _ := clean([]byte(s))
	if len(rest) > 0 && rest[0] != 0x1b {
		text += string(utf8.RuneError)
	}
	return text
}

// A cleaner draws one line at a time. The zero value is ready, and of several texts
// that are cleaned for one answer the bound of [cleaner.pad] is one.
type cleaner struct {
	out     strings.Builder
	line    []rune
	column  int
	invalid bool

	taken   int  // bytes
	padded  int  // blanks
	looked  int  // bytes that were searched for the end of a string
	endless bool // there is none in what is left
}

func (c *cleaner) clean(b []byte) (text string, rest []byte, valid bool) {
	c.out.Reset()
	c.invalid, c.endless = false, false
	for len(b) > 0 {
		n := c.take(b)
		if n == 0 {
			rest = b
			break
		}
		b = b[n:]
		c.taken += n
	}
	c.flush()
	return c.out.String(), rest, !c.invalid
}

// take takes what stands first in b, and returns its length: 0 if it is not
// finished.
func (c *cleaner) take(b []byte) int {
	switch b[0] {
	case 0x1b:
		return c.escape(b)
	case '\n':
		c.flush()
		c.out.WriteByte('\n')
		return 1
	case '\r':
		if len(b) == 1 {
			return 0 // with a newline behind it, it is none
		}
		c.column = 0
		return 1
	case '\b':
		c.column = max(c.column-1, 0)
		return 1
	case '\t':
		c.put('\t')
		return 1
	}
	if b[0] < 0x20 || b[0] == 0x7f {
		return 1
	}
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError && n == 1 {
		if !utf8.FullRune(b) {
			return 0
		}
		c.invalid = true
	}
	if r < 0x80 || r > 0x9f { // else a control character
		c.put(r)
	}
	return n
}

func (c *cleaner) put(r rune) {
	c.pad()
	if c.column < len(c.line) {
		c.line[c.column] = r
	} else {
		c.line = append(c.line, r)
	}
	c.column++
}

// A program that moves along without writing gets a line of widest blanks, and no
// more than expansion for each byte that it writes. An answer is as long as its
// reader has room for.
const (
	widest    = 1 << 12
	expansion = 4
)

// pad fills the line up to the column, as far as there are blanks left: from there
// on the line goes on without. That depends on nothing that comes behind.
func (c *cleaner) pad() {
	if c.column <= len(c.line) {
		return
	}
	blanks := min(c.column-len(c.line), max(widest-len(c.line), 0), widest+expansion*c.taken-c.padded)
	c.line = append(c.line, []rune(strings.Repeat(" ", blanks))...)
	c.column = len(c.line)
	c.padded += blanks
}

func (c *cleaner) flush() {
	c.out.WriteString(string(c.line))
	c.line, c.column = c.line[:0], 0
}

// escape takes an escape sequence; see ECMA-48, section 5.3 and 5.4.
func (c *cleaner) escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				c.control(b[2:i], b[i])
				return i + 1
			}
			if b[i] < 0x20 || b[i] > 0x7e {
				return i // broken off
			}
		}
	case ']', 'P', 'X', '^', '_': // a string, up to BEL or ST
		if end := c.end(b); end > 0 {
			return end
		}
	default:
		for i := 1; i < len(b); i++ {
			if b[i] < 0x20 || b[i] > 0x2f { // behind intermediate bytes
				return i + 1
			}
		}
	}
	if len(b) > maxUnfinished {
		return 2
	}
	return 0
}

// end returns the length of the string that b begins with; 0 if its end is not
// there. Then it is not for any string behind it, and nobody looks again: programs
// write what they like, and to look for each of them takes minutes.
func (c *cleaner) end(b []byte) int {
	if c.endless {
		return 0
	}
	for i := 2; i < len(b); i++ {
		c.looked++
		switch {
		case b[i] == '\a':
			return i + 1
		case b[i] == '\\' && b[i-1] == 0x1b:
			return i + 1
		}
	}
	c.endless = true
	return 0
}

// control obeys what changes the line.
func (c *cleaner) control(parameters []byte, final byte) {
	n := 0
	for _, digit := range parameters {
		if digit < '0' || digit > '9' || n > 1<<16 {
			break
		}
		n = 10*n + int(digit-'0')
	}
	switch final {
	case 'K':
		switch n {
		case 0:
			c.line = c.line[:min(c.column, len(c.line))]
		case 2:
			c.line = c.line[:0]
		}
	case 'G':
		c.column = max(n-1, 0)
	case 'C':
		c.column += max(n, 1)
	case 'D':
		c.column = max(c.column-max(n, 1), 0)
	}
}
