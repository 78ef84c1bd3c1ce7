package daemon

import (
	"bytes"

	"gateway/daemon/api"
	"gateway/internal/transcript"
)

// maxLine bounds what is kept of an unfinished line; the rest of a longer one is
// a line of its own.
const maxLine = 64 << 10

// A matcher looks for a line in what comes, each stream for itself. A line that
// is not finished yet is looked at too: prompts are such lines.
type matcher struct {
	log        *transcript.Log
	expression api.Expression
	at         transcript.Cursor
	partial    [transcript.Streams]unfinished
}

// An unfinished line is the last one of a stream.
type unfinished struct {
	at    transcript.Cursor
	text  []byte
	known int // so many of its bytes came before what is looked at
}

// newMatcher looks from a cursor on, of what has come since an earlier one. Lines
// that are unfinished there are looked at as a whole, but must match with what
// comes.
func newMatcher(log *transcript.Log, expression api.Expression, begin, from int64) (*matcher, error) {
	m := &matcher{log: log, expression: expression, at: transcript.Cursor(max(begin, from))}
	if from <= begin {
		return m, nil
	}
	view := log.View(max(transcript.Cursor(begin), log.Start()), m.at)
	for stream := range m.partial {
		line, err := view.Unfinished(transcript.Stream(stream))
		if err != nil {
			return nil, recordError(err)
		}
		m.partial[stream] = unfinished{line.At, line.Data, len(line.Data)}
	}
	return m, nil
}

// next goes on to a cursor, or to the first line that matches.
func (m *matcher) next(to int64) (line string, at transcript.Cursor, found bool, err error) {
	for {
		page, err := m.log.View(m.at, transcript.Cursor(to)).Read(m.at, followRead)
		if err != nil {
			return "", 0, false, recordError(err)
		}
		if page.Dropped > 0 {
			m.partial = [transcript.Streams]unfinished{}
		}
		for _, c := range page.Chunks {
			if line, at, ok := m.add(c); ok {
				return line, at, true, nil
			}
		}
		m.at = page.Next
		if len(page.Chunks) == 0 {
			break
		}
	}
	for _, p := range m.partial {
		if text := withoutReturn(p.text); len(p.text) > p.known && m.expression.Behind(text, p.known) {
			return string(text), p.at, true, nil
		}
	}
	return "", 0, false, nil
}

// add takes a chunk, line by line.
func (m *matcher) add(c transcript.Chunk) (line string, at transcript.Cursor, found bool) {
	p := &m.partial[c.Stream]
	at = c.At
	for part := range bytes.Lines(c.Data) {
		if len(p.text) == 0 {
			p.at = at
		}
		at += transcript.Cursor(len(part))
		p.text = append(p.text, part...)
		whole, ended := bytes.CutSuffix(p.text, []byte("\n"))
		if !ended && len(p.text) < maxLine {
			continue
		}
		if whole = withoutReturn(whole); m.expression.Behind(whole, p.known) {
			return string(whole), p.at, true
		}
		p.text, p.known = p.text[:0], 0
	}
	return "", 0, false
}

// withoutReturn returns a line as grep has it: a terminal, or Windows, ends it with
// a carriage return too.
func withoutReturn(line []byte) []byte { return bytes.TrimSuffix(line, []byte("\r")) }
