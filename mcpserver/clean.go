package mcpserver

import (
	"bytes"
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
func clean(b []byte) (text string, rest []byte, valid bool) {
	c := cleaner{valid: true}
	for len(b) > 0 {
		n := c.take(b)
		if n == 0 {
			rest = b
			break
		}
		b = b[n:]
	}
	c.flush()
	return c.out.String(), rest, c.valid
}

// plain is clean for a text that is whole.
func plain(s string) string {
	text, rest, _ := clean([]byte(s))
	if len(rest) > 0 && rest[0] != 0x1b {
		text += string(utf8.RuneError)
	}
	return text
}

// A cleaner draws one line at a time.
type cleaner struct {
	out    strings.Builder
	line   []rune
	column int
	valid  bool
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
		c.valid = false
	}
	if r < 0x80 || r > 0x9f { // else a control character
		c.put(r)
	}
	return n
}

// widest bounds a line that somebody moves along without writing.
const widest = 1 << 12

func (c *cleaner) put(r rune) {
	if c.column > len(c.line) {
		c.column = min(c.column, max(len(c.line), widest))
		c.line = append(c.line, []rune(strings.Repeat(" ", c.column-len(c.line)))...)
	}
	if c.column < len(c.line) {
		c.line[c.column] = r
	} else {
		c.line = append(c.line, r)
	}
	c.column++
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
	end := -1
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
		if i := bytes.IndexAny(b, "\a"); i > 0 {
			end = i + 1
		}
		if i := bytes.Index(b, []byte("\x1b\\")); i > 0 && (end < 0 || i < end) {
			end = i + 2
		}
		if end > 0 {
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
