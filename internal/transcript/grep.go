package transcript

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"unicode/utf8"

	"gateway/internal/phrase"
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
	// Since is where to go on: the Next of an earlier search of the view. Lines
	// that ended before are done with. One that was unfinished there is searched
	// as a whole, or if it is longer than 64 KiB its rest.
	Since Cursor
}

// A Line is one that matches, or stands near one that does. Data has no line end,
// and At is where it begins. Of a line longer than 1 KiB, or than all that is
// wanted, Data is what is around the match, or the beginning; Before and Behind say
// where the line goes on, also for a piece of one that is longer than 64 KiB.
type Line struct {
	Chunk
	Match, Before, Behind bool

	jumps []jump // where Data came in pieces
}

// A jump is an offset in a line's data where other streams have written in between,
// and the cursor there.
type jump struct {
	offset int
	at     Cursor
}

// Found is what a search found.
type Found struct {
	Lines []Line // in the order in which they ended
	// Matches is how many lines match up to Next: those in Lines.
	Matches int
	// Next is where to go on if not all is in Lines, and else the view's end. No
	// line that is wanted around a match is lost there, unless there is no room for
	// those around a single one.
	Next Cursor
	// Dropped is how many bytes of whatever stream are no longer there, up to
	// Next. A line that they tear apart counts as two.
	Dropped int64
}

// A Pattern says where in a line its first match begins and ends, as a
// [regexp.Regexp] does; nil: there is none.
type Pattern interface{ FindIndex(line []byte) []int }

// Grep searches line by line, each stream for itself, and what is unfinished at
// the end as a line too. It stops where there is no room for more, and needs
// little memory, however long the view.
func (v View) Grep(ctx context.Context, pattern Pattern, options GrepOptions) (Found, error) {
	v = v.now()
	g := grep{pattern: pattern, options: options}
	g.options.Bytes = cmp.Or(max(options.Bytes, 0), 64<<10)
	g.width = min(maxWidth, g.options.Bytes) // so that any line fits
	if err := g.goOn(v); err != nil {
		return g.Found, err
	}
	s := v.log.scan(g.since, v.to, v.streams)
	defer s.close()
	for !g.full {
		if err := ctx.Err(); err != nil {
			return g.Found, err
		}
		p, err := s.next()
		switch {
		case err == io.EOF:
			if g.flush(v.to); !g.full {
				g.Next = v.to
			}
			return g.Found, nil
		case err != nil:
			return g.Found, err
		case p.dropped > 0:
			if g.flush(p.At); !g.full {
				g.Dropped += p.dropped
				g.at = p.At + Cursor(p.dropped)
			}
		default:
			g.chunk(p.Chunk)
		}
	}
	return g.Found, nil
}

// A grep is a search that is going on.
type grep struct {
	Found
	pattern Pattern
	options GrepOptions
	width   int               // how many bytes of a line are wanted
	since   Cursor            // where it began
	told    bool              // who searched before had what was unfinished there
	open    [Streams]openLine // the line that each stream is in the middle of
	at      Cursor            // behind the line that was looked at last
	before  []lineAt          // the last lines that were not wanted, for a match that follows
	after   int               // how many lines are still wanted behind a match
	bytes   int               // how many bytes Lines have
	cut     place             // before the last match, and what is wanted before that
	stuck   bool              // the next line is not found again from its place
	full    bool
}

// A place is where a search may stop, and what it has by then.
type place struct {
	next           Cursor
	dropped        int64
	lines, matches int
}

// A lineAt is a line with the place before it.
type lineAt struct {
	Line
	place
}

// An openLine is a line without its end; end is behind what there is of it.
type openLine struct {
	Line
	end Cursor
}

// goOn begins with the lines that an earlier search was in the middle of.
func (g *grep) goOn(v View) (err error) {
	g.since = min(max(g.options.Since, v.from), v.to)
	g.at = g.since
	for stream := range Stream(Streams) {
		if g.since == v.from || !v.streams.has(stream) {
			continue
		}
		open := &g.open[stream]
		if open.Line, open.end, err = (View{v.log, v.from, g.since, v.streams}).unfinished(stream); err != nil {
			return err
		}
		// A search stops behind lines, unless the view ended there.
		g.told = g.told || len(open.Data) > 0 && open.end == g.since
	}
	return nil
}

// chunk takes more bytes of a stream.
func (g *grep) chunk(c Chunk) {
	open := &g.open[c.Stream]
	for len(c.Data) > 0 && !g.full {
		if len(open.Data) == 0 {
			open.Stream, open.At, open.Time, open.jumps = c.Stream, c.At, c.Time, open.jumps[:0]
		}
		open.jump(open.end, c.At)
		n := min(len(c.Data), maxLine-len(open.Data))
		text := c.Data[:n]
		end := bytes.IndexByte(text, '\n')
		if end >= 0 {
			text, n = text[:end], end+1
		}
		c = c.slice(n, len(c.Data))
		open.end = c.At
		buffer := open.Data
		if len(buffer) > 0 || end < 0 {
			buffer = append(buffer, text...)
			text = buffer
		}
		open.Data = buffer
		if end < 0 && len(text) < maxLine {
			return
		}
		if len(text) > 0 || !open.Before { // else it is the end of a line whose pieces are done
			line := open.Line
			line.Data, line.Behind = text, end < 0
			g.line(line, c.At)
		}
		open.Data, open.Before = buffer[:0], end < 0
	}
}

// flush takes the unfinished lines as they are, at the view's end or before bytes
// that are not there. To go on before them, a search must stop before that.
func (g *grep) flush(end Cursor) {
	for i := range g.open {
		open := &g.open[i]
		if len(open.Data) > 0 && g.since < end && (open.end > g.since || !g.told) && !g.full {
			g.stuck = g.at >= end
			g.line(open.Line, end)
		}
		open.Data, open.Before = open.Data[:0], false
	}
	g.stuck = false
}

// line takes a line and where it ends. It does not keep the text.
func (g *grep) line(l Line, end Cursor) {
	here := place{g.at, g.Dropped, len(g.Lines), g.Matches}
	g.at = max(g.at, end)
	l.Data = bytes.TrimSuffix(l.Data, []byte("\r"))
	match := g.pattern.FindIndex(l.Data)
	l.Match = match != nil
	switch {
	case l.Match:
		var lines []Line
		for _, b := range g.before {
			lines = append(lines, b.Line)
		}
		lines = append(lines, l.cut(match, g.width, nil))
		if len(g.before) > 0 {
			here = g.before[0].place
		}
		if !g.stuck {
			g.cut = here
		}
		g.before, g.after = nil, g.options.Context
		if g.take(lines, here); !g.full {
			g.Matches++
		}
	case g.after > 0:
		g.after--
		g.take([]Line{l.cut(nil, g.width, nil)}, here)
	case g.options.Context > 0:
		var buffer []byte
		if len(g.before) == g.options.Context {
			buffer = g.before[0].Data
			g.before = slices.Delete(g.before, 0, 1)
		}
		g.before = append(g.before, lineAt{l.cut(nil, g.width, buffer), here})
	}
}

func (g *grep) fits(lines []Line) bool {
	return g.bytes+size(lines) <= g.options.Bytes && len(g.Lines)+len(lines) <= maxLines
}

func size(lines []Line) (n int) {
	for _, l := range lines {
		n += len(l.Data)
	}
	return n
}

// take adds lines to what was found, a match as the last one or one of those
// behind it. If there is no room, the search stops before that match: what is
// around it is found when it goes on there. Without another match before, there
// is no such place; then a match is worth more than what is around it.
func (g *grep) take(lines []Line, here place) {
	match := lines[len(lines)-1].Match
	switch {
	case g.fits(lines):
	case g.cut.lines > 0:
		g.stop(g.cut)
		return
	case match:
		for len(lines) > 1 && !g.fits(lines) {
			lines = lines[1:]
		}
	case g.stuck:
		return
	default:
		g.stop(here)
		return
	}
	g.bytes += size(lines)
	g.Lines = append(g.Lines, lines...)
}

// stop ends the search at a place.
func (g *grep) stop(p place) {
	g.full = true
	g.Lines, g.Matches, g.Next, g.Dropped = g.Lines[:p.lines], p.matches, p.next, p.dropped
}

// cut returns the line with a copy of its text in the buffer, as much as may
// be: what is around the match, if there is one. It begins and ends with whole
// characters, also where the line itself is a piece of a longer one.
func (l Line) cut(match []int, width int, buffer []byte) Line {
	text := l.Data
	start, end := 0, len(text)
	if len(text) > width {
		if match != nil {
			// A match that fits is in the middle.
			start = max(match[0]-max(width-(match[1]-match[0]), 0)/2, 0)
			start = min(start, len(text)-width)
		}
		end = start + width
	}
	l.Before, l.Behind = l.Before || start > 0, l.Behind || end < len(text)
	if l.Before {
		start = min(behindCharacter(text, start), end)
	}
	if l.Behind {
		end = max(beforeCharacter(text, end), start)
	}
	l.At = l.cursor(start)
	l.Data, l.jumps = append(buffer[:0], text[start:end]...), nil
	return l
}

// behindCharacter returns the place behind the character that i is in the middle of,
// or i. One that began before the text is the bytes that begin none.
func behindCharacter(text []byte, i int) int {
	if i == 0 {
		return max(slices.IndexFunc(text[:min(len(text), utf8.UTFMax)], utf8.RuneStart), 0)
	}
	_, right := phrase.Halves(text[:i], text[i:])
	return i + right
}

// beforeCharacter returns the place before the character that i is in the middle of,
// or i. It may be one that goes on behind the text.
func beforeCharacter(text []byte, i int) int {
	if i == len(text) {
		return i - phrase.Unfinished(text)
	}
	left, _ := phrase.Halves(text[:i], text[i:])
	return i - left
}

// jump notes that the data goes on at a cursor, behind another one.
func (l *Line) jump(behind, at Cursor) {
	if len(l.Data) > 0 && behind != at {
		l.jumps = append(l.jumps, jump{len(l.Data), at})
	}
}

// cursor returns where a byte of the data stands.
func (l Line) cursor(offset int) Cursor {
	for _, j := range slices.Backward(l.jumps) {
		if j.offset <= offset {
			return j.at + Cursor(offset-j.offset)
		}
	}
	return l.At + Cursor(offset)
}
