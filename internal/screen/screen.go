// Package screen turns the bytes that a program wrote to its terminal into what
// a person would see there: an xterm without colours.
//
// It answers nobody: a device query is read and forgotten, because the terminal
// that the program talks to is somewhere else.
//
// What is understood is what the terminfo entries xterm-256color, screen, tmux,
// linux and vt220 can send, as far as it moves text. Colours, mice, left and
// right margins, double-size lines and the scrollback are not kept.
package screen

import "strings"

// The largest screen. It bounds what a hostile program can make one byte cost.
const (
	MaxRows = 500
	MaxCols = 1000
)

// A Snapshot is what a terminal shows, and the modes that say how to type to it.
type Snapshot struct {
	// Rows has one string for each row of the screen, without trailing blanks.
	// It is valid UTF-8 without control characters. A wide character stands for
	// two columns.
	Rows []string `json:"rows"`
	// CursorRow and CursorCol count from 0. Behind a character in the last
	// column the cursor stays on it.
	CursorRow     int  `json:"cursor_row"`
	CursorCol     int  `json:"cursor_col"`
	CursorVisible bool `json:"cursor_visible"`
	// Alternate reports whether the alternate screen is in use, the one that
	// full-screen programs leave no trace on.
	Alternate bool `json:"alternate"`
	// Title is the window's title, as the program set it last.
	Title string `json:"title"`
	// ApplicationCursor reports whether the cursor keys shall send ESC O A
	// instead of ESC [ A (DECCKM).
	ApplicationCursor bool `json:"application_cursor"`
	// BracketedPaste reports whether pasted text shall stand between
	// ESC [ 200 ~ and ESC [ 201 ~.
	BracketedPaste bool `json:"bracketed_paste"`
}

// A Screen follows a terminal. How its bytes are cut into calls of Write makes
// no difference. It needs 16 bytes for each cell that was written to, holds no
// goroutine and is not safe for concurrent use.
type Screen struct {
	parser
	rows, cols  int
	main, alt   grid
	grid        *grid // main or &alt
	cursor      cursor
	saved       [2]cursor // of the main and the alternate screen
	top, bottom int       // the scroll region: rows top to bottom-1
	tabs        []bool    // by column
	last        rune      // for REP

	insert, newline, hidden bool // IRM, LNM, not DECTCEM
	application, paste      bool // DECCKM, bracketed paste
	title                   string
	titles                  []string // pushed
}

// cursor is what DECSC saves.
type cursor struct {
	x, y    int
	pending bool    // the last column is written, and the next character wraps
	origin  bool    // DECOM: rows count from the scroll region
	nowrap  bool    // not DECAWM
	charset [4]byte // G0 to G3; 0 is ASCII
	gl      int     // which of them is in use
}

// New returns a blank screen. Sizes are brought into 1 … [MaxRows] and 1 …
// [MaxCols].
func New(rows, cols int) *Screen {
	s := &Screen{rows: clamp(rows, 1, MaxRows), cols: clamp(cols, 1, MaxCols)}
	s.main, s.alt = newGrid(s.rows), newGrid(s.rows)
	s.tabs = make([]bool, s.cols)
	s.reset()
	return s
}

// Resize gives the screen a new size, with [New]'s limits. Lines are cut, not
// wrapped again: programs draw anew when the size changes.
func (s *Screen) Resize(rows, cols int) {
	rows, cols = clamp(rows, 1, MaxRows), clamp(cols, 1, MaxCols)
	if rows == s.rows && cols == s.cols {
		return
	}
	y := [2]int{s.saved[0].y, s.saved[1].y}
	y[s.screen()] = s.cursor.y
	for i, g := range []*grid{&s.main, &s.alt} {
		gone := max(0, y[i]-rows+1) // the line with the cursor stays
		g.resize(rows, cols, gone)
		s.saved[i].y -= gone
		if i == s.screen() {
			s.cursor.y -= gone
		}
	}
	s.rows, s.cols = rows, cols
	s.top, s.bottom = 0, rows
	for x := len(s.tabs); x < cols; x++ {
		s.tabs = append(s.tabs, x%8 == 0)
	}
	for _, c := range []*cursor{&s.cursor, &s.saved[0], &s.saved[1]} {
		c.pending = c.pending && c.x == cols-1
		c.x, c.y = min(c.x, cols-1), clamp(c.y, 0, rows-1)
	}
}

// Snapshot returns what the screen shows. It shares nothing with the screen.
func (s *Screen) Snapshot() Snapshot {
	rows := make([]string, s.rows)
	var b strings.Builder
	for y := range rows {
		b.Reset()
		for _, c := range s.grid.row(y) {
			c.appendTo(&b)
		}
		rows[y] = strings.TrimRight(b.String(), " ")
	}
	return Snapshot{
		Rows:              rows,
		CursorRow:         s.cursor.y,
		CursorCol:         s.cursor.x,
		CursorVisible:     !s.hidden,
		Alternate:         s.grid == &s.alt,
		Title:             s.title,
		ApplicationCursor: s.application,
		BracketedPaste:    s.paste,
	}
}

// screen is the index of the screen in use.
func (s *Screen) screen() int {
	if s.grid == &s.alt {
		return 1
	}
	return 0
}

// reset is RIS, the state of a terminal that was just switched on. The title
// belongs to the window and stays.
func (s *Screen) reset() {
	s.main.blankRows(0, s.rows)
	s.alt.blankRows(0, s.rows)
	s.grid = &s.main
	for x := range s.tabs {
		s.tabs[x] = x%8 == 0
	}
	s.cursor = cursor{}
	s.last, s.newline, s.paste = 0, false, false
	s.softReset()
}

// softReset is DECSTR.
func (s *Screen) softReset() {
	s.top, s.bottom = 0, s.rows
	s.saved = [2]cursor{}
	s.cursor = cursor{x: s.cursor.x, y: s.cursor.y}
	s.insert, s.hidden, s.application = false, false, false
}

func clamp(n, low, high int) int { return max(low, min(n, high)) }
