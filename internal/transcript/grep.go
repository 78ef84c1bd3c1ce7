package transcript

import (
	"bytes"
	"context"
	"io"
	"regexp"
)

// maxLine is how much of a line is searched at once. A longer one is searched
// in pieces of this length.
const maxLine = 64 << 10

// GrepOptions may be left zero.
type GrepOptions struct {
	Context int // how many lines before and after a match are wanted
	Max     int // how many matching lines are wanted; 100 if not set
	Width   int // how many bytes of a line are returned; 1024 if not set
}

// A Line is one that matches, or stands near one that does.
type Line struct {
	Stream Stream
	At     Cursor // where the line begins
	// Text has no line end. Of a line longer than Width it is what is around the
	// match, or the beginning, and Cut is true; also for a piece of a line that
	// is longer than 64 KiB.
	Text  []byte
	Match bool
	Cut   bool
}

// Found is what a search found.
type Found struct {
	Lines   []Line // in the order in which they were finished
	Matches int    // how many of Lines match
	// Next is where to go on with [View.From]. Of a line of another stream that is
	// unfinished there, only the rest is searched then.
	Next Cursor
	Done bool // the whole view was searched
	// Lost is how many bytes of whatever stream, before Next, are no longer
	// there. A line that they tear apart counts as two.
	Lost int64
}

// From returns the view without what stands before a cursor.
func (v View) From(at Cursor) View {
	v.from = max(v.from, at)
	return v
}

// Grep searches line by line, each stream for itself, and what is unfinished at
// the end as a line too. It needs little memory, however long the view.
func (v View) Grep(ctx context.Context, pattern *regexp.Regexp, options GrepOptions) (Found, error) {
	v = v.now()
	g := grep{pattern: pattern, options: options}
	if g.options.Max <= 0 {
		g.options.Max = 100
	}
	if g.options.Width <= 0 {
		g.options.Width = 1024
	}
	s := v.log.scan(v.from, v.to, v.streams)
	defer s.close()
	for !g.full {
		if err := ctx.Err(); err != nil {
			return g.Found, err
		}
		p, err := s.next()
		if err == io.EOF {
			g.flush()
			break
		}
		if err != nil {
			return g.Found, err
		}
		if p.lost > 0 {
			g.flush()
			g.Lost += p.lost
			continue
		}
		g.chunk(p.Chunk)
	}
	if !g.full {
		g.Next = v.to
	}
	g.Done = g.Next == v.to
	return g.Found, nil
}

// A grep is a search that is going on.
type grep struct {
	Found
	pattern *regexp.Regexp
	options GrepOptions
	open    [Streams]Line // the line that each stream is in the middle of
	before  []Line        // the last lines that were not wanted, for a match that follows
	after   int           // how many lines are still wanted behind a match
	full    bool
}

// chunk takes more bytes of a stream.
func (g *grep) chunk(c Chunk) {
	open := &g.open[c.Stream]
	open.Stream = c.Stream
	for at, rest := c.At, c.Data; len(rest) > 0 && !g.full; {
		if len(open.Text) == 0 {
			open.At = at
		}
		n := min(len(rest), maxLine-len(open.Text))
		end := bytes.IndexByte(rest[:n], '\n')
		line := rest[:n]
		if end >= 0 {
			line, n = rest[:end], end+1
		}
		at, rest = at+Cursor(n), rest[n:]
		if end < 0 && len(open.Text)+len(line) < maxLine {
			open.Text = append(open.Text, line...)
			return
		}
		if len(open.Text) > 0 {
			line = append(open.Text, line...)
		}
		if len(line) == 0 && open.Cut {
			*open = Line{Text: open.Text[:0]} // the end of a line whose pieces are done
			continue
		}
		g.line(Line{Stream: c.Stream, At: open.At, Text: line, Cut: end < 0 || open.Cut}, at)
		*open = Line{Stream: c.Stream, Text: open.Text[:0], Cut: end < 0}
	}
}

// flush takes the unfinished lines as they are.
func (g *grep) flush() {
	for i := range g.open {
		open := &g.open[i]
		if len(open.Text) > 0 && !g.full {
			g.line(*open, open.At+Cursor(len(open.Text)))
		}
		*open = Line{Text: open.Text[:0]}
	}
}

// line takes a line, which ends before a cursor. It does not keep the text.
func (g *grep) line(l Line, end Cursor) {
	l.Text = bytes.TrimSuffix(l.Text, []byte("\r"))
	match := g.pattern.FindIndex(l.Text)
	switch {
	case match != nil && g.Matches == g.options.Max:
		g.Next, g.full = l.At, true
		return
	case match != nil:
		g.Lines = append(g.Lines, g.before...)
		g.before = g.before[:0]
		l.Match = true
		g.Lines = append(g.Lines, l.cut(match, g.options.Width))
		g.Matches++
		g.after = g.options.Context
	case g.after > 0:
		g.Lines = append(g.Lines, l.cut([]int{0, 0}, g.options.Width))
		g.after--
	case g.options.Context > 0:
		if len(g.before) == g.options.Context {
			g.before = append(g.before[:0], g.before[1:]...)
		}
		g.before = append(g.before, l.cut([]int{0, 0}, g.options.Width))
	}
	if g.Matches == g.options.Max && g.after == 0 {
		g.Next, g.full = end, true
	}
}

// cut returns the line with a copy of its text, as much as may be, around the
// match.
func (l Line) cut(match []int, width int) Line {
	if len(l.Text) > width {
		// A match that fits is in the middle.
		start := max(match[0]-max(width-(match[1]-match[0]), 0)/2, 0)
		start = min(start, len(l.Text)-width)
		l.Text, l.Cut = l.Text[start:start+width], true
	}
	l.Text = bytes.Clone(l.Text)
	return l
}
