package screen

import (
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// widths are those that programs expect who ask wcwidth(3): of each character
// by itself, in a locale that is not East Asian. The environment of this
// process has no say.
var widths = runewidth.Condition{StrictEmojiNeutral: true}

// width returns how many columns a character takes. Where go-runewidth and
// glibc differ, glibc counts: it is what the programs ask.
func width(r rune) int {
	switch {
	case r < 0x7f:
		return 1
	case r == 0xad: // shown as a hyphen
		return 1
	case r >= 0x1160 && r <= 0x11ff, r >= 0xd7b0 && r <= 0xd7ff: // Hangul, joins the syllable
		return 0
	}
	return widths.RuneWidth(r)
}

// invisible reports whether a character changes how others are shown, or
// nothing at all: what a person does not see would only mislead a program. The
// joiners of emoji and of Indic and Persian text remain.
func invisible(r rune) bool {
	switch {
	case r < 0x80:
		return false
	case r == 0x200c, r == 0x200d:
		return false
	case r >= 0xe0000 && r <= 0xe0fff: // tags, variation selectors of ideographs
		return true
	}
	return width(r) == 0 && unicode.In(r, unicode.Cf, unicode.Cc, unicode.Zl, unicode.Zp)
}

// print shows one character at the cursor.
func (s *Screen) print(r rune) {
	set := s.cursor.charset[s.cursor.gl]
	if set != 0 && r < 0x80 {
		r = translate(set, r)
	}
	w := width(r)
	switch {
	case invisible(r):
		return
	case w == 0:
		s.combine(r)
		return
	case w > s.cols:
		r, w = utf8.RuneError, 1
	case r == 0xad:
		r = '-'
	}
	c := &s.cursor
	if !c.nowrap && (c.pending || c.x+w > s.cols) {
		s.index()
		c.x = 0
	}
	if c.x+w > s.cols {
		return // a wide character has no room, and may not wrap
	}
	l := s.grid.row(c.y)
	if s.insert {
		l = l.insert(c.x, w, s.cols)
	}
	s.grid.set(c.y, l.put(c.x, w, cell{r: r}))
	s.last = r
	c.x += w
	c.pending = c.x == s.cols
	c.x = min(c.x, s.cols-1)
}

// combine adds a mark to the character before the cursor.
func (s *Screen) combine(r rune) {
	x, l := s.cursor.x, s.grid.row(s.cursor.y)
	if !s.cursor.pending {
		x--
	}
	if x > 0 && x < len(l) && l[x].r == tail {
		x--
	}
	if x < 0 || x >= len(l) {
		return
	}
	for i := range l[x].marks {
		if l[x].marks[i] == 0 {
			l[x].marks[i] = r
			return
		}
	}
}

// designate is SCS: one of the sets G0 to G3 becomes another. ESC with any
// other intermediate byte changes nothing here; DECALN, a test picture, would
// let three bytes write every cell.
func (s *Screen) designate(inter, set byte) {
	if inter < '(' || inter > '+' {
		return
	}
	if set == 'B' {
		set = 0
	}
	s.cursor.charset[inter-'('] = set
}

// graphics are the DEC special graphics for the characters ` to ~.
var graphics = []rune("◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")

// translate returns what an ASCII character means in a character set.
func translate(set byte, r rune) rune {
	switch {
	case set == '0' && r >= '`' && r <= '~':
		return graphics[r-'`']
	case set == '0' && r == '_':
		return ' '
	case set == 'A' && r == '#':
		return '£'
	}
	return r
}
