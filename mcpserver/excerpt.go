package mcpserver

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gateway/daemon/api"
	"gateway/session"
)

// excerpted is what an answer holds of a stream.
type excerpted struct {
	text  string
	cut   bool   // the middle is missing
	bytes int64  // that there are
	lost  string // what of the output, of whatever stream, is not there any more
}

// excerpt returns what has come on a stream since the last answer: as much as
// the limit allows of its beginning and its end.
func (c *call) excerpt(command api.Command, stream session.Stream, p *progress, limit int) (excerpted, error) {
	if command.To <= p.cursor {
		return excerpted{text: flushed(p, stream, nil, command.Over())}, nil
	}
	if b, ok := resultOf(command, stream, p.cursor, limit); ok {
		return c.all(p, stream, b, command.Over()), nil
	}
	query := api.Query{Command: command.ID, Stream: stream.String(), Since: p.cursor, To: command.To, Head: limit - limit*2/3, Tail: limit * 2 / 3, Max: limit}
	o, err := c.daemon.Output(c.ctx, command.Session, query)
	if err != nil {
		return excerpted{}, err
	}
	if o.Omitted > 0 && bytes.ContainsAny(joined(o.Pieces), "\r\x1b") {
		// Progress bars shrink: more of them may fit.
		wide := query
		wide.Head, wide.Tail, wide.Max = 0, 16*limit, 16*limit
		if more, err := c.daemon.Output(c.ctx, command.Session, wide); err == nil && more.Omitted == 0 {
			if text, _, _ := clean(joined(more.Pieces)); len(text) <= limit {
				o = more
			}
		}
	}
	if o.Omitted == 0 {
		e := c.all(p, stream, joined(o.Pieces), command.Over())
		if e.lost = dropped(o); e.lost != "" {
			e.bytes = total(command, stream) // which says whether that was lost here
		}
		return e, nil
	}
	e := c.ends(o, p.rest[stream], stream.String())
	text := fmt.Sprintf("%s\n[... %d bytes left out; output with id %s, stream %s and cursor %d reads on here ...]\n%s", strings.TrimSuffix(e.first, "\n"), e.omitted, command.ID, stream, e.next, e.last)
	p.rest[stream] = e.rest
	if command.Over() {
		text += unfinished(e.rest)
		p.rest[stream] = nil
	}
	return excerpted{text, true, cmp.Or(total(command, stream), o.Total), dropped(o)}, nil
}

// dropped says what is missing of some output; empty: nothing.
func dropped(o api.Output) string {
	switch {
	case o.Dropped == 0:
		return ""
	case o.Why != nil:
		return fmt.Sprintf("%d bytes could not be kept: %s", o.Dropped, plain(o.Why.Message))
	}
	return fmt.Sprintf("%d bytes were dropped: the session's transcript is full", o.Dropped)
}

// resultOf returns a stream as the result has it, if it has all of the command's
// output: then nothing needs to be read.
func resultOf(command api.Command, stream session.Stream, from int64, limit int) ([]byte, bool) {
	r := command.Result
	if r == nil || from != command.From || int64(len(r.Stdout)+len(r.Stderr)+len(r.Terminal)) != command.To-command.From {
		return nil, false
	}
	b := [3][]byte{session.Stdout: r.Stdout, session.Stderr: r.Stderr, session.Terminal: r.Terminal}[stream]
	return b, len(b) <= limit
}

// all shows everything that has come on a stream since the last answer.
func (c *call) all(p *progress, stream session.Stream, b []byte, over bool) excerpted {
	text := flushed(p, stream, b, over)
	if strings.ContainsRune(text, utf8.RuneError) && !utf8.Valid(b) {
		c.invalid(stream.String())
	}
	return excerpted{text: text}
}

// total returns how much a command has written to a stream, if it is over.
func total(command api.Command, stream session.Stream) int64 {
	switch {
	case command.Result == nil:
	case stream == session.Stdout:
		return command.Result.StdoutBytes
	case stream == session.Stderr:
		return command.Result.StderrBytes
	}
	return 0
}

// flushed cleans what stands behind what was unfinished in the answer before.
func flushed(p *progress, stream session.Stream, b []byte, over bool) string {
	text, rest, _ := clean(append(p.rest[stream], b...))
	p.rest[stream] = bytes.Clone(rest)
	if over {
		text += unfinished(rest)
		p.rest[stream] = nil
	}
	return text
}

// unfinished shows what nothing comes behind any more.
func unfinished(rest []byte) string {
	if len(rest) > 0 && rest[0] >= 0x80 {
		return string(utf8.RuneError)
	}
	return ""
}

// invalid notes where bytes could not be shown as they are.
func (c *call) invalid(what string) {
	c.note("%s is not valid UTF-8: U+FFFD stands for bytes that are not", what)
}

func joined(pieces []api.Piece) []byte {
	var b []byte
	for _, p := range pieces {
		b = append(b, p.Data...)
	}
	return b
}

// ends are the two sides of what was left out, as they are shown.
type ends struct {
	first, last string
	rest        []byte // behind last; it is not finished
	omitted     int64  // bytes that are in neither
	next        int64  // the cursor of the first of them
}

// ends cleans the two sides, the first one behind what was unfinished before.
func (c *call) ends(o api.Output, before []byte, what string) ends {
	head, tail := split(o)
	all := joined(tail)
	end := whole(all)
	first, cut, valid := clean(append(before, joined(head)...))
	last, rest, alsoValid := clean(end)
	if !valid || !alsoValid {
		c.invalid(what)
	}
	return ends{first, last, rest, o.Omitted + int64(len(cut)+len(all)-len(end)), beginOf(cut, head, o.Next)}
}

// split returns the two sides of what was left out.
func split(o api.Output) (head, tail []api.Piece) {
	n := 0
	for n < len(o.Pieces) && o.Pieces[n].At < o.Next {
		n++
	}
	return o.Pieces[:n], o.Pieces[n:]
}

// beginOf returns the cursor of what pieces end with, or of their end if that is
// nothing.
func beginOf(rest []byte, pieces []api.Piece, end int64) int64 {
	n := len(rest)
	for _, p := range slices.Backward(pieces) {
		if n > 0 && n <= len(p.Data) {
			return p.At + int64(len(p.Data)-n)
		}
		n -= len(p.Data)
	}
	return end
}

// whole takes off the part of a character that a cut has left at the beginning.
func whole(b []byte) []byte {
	for i := 0; i < utf8.UTFMax && i < len(b); i++ {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b
}
