package count

import (
	"context"
	"sync/atomic"

	"gateway/transport"
)

// A typist counts what is typed on a transport's terminals.
type typist struct {
	transport.Transport
	bytes atomic.Int64
}

// Terminal implements [transport.Transport].
func (t *typist) Terminal(ctx context.Context, command string, options transport.TerminalOptions) (transport.Terminal, error) {
	opened, err := t.Transport.Terminal(ctx, command, options)
	if err != nil {
		return nil, err
	}
	return typed{opened, &t.bytes}, nil
}

type typed struct {
	transport.Terminal
	bytes *atomic.Int64
}

func (t typed) Write(b []byte) (int, error) {
	n, err := t.Terminal.Write(b)
	t.bytes.Add(int64(n))
	return n, err
}
