package daemon

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/internal/phrase"
	"gateway/internal/transcript"
	"gateway/session"
	"gateway/transport"
)

// streams of a session, as a transcript numbers them.
var streams = []session.Stream{session.Stdout, session.Stderr, session.Terminal}

// defaultRead is how much of the output one answer holds, and maxRead how much
// it may.
const (
	defaultRead = 64 << 10
	maxRead     = 4 << 20
)

// commandByID returns a command, with the output that belongs to its result.
// The id says which session it is of.
func (d *Daemon) commandByID(scope, id string, limit int) (api.Command, error) {
	name, _, _ := strings.Cut(id, ".")
	s, err := d.find(scope, name)
	if err == nil {
		if c, ok := s.past(id); ok {
			return s.filled(c, limit), nil
		}
	} else if past, ok := d.pastOf(scope, name, err); ok {
		dir := d.recordDir(past.ID)
		if c, ok := recorded(dir, id); ok {
			log, err := d.pastLogs.open(dir, past.To)
			if err != nil {
				return api.Command{}, err
			}
			return filled(log, concluded(past, c, log), limit), nil
		}
	} else if gateway.Code(err) == "daemon.unreachable" { // nobody knows yet
		return api.Command{}, err
	}
	return api.Command{}, noCommand(id)
}

func noCommand(id string) error {
	return &transport.Error{Code: "session.not_found", Message: fmt.Sprintf("daemon: there is no record of command %q", id), Hint: "records are kept for a limited time, and on a full disk not at all: it may have run"}
}

// past finds a command of the session, as it is now.
func (s *live) past(id string) (api.Command, bool) {
	s.mu.Lock()
	c := s.nowLocked(s.notes.command(id))
	s.mu.Unlock()
	if c == nil {
		c, ok := recorded(s.record.dir, id)
		return concluded(s.info(), c, s.log), ok
	}
	return *c, true
}

// recorded finds a command in a record. One whose result is not there was over
// where the next one begins, if that is there.
func recorded(dir, id string) (found api.Command, ok bool) {
	var next bool
	_ = loadCommands(dir, func(c api.Command) { // what can be read counts
		switch {
		case c.ID == id:
			found, ok = c, true
		case ok && !next && !found.Over():
			if next = true; number(c.ID) == number(id)+1 {
				found.To = c.From
			} else { // what follows may be another's
				found.Why = &gateway.JSONError{Code: "transcript.disk", Message: "daemon: where its output ends could not be recorded"}
			}
		}
	})
	return found, ok
}

func (s *live) filled(c api.Command, limit int) api.Command {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	limit = bounded(limit)
	if c.Result == nil || c.ID != last.id || len(last.stdout) > limit || len(last.stderr) > limit {
		return filled(s.log, c, limit)
	}
	result := *c.Result
	result.Stdout, result.Stderr, result.Truncated = last.stdout, last.stderr, false
	c.Result = &result
	return c
}

// bounded returns how much of each stream a result comes with.
func bounded(limit int) int { return cmp.Or(min(max(limit, 0), maxRead), resultLimit) }

// filled gives a command's result the streams that the transcript has of it.
func filled(log *transcript.Log, c api.Command, limit int) api.Command {
	if c.Result == nil {
		return c
	}
	limit = bounded(limit)
	result := *c.Result
	for _, stream := range streams {
		view := log.View(transcript.Cursor(c.From), transcript.Cursor(c.To), transcript.Stream(stream))
		head, tail := limit-limit/2, limit/2
		excerpt, err := view.Excerpt(head+phrase.Margin, tail+phrase.Margin)
		if err != nil {
			result.Truncated = true // what is missing shows in the counts
		}
		data := transcript.Bytes(append(excerpt.Head, excerpt.Tail...))
		if len(data) > limit {
			first, last := phrase.Ends(data, data, head, tail)
			data = append(first, last...)
		}
		switch stream {
		case session.Stdout:
			result.Stdout = data
		case session.Stderr:
			result.Stderr = data
		case session.Terminal:
			result.Terminal = data
		}
	}
	result.Truncated = result.Truncated || int64(len(result.Stdout)) < result.StdoutBytes || int64(len(result.Stderr)) < result.StderrBytes
	c.Why = cmp.Or(c.Why, whyDropped(log, c.From, c.To)) // it may be gone since
	c.Result = &result
	return c
}

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

// resultLimit is how much of each stream a result comes with, if nothing else is asked for.
const resultLimit = 1 << 20

// maxContext is how many lines around a match may be asked for.
const maxContext = 100
