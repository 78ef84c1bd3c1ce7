package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/session"
)

// A reader reads the output of a session, or of one of its commands.
type reader struct {
	app     *app
	client  *client.Client
	session string
	query   api.Query
	one     bool // stream: it goes to stdout, whichever it is
	to      int64
	over    bool // nothing more comes

	sanitizers map[string]*sanitizer // by stream, of those that a terminal shows

	next    int64
	matches int
	dropped int64
	why     *gateway.JSONError // some of that is not there; nil: a limit took it
	pieces  []pieceEntry       // for JSON
	bytes   int
}

// pieceEntry is a piece of output as a program gets it.
type pieceEntry struct {
	Stream     string    `json:"stream"`
	At         int64     `json:"at"`
	Time       time.Time `json:"time"`
	Data       *string   `json:"data,omitempty"`
	DataBase64 *string   `json:"data_base64,omitempty"`
	Match      bool      `json:"match,omitempty"`
	Cut        api.Cut   `json:"cut,omitempty"`
}

const (
	pageSize = 1 << 20 // of one request
	jsonSize = 4 << 20 // of one object
)

// bounds finds out where what is to be read begins and ends now.
func (r *reader) bounds(ctx context.Context) error {
	s, err := r.client.Session(ctx, r.session)
	if err != nil {
		return err
	}
	r.to, r.over = s.To, s.State.Over()
	if r.query.Command == "" {
		r.next = r.query.Since
		return nil
	}
	c, err := r.client.Command(ctx, r.query.Command, 1)
	if err != nil {
		return err
	}
	r.query.Since = max(r.query.Since, c.From)
	r.next = r.query.Since
	if c.Over() {
		r.to, r.over = c.To, true
	}
	return nil
}

var errEnough = errors.New("enough")

// pages reads from the query's cursor to the end, and gives each every piece.
func (r *reader) pages(ctx context.Context, each func(api.Piece) error) error {
	query := r.query
	query.Max = pageSize
	for query.Since < r.to {
		o, err := r.client.Output(ctx, r.session, query)
		if err != nil {
			return err
		}
		r.dropped += o.Dropped
		r.why = cmp.Or(r.why, o.Why)
		r.matches += o.Matches
		for _, p := range o.Pieces {
			if err := each(p); err != nil {
				if errors.Is(err, errEnough) {
					return nil
				}
				return err
			}
		}
		if o.Next <= query.Since {
			break // there is no more
		}
		query.Since, r.next = o.Next, o.Next
		if query.Grep != "" && r.bytes > jsonSize-pageSize {
			break // another page may be too much, and is counted as a whole
		}
	}
	return nil
}

// write shows a piece.
func (r *reader) write(p api.Piece) error {
	a := r.app
	r.next = max(r.next, p.At+int64(len(p.Data)))
	if a.out.format == "text" {
		if r.query.Grep != "" {
			before, behind := p.Cut.Ellipses()
			p.Data = slices.Concat([]byte(before), p.Data, []byte(behind+"\n")) // it is a line
		}
		if t := r.sanitizer(p.Stream); t != nil {
			p.Data = t.take(p.Data)
		}
		return r.text(p.Stream, p.Data)
	}
	if len(p.Data) == 0 && r.query.Grep == "" {
		return nil
	}
	entry := pieceEntry{Stream: cmp.Or(p.Stream, r.query.Stream), At: p.At, Time: p.Time.UTC(), Match: p.Match, Cut: p.Cut}
	entry.Data, entry.DataBase64 = gateway.Text(p.Data)
	if a.out.format == "jsonl" {
		return a.out.json(entry)
	}
	r.pieces = append(r.pieces, entry)
	if r.bytes += len(p.Data); r.bytes >= jsonSize && r.query.Grep == "" {
		return errEnough
	}
	return nil
}

// text shows bytes of a stream.
func (r *reader) text(stream string, b []byte) error {
	to := r.app.out.errors()
	if r.isOut(stream) {
		to = r.app.out
	}
	_, err := to.Write(b)
	return err
}

// isOut reports whether a stream goes to stdout.
func (r *reader) isOut(stream string) bool { return r.one || stream == session.Stdout.String() }

// sanitizer returns that of a stream which goes to a terminal, or nil.
func (r *reader) sanitizer(stream string) *sanitizer {
	file := r.app.out.stderr
	if r.isOut(stream) {
		file = r.app.out.stdout
	}
	if r.sanitizers[stream] == nil && isTerminal(file) {
		if r.sanitizers == nil {
			r.sanitizers = make(map[string]*sanitizer)
		}
		r.sanitizers[stream] = new(sanitizer)
	}
	return r.sanitizers[stream]
}

// follow shows what comes, until there is no more to come.
func (r *reader) follow(ctx context.Context) error {
	if r.over {
		return nil
	}
	err := r.client.Follow(ctx, r.session, r.next, func(event api.Event) error {
		switch {
		case event.Dropped > 0:
			r.app.warn(missing(event.Dropped, event.Why))
		case event.Missed > 0 && r.query.Command != "":
			return r.rest(ctx)
		case event.Piece != nil && (r.query.Stream == "" || event.Piece.Stream == r.query.Stream):
			return r.write(*event.Piece)
		case event.Event == "result" && event.Command.ID == r.query.Command:
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) || gateway.Code(err) == "session.closed" {
		return nil
	}
	return err
}

// rest shows what is left of the command, if it is over: that may be among what
// the daemon does not know any more.
func (r *reader) rest(ctx context.Context) error {
	c, err := r.client.Command(ctx, r.query.Command, 1)
	if err != nil || !c.Over() {
		return err
	}
	r.query.Since, r.to = r.next, c.To
	if err := r.pages(ctx, r.write); err != nil {
		return err
	}
	return errEnough
}

func missing(bytes int64, why *gateway.JSONError) string {
	text := fmt.Sprintf("%d bytes of the output are no longer there", bytes)
	if why != nil {
		text += ": " + why.Message
	}
	return text
}

// end says what else there is to say.
func (r *reader) end(cursor bool) error {
	a := r.app
	for _, stream := range slices.Sorted(maps.Keys(r.sanitizers)) {
		if err := r.text(stream, r.sanitizers[stream].flush()); err != nil {
			return err
		}
	}
	if r.dropped > 0 {
		a.warn(missing(r.dropped, r.why))
	}
	if cursor {
		a.out.say(fmt.Sprintf("gateway: the cursor is %d", r.next))
	}
	if a.out.format != "json" {
		return nil
	}
	var matches *int
	if r.query.Grep != "" {
		matches = &r.matches
	}
	return a.out.json(struct {
		Session string       `json:"session"`
		Pieces  []pieceEntry `json:"pieces"`
		Next    int64        `json:"next"`
		Dropped int64        `json:"dropped"`
		Matches *int         `json:"matches,omitempty"`
	}{r.session, append([]pieceEntry{}, r.pieces...), r.next, r.dropped, matches})
}
