package client

import (
	"bytes"
	"context"

	"gateway/daemon/api"
)

// isBehind reports whether a line that was found matches with what came behind
// wait.Since, as the daemon's own waiting wants it. Where that can't be read, the
// line counts.
func (c *Client) isBehind(ctx context.Context, command api.Command, wait api.Wait, line api.Piece) bool {
	if line.At >= wait.Since {
		return true
	}
	expression, err := api.Compile(wait.Match)
	if err != nil {
		return true
	}
	// As it was found it may be cut.
	o, err := c.Output(ctx, command.Session, api.Query{Command: command.ID, Stream: line.Stream, Since: line.At})
	if err != nil {
		return true
	}
	var text []byte
	known, grown := 0, false
	for _, p := range o.Pieces {
		data, _, ended := bytes.Cut(p.Data, []byte("\n"))
		text = append(text, data...)
		known += int(min(int64(len(data)), max(wait.Since-p.At, 0)))
		end := p.At + int64(len(data))
		if grown = end > wait.Since || ended && end == wait.Since; ended {
			break
		}
	}
	return grown && expression.Behind(bytes.TrimSuffix(text, []byte("\r")), known)
}

// Matched is [Client.Wait] for a line of a command that is over, also where its
// session is.
func (c *Client) Matched(ctx context.Context, command api.Command, wait api.Wait) (api.Waited, error) {
	waited := api.Waited{Command: &command}
	o, err := c.Output(ctx, command.Session, api.Query{Command: command.ID, Since: wait.Since, Grep: wait.Match})
	for _, p := range o.Pieces {
		if p.Match && c.isBehind(ctx, command, wait, p) {
			waited.Met, waited.Line, waited.At = true, string(p.Data), p.At
			break
		}
	}
	return waited, err
}
