package transcript

import (
	"bytes"
	"io"
)

// Unfinished returns the line that a stream is in the middle of at the view's end:
// one without data if there is none. Of one that is longer than 64 KiB there is
// no data either, and Before is true.
func (v View) Unfinished(stream Stream) (Line, error) {
	l, _, err := v.now().unfinished(stream)
	return l, err
}

// unfinished also returns where the line's data ends.
func (v View) unfinished(stream Stream) (Line, Cursor, error) {
	v.streams = setOf([]Stream{stream})
	from, to, err := v.tallies()
	if err != nil {
		return Line{}, 0, err
	}
	kept := v.kept(from, to)
	for _, n := range []int64{min(small, kept), min(maxLine, kept)} { // most are short
		at, skip := v.seek(from, to.of(v.streams)-n)
		line, end, whole, err := v.lastLine(at, skip)
		if err != nil || (whole || n == kept) && len(line.Data) < maxLine {
			return line, end, err
		}
	}
	return Line{Chunk: Chunk{Stream: stream}, Before: true}, 0, nil
}

// lastLine returns what stands behind the last line end from a cursor on, without
// the first skip bytes, and whether that is where a line begins.
func (v View) lastLine(at Cursor, skip int64) (l Line, end Cursor, whole bool, err error) {
	s := v.log.scan(at, v.to, v.streams)
	defer s.close()
	for {
		p, err := s.next()
		if err == io.EOF {
			return l, end, whole, nil
		}
		if err != nil {
			return l, end, whole, err
		}
		if p.dropped > 0 {
			l, whole = Line{}, true // what comes behind is a line of its own
			continue
		}
		c := p.Chunk.slice(int(min(skip, int64(len(p.Data)))), len(p.Data))
		skip -= int64(len(p.Data) - len(c.Data))
		l.jump(end, p.At)
		end = p.End()
		if i := bytes.LastIndexByte(c.Data, '\n'); i >= 0 {
			l, whole = Line{}, true
			c = c.slice(i+1, len(c.Data))
		}
		switch {
		case len(c.Data) == 0:
		case len(l.Data) == 0:
			l.Chunk = c
			l.Data = bytes.Clone(c.Data)
		default:
			l.Data = append(l.Data, c.Data...)
		}
	}
}
