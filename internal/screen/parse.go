package screen

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// parser cuts a byte stream into characters, controls and sequences, after the
// state machine of https://vt100.net/emu/dec_ansi_parser, with UTF-8 in place of
// the 8-bit controls.
type parser struct {
	state    state
	utf8     [utf8.UTFMax]byte // the beginning of a character
	utf8n    int
	prefix   byte // < = > ? before the parameters
	inter    byte // the last of the intermediate bytes
	params   [maxParams]int
	nparams  int
	sub      bool   // parameters have parts, as only colours do
	text     []byte // of an OSC
	overlong bool   // the OSC is longer than what is kept
}

type state uint8

const (
	ground state = iota
	escape
	csi
	csiIgnore
	osc
	other // DCS, SOS, PM, APC: read and forgotten
)

const (
	maxParams = 32
	maxParam  = 1 << 16
	maxText   = 4096
)

// Write takes what the program wrote. It never fails and never blocks.
func (s *Screen) Write(p []byte) (int, error) {
	for _, b := range p {
		switch {
		case s.state == osc || s.state == other:
			s.str(b)
		case b < 0x20:
			s.flush()
			s.control(b)
		case b == 0x7f:
			s.flush()
		case b >= 0x80:
			s.state = ground // no sequence has such a byte
			s.decode(b)
		case s.state == ground:
			s.flush()
			s.print(rune(b))
		case s.state == escape:
			s.esc(b)
		default:
			s.csi(b)
		}
	}
	return len(p), nil
}

// decode takes a byte of a character beyond ASCII.
func (s *Screen) decode(b byte) {
	s.utf8[s.utf8n] = b
	s.utf8n++
	if !utf8.FullRune(s.utf8[:s.utf8n]) {
		return
	}
	r, size := utf8.DecodeRune(s.utf8[:s.utf8n])
	if size == s.utf8n {
		s.utf8n = 0
		s.print(r)
		return
	}
	// b is what does not fit. One mark stands for all before it, as the Unicode
	// Standard recommends (section 3.9, U+FFFD Substitution of Maximal Subparts).
	s.utf8n--
	s.flush()
	s.decode(b)
}

// flush shows a character that something else cut short.
func (s *Screen) flush() {
	if s.utf8n > 0 {
		s.utf8n = 0
		s.print(utf8.RuneError)
	}
}

// control executes a C0 control, which may stand within a sequence too.
func (s *Screen) control(b byte) {
	switch b {
	case 0x1b:
		s.state, s.prefix, s.inter = escape, 0, 0
	case 0x18, 0x1a: // CAN, SUB
		s.state = ground
	case '\b':
		s.move(s.cursor.x-1, s.cursor.y)
	case '\t':
		s.tab(1)
	case '\n', '\v', '\f':
		s.index()
		if s.newline {
			s.move(0, s.cursor.y)
		}
	case '\r':
		s.move(0, s.cursor.y)
	case 0x0e: // SO
		s.cursor.gl = 1
	case 0x0f: // SI
		s.cursor.gl = 0
	}
}

// esc takes a byte behind ESC.
func (s *Screen) esc(b byte) {
	if b < 0x30 {
		s.inter = b
		return
	}
	s.state = ground
	switch {
	case s.inter != 0:
		s.designate(s.inter, b)
	case b == '[':
		s.state, s.params, s.nparams, s.sub = csi, [maxParams]int{}, 1, false
	case b == ']':
		s.state, s.text, s.overlong = osc, s.text[:0], false
	case b == 'P', b == 'X', b == '^', b == '_', b == 'k': // DCS, SOS, PM, APC; screen's title
		s.state = other
	default:
		s.escape(b)
	}
}

// csi takes a byte behind ESC [.
func (s *Screen) csi(b byte) {
	switch {
	case b >= 0x40:
		if s.state == csi && !s.sub {
			s.sequence(b)
		}
		s.state = ground
	case s.state == csiIgnore:
	case b < 0x30:
		s.inter = b
	case s.inter != 0: // a parameter behind an intermediate byte
		s.state = csiIgnore
	case b <= '9':
		if s.nparams <= maxParams {
			p := &s.params[s.nparams-1]
			*p = min(*p*10+int(b-'0'), maxParam)
		}
	case b == ';':
		s.nparams = min(s.nparams+1, maxParams+1)
	case b == ':':
		s.sub = true
	case s.nparams == 1 && s.params[0] == 0 && s.prefix == 0:
		s.prefix = b
	default:
		s.state = csiIgnore
	}
}

// param returns a parameter. 0 and a missing one stand for the default.
func (s *Screen) param(i, standard int) int {
	if s.params[i] == 0 {
		return standard
	}
	return s.params[i]
}

// str takes a byte of a string, which ends with BEL or ESC \.
func (s *Screen) str(b byte) {
	switch {
	case b == 0x18 || b == 0x1a:
		s.state = ground
	case b == 0x1b || b == '\a' && s.state == osc:
		if s.state == osc {
			s.command()
		}
		s.state = ground
		if b == 0x1b {
			s.control(b) // what follows is the backslash, or a sequence that cut the string short
		}
	case s.state == osc && b >= 0x20:
		if len(s.text) == maxText {
			s.overlong = true
			return
		}
		s.text = append(s.text, b)
	}
}

// command executes an OSC. Only titles matter: 0 is window and icon, 2 window.
func (s *Screen) command() {
	kind, title, ok := strings.Cut(string(s.text), ";")
	if !ok || s.overlong || kind != "0" && kind != "2" {
		return
	}
	s.title = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || invisible(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(title, "\ufffd"))
}
