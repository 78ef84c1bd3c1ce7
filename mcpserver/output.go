package mcpserver

import (
	"fmt"
	"strings"

	"gateway/daemon/api"
)

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
	if in.Cursor > end {
		return nil, usage("use the cursor of an earlier answer", "the output ends at cursor %d, before %d", end, in.Cursor)
	}
	q := api.Query{Command: in.ID, Stream: in.Stream, Since: in.Cursor, Head: in.Head, Tail: in.Tail, Grep: in.Grep, Context: in.Context, Max: c.config.Output}
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
