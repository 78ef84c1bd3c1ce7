package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"

	"gateway/daemon/api"
)

// stream calls each with every line of an answer.
func stream[T any](ctx context.Context, c *Client, method, path string, body any, decode func([]byte, *T) error, each func(T) error) error {
	response, err := c.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewReaderSize(response.Body, 128<<10)
	for {
		var value T
		line, err := nextLine(lines)
		if err == nil {
			err = decode(line, &value)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return cause(ctx)
		case err != nil:
			return unreachable(err)
		}
		if err := each(value); err != nil {
			return err
		}
	}
}

// nextLine returns a line, which is valid until the next one, or io.EOF.
func nextLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) { // a result
		begin := bytes.Clone(line)
		line, err = r.ReadBytes('\n')
		line = append(begin, line...)
	}
	if errors.Is(err, io.EOF) && len(line) > 0 {
		err = io.ErrUnexpectedEOF
	}
	return line, err
}

func decodeLine[T any](line []byte, value *T) error { return json.Unmarshal(line, value) }

// decodeEvent is decodeLine for events: their data goes around package json, which
// takes longer for it than everything else on its way (12 s of 15 for 1 GiB). No string
// in JSON holds a bare quote, so the name can't be a part of one.
func decodeEvent(line []byte, event *api.Event) error {
	before, rest, found := bytes.Cut(line, []byte(`"data_base64":"`))
	data, after, closed := bytes.Cut(rest, []byte(`"`))
	if !found || !closed {
		return decodeLine(line, event)
	}
	short := append(bytes.Clone(before), `"data_base64":"`...)
	if err := json.Unmarshal(append(append(short, '"'), after...), event); err != nil {
		return err
	}
	if event.Piece == nil {
		return decodeLine(line, event)
	}
	var err error
	event.Piece.Data, err = base64.StdEncoding.AppendDecode([]byte{}, data)
	return err
}
