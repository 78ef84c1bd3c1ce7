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

// read is what the tool output answers.
type read struct {
	Session string `json:"session"`
	ID      string `json:"id,omitempty"`
	Text    string `json:"text"`
	// Cursor is where to go on: behind what is shown, but where both ends are,
	// between them.
	Cursor int64 `json:"cursor"`
	// Total counts the bytes that there are behind the cursor that was asked for.
	Total   int64    `json:"total_bytes"`
	Omitted int64    `json:"omitted_bytes,omitempty"`
	Dropped int64    `json:"dropped_bytes,omitempty"`
	Matches *int     `json:"matches,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	Next    string   `json:"next,omitempty"`
}

func (c *call) output(in outputArgs) (any, error) {
	t, err := c.target(in.targetArgs)
	if err != nil {
		return nil, err
	}
	if (in.Grep != "" && (in.Head > 0 || in.Tail > 0)) || (in.Grep == "" && in.Context > 0) {
		return nil, usage("", "grep goes with context and cursor, head and tail go with each other and cursor")
	}
	runs := t.command != nil && !t.command.Over()
	end, over := t.session.To, in.ID != "" && !runs
	if over {
		end = t.command.To
	}
	if int64(in.Cursor) > end {
		return nil, usage("use the cursor of an earlier answer", "the output ends at cursor %d, before %d", end, in.Cursor)
	}
	q := api.Query{Command: in.ID, Stream: in.Stream, Since: int64(in.Cursor), Head: in.Head, Tail: in.Tail, Grep: in.Grep, Context: in.Context, Max: c.config.Output}
	switch {
	case in.Head+in.Tail > 0:
		q.Max = in.Head + in.Tail
	case in.Cursor == 0 && in.Grep == "":
		q.Head, q.Tail = c.config.Output-c.config.Output*2/3, c.config.Output*2/3
	}
	o, err := c.daemon.Output(c.ctx, t.session.ID, q)
	if err != nil {
		return nil, err
	}
	if o.Why != nil {
		c.note("%s", dropped(o))
	}
	r := &read{Session: t.session.Name, ID: in.ID, Cursor: o.Next, Total: o.Total, Omitted: o.Omitted, Dropped: o.Dropped}
	switch {
	case in.Grep != "":
		err = c.found(o, q, t.session.ID, end, r)
	case o.Omitted > 0:
		c.around(o, in, over, end, r)
	default:
		c.page(o, over, runs, end, r)
	}
	r.Notes = c.notes
	return r, err
}

// found shows what grep found. The daemon counts only what it gives of that, so
// it is asked how much there is.
func (c *call) found(o api.Output, q api.Query, session string, end int64, r *read) error {
	r.Matches = &o.Matches
	r.Text = c.lines(o.Pieces)
	if o.Next < end {
		r.Next = fmt.Sprintf("there may be more: output with grep and cursor %d", o.Next)
	}
	q.Grep, q.Context, q.Head, q.Max = "", 0, 1, 1
	all, err := c.daemon.Output(c.ctx, session, q)
	r.Total = all.Total
	return err
}

// around shows the two sides of what was left out.
func (c *call) around(o api.Output, in outputArgs, over bool, end int64, r *read) {
	e := c.ends(o, nil, "the output")
	r.Cursor, r.Omitted = e.next, e.omitted
	gap := fmt.Sprintf("[... %d bytes left out; cursor %d reads on here ...]", e.omitted, e.next)
	switch {
	case in.Head > 0 && in.Tail == 0:
		r.Text = e.first + gap
	case in.Tail > 0 && in.Head == 0:
		r.Cursor = behind(o.Pieces, end)
		r.Text = gap + "\n" + r.leave(o.Pieces, e.last, e.rest, over)
	default:
		r.Text = strings.TrimSuffix(e.first, "\n") + "\n" + gap + "\n" + e.last + unfinished(e.rest)
	}
	r.Next = fmt.Sprintf("output with cursor %d reads what was left out", e.next)
}

// page shows a piece of the output. over: nothing comes behind its end; runs: it may
// come soon, and what is not finished waits for it.
func (c *call) page(o api.Output, over, runs bool, end int64, r *read) {
	// What another stream has behind it is not asked for, and where only a tail
	// was, o.Next stands before it.
	all := int64(len(joined(o.Pieces))) >= o.Total
	if all {
		r.Cursor = behind(o.Pieces, end)
	}
	text, rest, valid := clean(joined(o.Pieces))
	if !valid {
		c.invalid("the output")
	}
	to := r.Cursor
	over = all && over || text == "" && !(all && runs) // if that is all there is, or will be, it is shown
	if r.Text = r.leave(o.Pieces, text, rest, over); !all || r.Cursor < to && text != "" {
		r.Next = fmt.Sprintf("there is more: output with cursor %d", r.Cursor)
	}
}

// behind returns the cursor at which the output ends: end, unless more has come
// since that was known.
func behind(pieces []api.Piece, end int64) int64 {
	if n := len(pieces); n > 0 {
		end = max(end, pieces[n-1].At+int64(len(pieces[n-1].Data)))
	}
	return end
}

// leave returns a text without what its last piece ends with that is not
// finished: the next answer begins there. over: it is shown.
func (r *read) leave(pieces []api.Piece, text string, rest []byte, over bool) string {
	if over {
		return text + unfinished(rest)
	}
	r.Cursor = beginOf(rest, pieces, r.Cursor)
	return text
}

// lines shows what grep found: each line with its cursor, as grep -b does, and an
// ellipsis where more of it was cut off.
func (c *call) lines(pieces []api.Piece) string {
	var b strings.Builder
	var each cleaner
	valid := true
	for _, p := range pieces {
		mark := "-"
		if p.Match {
			mark = ":"
		}
		line, rest, ok := each.clean(p.Data)
		valid = valid && ok
		before, behind := p.Cut.Ellipses()
		fmt.Fprintf(&b, "%d%s%s%s%s%s\n", p.At, mark, before, strings.TrimSuffix(line, "\n"), unfinished(rest), behind)
	}
	if !valid {
		c.invalid("the output")
	}
	return b.String()
}
