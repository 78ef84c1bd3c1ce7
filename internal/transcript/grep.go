package transcript

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"regexp"
	"slices"
)

// maxLine is how much of a line is searched at once. A longer one is searched
// in pieces of this length.
const maxLine = 64 << 10

const (
	maxLines = 1000 // that a search finds
	maxWidth = 1024 // bytes of each
)

// GrepOptions may be left zero.
type GrepOptions struct {
	Context int // how many lines before and after a match are wanted
	Bytes   int // how many bytes in all; 64 KiB if not set
}

// A Line is one that matches, or stands near one that does. At is where it
// begins, and Data has no line end. Of a line longer than 1 KiB, or than all that
// is wanted, Data is what is around the match, or the beginning, and Cut is true;
// also for a piece of a line that is longer than 64 KiB.
type Line struct {
	Chunk
	Match, Cut bool
}

// Found is what a search found.
type Found struct {
	Lines []Line // in the order in which they ended
	// Matches is how many lines match, also of those that are not in Lines.
	Matches int
	// Next is where to go on with [View.From] if not all is in Lines, and else
	// the view's end. Of a line of another stream that is unfinished there, only
	// the rest is searched then.
	Next Cursor
	// Dropped is how many bytes of whatever stream are no longer there. A line
	// that they tear apart counts as two.
	Dropped int64
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
	g.options.Bytes = cmp.Or(max(options.Bytes, 0), 64<<10)
	g.width = min(maxWidth, g.options.Bytes) // so that any line fits
	s := v.log.scan(v.from, v.to, v.streams)
	defer s.close()
	for {
		if err := ctx.Err(); err != nil {
			return g.Found, err
		}
		p, err := s.next()
		switch {
		case err == io.EOF:
			g.flush()
			if !g.full {
				g.Next = v.to
			}
			return g.Found, nil
		case err != nil:
			return g.Found, err
		case p.dropped > 0:
			g.flush()
			g.Dropped += p.dropped
		default:
			g.chunk(p.Chunk)
		}
	}
}

// A grep is a search that is going on.
type grep struct {
	Found
	pattern *regexp.Regexp
	options GrepOptions
	width   int           // how many bytes of a line are wanted
	open    [Streams]Line // the line that each stream is in the middle of
	before  []Line        // the last lines that were not wanted, for a match that follows
	after   int           // how many lines are still wanted behind a match
	bytes   int           // how many bytes Lines have
	full    bool          // the rest is only counted
	at      Cursor        // behind the line that was looked at last
}

// chunk takes more bytes of a stream.
func (g *grep) chunk(c Chunk) {
	open := &g.open[c.Stream]
	for len(c.Data) > 0 {
		if len(open.Data) == 0 {
			open.Stream, open.At, open.Time = c.Stream, c.At, c.Time
		}
		n := min(len(c.Data), maxLine-len(open.Data))
		text := c.Data[:n]
		end := bytes.IndexByte(text, '\n')
		if end >= 0 {
			text, n = text[:end], end+1
		}
		c = c.slice(n, len(c.Data))
		g.at = c.At
		buffer := open.Data
		if len(buffer) > 0 || end < 0 {
			buffer = append(buffer, text...)
			text = buffer
		}
		open.Data = buffer
		if end < 0 && len(text) < maxLine {
			return
		}
		if len(text) > 0 || !open.Cut { // else it is the end of a line whose pieces are done
			line := *open
			line.Data, line.Cut = text, open.Cut || end < 0
			g.line(line)
		}
		open.Data, open.Cut = buffer[:0], end < 0
	}
}

// flush takes the unfinished lines as they are.
func (g *grep) flush() {
	for i := range g.open {
		open := &g.open[i]
		if len(open.Data) > 0 {
			g.line(*open)
		}
		open.Data, open.Cut = open.Data[:0], false
	}
}

// line takes a line. It does not keep the text.
func (g *grep) line(l Line) {
	l.Data = bytes.TrimSuffix(l.Data, []byte("\r"))
	match := g.pattern.FindIndex(l.Data)
	if l.Match = match != nil; l.Match {
		g.Matches++
	}
	switch {
	case g.full:
	case l.Match:
		l = l.cut(match, g.width, nil)
		lines := append(g.before, l)
		g.before, g.after = nil, g.options.Context
		for len(lines) > 1 && !g.fits(lines) {
			lines = lines[1:] // a match is worth more than what is around it
		}
		g.take(lines)
	case g.after > 0:
		g.after--
		g.take([]Line{l.cut(nil, g.width, nil)})
	case g.options.Context > 0:
		var buffer []byte
		if len(g.before) == g.options.Context {
			buffer = g.before[0].Data
			g.before = slices.Delete(g.before, 0, 1)
		}
		g.before = append(g.before, l.cut(nil, g.width, buffer))
	}
}

func (g *grep) fits(lines []Line) bool {
	n := g.bytes
	for _, l := range lines {
		n += len(l.Data)
	}
	return n <= g.options.Bytes && len(g.Lines)+len(lines) <= maxLines
}

// take adds lines to what was found, or finds that there is no room.
func (g *grep) take(lines []Line) {
	if !g.fits(lines) {
		g.full = true
		g.Next = max(g.Next, lines[0].At)
		return
	}
	for _, l := range lines {
		g.bytes += len(l.Data)
	}
	g.Lines = append(g.Lines, lines...)
	g.Next = g.at
}

// cut returns the line with a copy of its text in the buffer, as much as may
// be: what is around the match, if there is one.
func (l Line) cut(match []int, width int, buffer []byte) Line {
	text := l.Data
	if len(text) > width {
		start := 0
		if match != nil {
			// A match that fits is in the middle.
			start = max(match[0]-max(width-(match[1]-match[0]), 0)/2, 0)
			start = min(start, len(text)-width)
		}
		text, l.Cut = text[start:start+width], true
	}
	l.Data = append(buffer[:0], text...)
	return l
}
