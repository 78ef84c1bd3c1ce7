package screen

import "strings"

// A cell is one column of one row. The zero value is blank.
type cell struct {
	r     rune    // 0: blank; tail: the right half of the wide character before it
	marks [3]rune // what combines with r; xterm keeps two (resource combiningChars)
}

const tail rune = -1

func (c cell) appendTo(b *strings.Builder) {
	switch c.r {
	case tail:
		return
	case 0:
		b.WriteByte(' ')
	default:
		b.WriteRune(c.r)
	}
	for _, mark := range c.marks {
		if mark != 0 {
			b.WriteRune(mark)
		}
	}
}

// A line holds the cells up to the last one that was written; the others are
// blank. So a line is cleared in no time.
type line []cell

// split makes blanks of a wide character that an edit between the columns x-1
// and x would cut in two.
func (l line) split(x int) {
	if x > 0 && x < len(l) && l[x].r == tail {
		l[x-1], l[x] = cell{}, cell{}
	}
}

// extended returns the line with at least n cells.
func (l line) extended(n int) line {
	for len(l) < n {
		l = append(l, cell{})
	}
	return l
}

// erase makes the columns from x to end-1 blank.
func (l line) erase(x, end int) line {
	l.split(x)
	l.split(end)
	switch {
	case x >= len(l):
	case end >= len(l):
		l = l[:x]
	default:
		clear(l[x:end])
	}
	return l
}

// insert moves what is right of x by n columns, in a line of cols.
func (l line) insert(x, n, cols int) line {
	if x >= len(l) {
		return l
	}
	n = min(n, cols-x)
	l.split(x)
	l.split(cols - n)
	old := len(l)
	l = l.extended(min(cols, old+n))
	copy(l[x+n:], l[x:old])
	clear(l[x : x+n])
	return l
}

// remove takes n columns out at x.
func (l line) remove(x, n int) line {
	if x >= len(l) {
		return l
	}
	n = min(n, len(l)-x)
	l.split(x)
	l.split(x + n)
	return append(l[:x], l[x+n:]...)
}

// put writes a character of the given width.
func (l line) put(x, width int, c cell) line {
	l.split(x)
	l.split(x + width)
	l = l.extended(x + width)
	l[x] = c
	if width == 2 {
		l[x+1] = cell{r: tail}
	}
	return l
}

// A grid is the lines of one screen. order says where each row is, so that
// scrolling moves two bytes a row.
type grid struct {
	order []uint16
	lines []line
}

func newGrid(rows int) grid {
	g := grid{order: make([]uint16, rows), lines: make([]line, rows)}
	for y := range g.order {
		g.order[y] = uint16(y)
	}
	return g
}

func (g *grid) row(y int) line      { return g.lines[g.order[y]] }
func (g *grid) set(y int, row line) { g.lines[g.order[y]] = row }
func (g *grid) blank(y int)         { g.set(y, g.row(y)[:0]) }
func (g *grid) blankRows(y, end int) {
	for ; y < end; y++ {
		g.blank(y)
	}
}

// up moves the rows from top to bottom-1 up by n; blank ones follow.
func (g *grid) up(top, bottom, n int) {
	n = min(n, bottom-top)
	rotate(g.order[top:bottom], n)
	g.blankRows(bottom-n, bottom)
}

// down is the opposite of up.
func (g *grid) down(top, bottom, n int) {
	n = min(n, bottom-top)
	rotate(g.order[top:bottom], bottom-top-n)
	g.blankRows(top, top+n)
}

// rotate moves the first n elements to the end.
func rotate(order []uint16, n int) {
	var first [MaxRows]uint16
	copy(first[:n], order)
	copy(order, order[n:])
	copy(order[len(order)-n:], first[:n])
}

// resize gives the grid another size, without its first lines.
func (g *grid) resize(rows, cols, gone int) {
	sized := newGrid(rows)
	for y := 0; y < rows && y+gone < len(g.order); y++ {
		l := g.row(y + gone)
		if len(l) > cols {
			l.split(cols)
			l = l[:cols]
		}
		sized.lines[y] = l
	}
	*g = sized
}
