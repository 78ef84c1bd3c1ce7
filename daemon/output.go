package daemon

import (
	"cmp"
	"context"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/internal/transcript"
	"gateway/session"
)

// streams of a session, as a transcript numbers them.
var streams = []session.Stream{session.Stdout, session.Stderr, session.Terminal}

// defaultRead is how much of the output one answer holds, and maxRead how much
// it may.
const (
	defaultRead = 64 << 10
	maxRead     = 4 << 20
)

// maxContext is how many lines around a match may be asked for.
const maxContext = 100

// read answers a query about a session, also one that is over.
func (d *Daemon) read(ctx context.Context, scope, name string, q api.Query) (api.Output, error) {
	log, id, err := d.transcriptOf(scope, name)
	if err != nil {
		return api.Output{}, err
	}
	from, to := transcript.Cursor(0), log.End()
	var why *gateway.JSONError // of the command, where the log does not know
	if q.Command != "" {
		c, err := d.commandByID(scope, q.Command, 1)
		if err == nil && c.Session != id {
			err = noCommand(q.Command)
		}
		if err != nil {
			return api.Output{}, err
		}
		from, why = transcript.Cursor(c.From), c.Why
		if c.Over() {
			to = transcript.Cursor(c.To)
		}
	}
	if q.To > 0 {
		to = min(to, transcript.Cursor(q.To))
	}
	which, err := streamsNamed(q.Stream)
	if err != nil {
		return api.Output{}, err
	}
	limit := cmp.Or(min(max(q.Max, 0), maxRead), defaultRead)
	since := max(from, transcript.Cursor(q.Since))
	view := log.View(since, to, which...)
	var o api.Output
	end := to
	switch {
	case q.Grep != "": // which looks at lines that began before since
		o, err = grep(ctx, log.View(from, to, which...), q, limit)
		end = transcript.Cursor(o.Next)
	case q.Head > 0 || q.Tail > 0:
		o, err = excerpt(view, min(q.Head, limit), min(q.Tail, limit))
	default:
		o, err = page(view, since, limit)
		end = transcript.Cursor(o.Next)
	}
	if o.Dropped > 0 {
		o.Why = cmp.Or(whyDropped(log, int64(since), int64(end)), why)
	}
	return o, err
}

// whyDropped returns why output between two cursors could not be kept; nil if it
// could, or if the limit took it.
func whyDropped(log *transcript.Log, from, to int64) *gateway.JSONError {
	return gateway.NewJSONError(log.Why(transcript.Cursor(from), transcript.Cursor(to)))
}

// transcriptOf returns a session's transcript, and its id.
func (d *Daemon) transcriptOf(scope, name string) (log *transcript.Log, id string, err error) {
	s, err := d.find(scope, name)
	if err == nil {
		return s.log, s.session.ID, nil
	}
	past, ok := d.pastOf(scope, name, err)
	if !ok {
		return nil, "", err
	}
	log, err = d.pastLogs.open(d.recordDir(past.ID), past.To)
	return log, past.ID, err
}

func streamsNamed(name string) ([]transcript.Stream, error) {
	if name == "" {
		return nil, nil // all
	}
	for _, s := range streams {
		if s.String() == name {
			return []transcript.Stream{transcript.Stream(s)}, nil
		}
	}
	return nil, usage("", "stream %q: use stdout, stderr or terminal", name)
}

func page(view transcript.View, from transcript.Cursor, limit int) (api.Output, error) {
	kept, err := view.Count()
	if err != nil {
		return api.Output{}, recordError(err)
	}
	p, err := view.Read(from, limit)
	if err != nil {
		return api.Output{}, recordError(err)
	}
	o := api.Output{Pieces: []api.Piece{}, Next: int64(p.Next), Dropped: p.Dropped, Total: kept}
	for _, c := range p.Chunks {
		o.Pieces = append(o.Pieces, piece(c))
	}
	return o, nil
}

func piece(c transcript.Chunk) api.Piece {
	return api.Piece{Stream: session.Stream(c.Stream).String(), At: int64(c.At), Time: stampOf(c.Time), Data: c.Data}
}

// excerpt returns the beginning and the end of a view.
func excerpt(view transcript.View, head, tail int) (api.Output, error) {
	e, err := view.Excerpt(head, tail)
	if err != nil {
		return api.Output{}, recordError(err)
	}
	o := api.Output{Pieces: []api.Piece{}, Dropped: e.Dropped, Omitted: e.Omitted, Total: e.Total, Next: int64(e.HeadEnd)}
	for _, c := range append(e.Head, e.Tail...) {
		o.Pieces = append(o.Pieces, piece(c))
	}
	return o, nil
}

// grep returns the lines that match, and those around them.
func grep(ctx context.Context, view transcript.View, q api.Query, limit int) (api.Output, error) {
	expression, err := compile(q.Grep)
	if err != nil {
		return api.Output{}, err
	}
	options := transcript.GrepOptions{Context: min(max(q.Context, 0), maxContext), Bytes: limit, Since: transcript.Cursor(q.Since)}
	found, err := view.Grep(ctx, expression, options)
	if err != nil {
		return api.Output{}, recordError(err)
	}
	o := api.Output{Pieces: []api.Piece{}, Dropped: found.Dropped, Matches: found.Matches, Next: int64(found.Next)}
	for _, line := range found.Lines {
		p := piece(line.Chunk)
		p.Match, p.Cut = line.Match, cut(line)
		o.Pieces = append(o.Pieces, p)
		o.Total += int64(len(p.Data))
	}
	return o, nil
}

func cut(line transcript.Line) api.Cut {
	switch {
	case line.Before && line.Behind:
		return api.CutBoth
	case line.Before:
		return api.CutBefore
	case line.Behind:
		return api.CutBehind
	}
	return ""
}
