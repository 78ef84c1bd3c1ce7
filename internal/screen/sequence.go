package screen

// move puts the cursor anywhere on the screen.
func (s *Screen) move(x, y int) {
	s.cursor.x, s.cursor.y = clamp(x, 0, s.cols-1), clamp(y, 0, s.rows-1)
	s.cursor.pending = false
}

// position is CUP, with rows and columns from 0. In origin mode rows count from
// the scroll region, and the cursor does not leave it.
func (s *Screen) position(x, y int) {
	if s.cursor.origin {
		y = min(s.top+y, s.bottom-1)
	}
	s.move(x, y)
}

// vertical moves up or down. The edges of the scroll region stop a cursor that
// comes from inside.
func (s *Screen) vertical(n int) {
	y := s.cursor.y + n
	if n < 0 && s.cursor.y >= s.top {
		y = max(y, s.top)
	}
	if n > 0 && s.cursor.y < s.bottom {
		y = min(y, s.bottom-1)
	}
	s.move(s.cursor.x, y)
}

// index moves the cursor down, and at the end of the scroll region its text up.
func (s *Screen) index() {
	if s.cursor.y == s.bottom-1 {
		s.grid.up(s.top, s.bottom, 1)
		s.cursor.pending = false
		return
	}
	s.move(s.cursor.x, s.cursor.y+1)
}

// reverseIndex is the opposite of index.
func (s *Screen) reverseIndex() {
	if s.cursor.y == s.top {
		s.grid.down(s.top, s.bottom, 1)
		s.cursor.pending = false
		return
	}
	s.move(s.cursor.x, s.cursor.y-1)
}

// tab goes n tab stops to the right, or to the left. Unlike other movements it
// leaves a wrap pending, as it does in xterm.
func (s *Screen) tab(n int) {
	step := 1
	if n < 0 {
		step, n = -1, -n
	}
	x := s.cursor.x
	for ; n > 0; n-- {
		for x += step; x > 0 && x < s.cols-1 && !s.tabs[x]; x += step {
		}
		if x <= 0 || x >= s.cols-1 {
			break
		}
	}
	s.cursor.x = clamp(x, 0, s.cols-1)
	s.cursor.pending = s.cursor.pending && step > 0
}

// escape executes ESC and one byte.
func (s *Screen) escape(b byte) {
	switch b {
	case '7':
		s.save()
	case '8':
		s.restore()
	case 'D':
		s.index()
	case 'E':
		s.index()
		s.move(0, s.cursor.y)
	case 'H':
		s.tabs[s.cursor.x] = true
	case 'M':
		s.reverseIndex()
	case 'c':
		s.reset()
	case 'n':
		s.cursor.gl = 2
	case 'o':
		s.cursor.gl = 3
	}
}

func (s *Screen) save() { s.saved[s.screen()] = s.cursor }

func (s *Screen) restore() {
	s.cursor = s.saved[s.screen()]
}

// sequence executes a control sequence that ends with b.
func (s *Screen) sequence(b byte) {
	switch {
	case s.inter != 0:
		if s.inter == '!' && b == 'p' && s.prefix == 0 {
			s.softReset()
		}
	case s.prefix == '?':
		switch b {
		case 'h', 'l':
			for _, mode := range s.params[:min(s.nparams, maxParams)] {
				s.privateMode(mode, b == 'h')
			}
		case 'J', 'K': // as if nothing were protected
			s.erase(b)
		}
	case s.prefix != 0:
	case b >= '@' && b <= 'M' || b == 'P' || b == 'X' || b == 'S' || b == 'T':
		s.edit(b)
	default:
		s.place(b)
	}
}

// edit executes the sequences that have a count, and those that erase.
func (s *Screen) edit(b byte) {
	n := s.param(0, 1)
	c := &s.cursor
	switch b {
	case '@': // ICH
		s.grid.set(c.y, s.grid.row(c.y).insert(c.x, n, s.cols))
		c.pending = false
	case 'A': // CUU
		s.vertical(-n)
	case 'B': // CUD
		s.vertical(n)
	case 'C': // CUF
		s.move(c.x+n, c.y)
	case 'D': // CUB
		s.move(c.x-n, c.y)
	case 'E': // CNL
		s.vertical(n)
		s.move(0, c.y)
	case 'F': // CPL
		s.vertical(-n)
		s.move(0, c.y)
	case 'G': // CHA
		s.move(n-1, c.y)
	case 'H': // CUP
		s.position(s.param(1, 1)-1, n-1)
	case 'I': // CHT
		s.tab(n)
	case 'J', 'K':
		s.erase(b)
	case 'L', 'M': // IL, DL
		s.insertLines(n, b == 'M')
	case 'P': // DCH
		s.grid.set(c.y, s.grid.row(c.y).remove(c.x, n))
		c.pending = false
	case 'S': // SU
		s.grid.up(s.top, s.bottom, n)
	case 'T': // SD; with more parameters it is about the mouse
		if s.nparams == 1 {
			s.grid.down(s.top, s.bottom, n)
		}
	case 'X': // ECH
		s.eraseColumns(c.x, c.x+n)
	}
}

// place executes the other sequences: positions, tab stops, modes, margins.
func (s *Screen) place(b byte) {
	n := s.param(0, 1)
	c := &s.cursor
	switch b {
	case 'Z': // CBT
		s.tab(-n)
	case '`': // HPA
		s.move(n-1, c.y)
	case 'a': // HPR
		s.move(c.x+n, c.y)
	case 'b': // REP
		s.repeat(n)
	case 'd': // VPA
		s.position(c.x, n-1)
	case 'e': // VPR
		s.move(c.x, c.y+n)
	case 'f': // HVP
		s.position(s.param(1, 1)-1, n-1)
	case 'g': // TBC
		switch s.params[0] {
		case 0:
			s.tabs[c.x] = false
		case 3:
			clear(s.tabs)
		}
	case 'h', 'l':
		for _, mode := range s.params[:min(s.nparams, maxParams)] {
			switch mode {
			case 4:
				s.insert = b == 'h'
			case 20:
				s.newline = b == 'h'
			}
		}
	case 'r': // DECSTBM
		if bottom := min(s.param(1, s.rows), s.rows); n < bottom {
			s.top, s.bottom = n-1, bottom
			s.position(0, 0)
		}
	case 's':
		s.save()
	case 'u':
		s.restore()
	case 't':
		s.stackTitle()
	}
}

// repeat is REP: the last character n times more, but not beyond the line,
// which is tmux's limit too. Without one, nine bytes could cost a million.
func (s *Screen) repeat(n int) {
	if s.last == 0 {
		return
	}
	for range min(n, s.cols-s.cursor.x) {
		s.print(s.last)
	}
}

// erase is ED and EL.
func (s *Screen) erase(b byte) {
	what, y := s.params[0], s.cursor.y
	if what > 2 { // 3 is the scrollback
		return
	}
	if b == 'J' && what != 1 {
		s.grid.blankRows(y+1, s.rows)
	}
	if b == 'J' && what != 0 {
		s.grid.blankRows(0, y)
	}
	from, to := s.cursor.x, s.cursor.x+1
	if what != 0 {
		from = 0
	}
	if what != 1 {
		to = s.cols
	}
	s.eraseColumns(from, to)
}

func (s *Screen) eraseColumns(from, to int) {
	s.grid.set(s.cursor.y, s.grid.row(s.cursor.y).erase(from, to))
	s.cursor.pending = false
}

// insertLines is IL and DL, which mean nothing outside the scroll region.
func (s *Screen) insertLines(n int, remove bool) {
	y := s.cursor.y
	switch {
	case y < s.top || y >= s.bottom:
		return
	case remove:
		s.grid.up(y, s.bottom, n)
	default:
		s.grid.down(y, s.bottom, n)
	}
	s.move(0, y)
}

// privateMode sets or resets a DEC mode.
func (s *Screen) privateMode(mode int, on bool) {
	switch mode {
	case 1: // DECCKM
		s.application = on
	case 6: // DECOM
		s.cursor.origin = on
		s.position(0, 0)
	case 7: // DECAWM
		s.cursor.nowrap = !on
	case 25: // DECTCEM
		s.hidden = !on
	case 47, 1047:
		s.alternate(on)
	case 1048:
		if on {
			s.save()
		} else {
			s.restore()
		}
	case 1049:
		if on {
			s.save()
			s.alternate(true)
			s.grid.blankRows(0, s.rows)
		} else {
			s.alternate(false)
			s.restore()
		}
	case 2004:
		s.paste = on
	}
}

// alternate switches between the screens. The cursor stays where it is.
func (s *Screen) alternate(on bool) {
	switch {
	case on:
		s.grid = &s.alt
	case s.grid == &s.alt:
		s.alt.blankRows(0, s.rows)
		s.grid = &s.main
	}
}

// stackTitle is the part of XTWINOPS that keeps a title and brings it back.
func (s *Screen) stackTitle() {
	const depth = 10 // as many as xterm keeps
	if s.params[1] == 1 {
		return // the icon's
	}
	switch n := len(s.titles); {
	case s.params[0] == 22 && n < depth:
		s.titles = append(s.titles, s.title)
	case s.params[0] == 23 && n > 0:
		s.title, s.titles = s.titles[n-1], s.titles[:n-1]
	}
}
