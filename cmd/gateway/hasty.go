package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

var errUnread = errors.New("nobody reads it")

// A hasty file is written to like any other until the context ends. From then on a call
// waits no longer than [patience], and once it has done so in vain nothing more is written.
type hasty struct {
	file *os.File
	ctx  context.Context

	mu   sync.Mutex // held by who writes
	over bool       // guarded by mu
}

// Write implements [io.Writer].
func (h *hasty) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return 0, h.unread()
	}
	b = bytes.Clone(b) // which may be read longer than the call lasts
	n, err := 0, error(nil)
	done := make(chan struct{})
	go func() { // ends with the process where nobody reads
		n, err = h.file.Write(b)
		close(done)
	}()
	select {
	case <-done:
		return n, err
	case <-h.ctx.Done():
	}
	select {
	case <-done:
		return n, err
	case <-time.After(patience):
		h.over = true
		return 0, h.unread()
	}
}

func (h *hasty) unread() error {
	return &os.PathError{Op: "write", Path: h.file.Name(), Err: errUnread}
}

// hasten has nothing wait long for who reads the output, once the context has ended: what
// is to run then can't run else. It goes before anything is written.
func (o *output) hasten(ctx context.Context) {
	o.toStdout, o.toStderr = &hasty{file: o.stdout, ctx: ctx}, &hasty{file: o.stderr, ctx: ctx}
}
