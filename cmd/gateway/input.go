package main

import (
	"io"
	"os"
	"sync"
)

// inputInMemory is how much of a stdin is kept in memory for those who have not
// read it yet; the rest goes to a file.
const inputInMemory = 1 << 20

// An input gives each of many readers the same bytes, which are read once, when
// the first of them wants them: what no reader asks for is not read.
type input struct {
	from io.Reader
	fail func(error) // told when the bytes can't be kept

	mu      sync.Mutex
	more    sync.Cond // something changed below
	head    []byte    // the first bytes; guarded by mu
	file    *os.File  // those behind head, without a name; guarded by mu
	size    int64     // guarded by mu
	reading bool      // somebody waits for from; guarded by mu
	err     error     // what from ended with; guarded by mu
}

func newInput(from io.Reader, fail func(error)) *input {
	in := &input{from: from, fail: fail}
	in.more.L = &in.mu
	return in
}

// reader returns a reader of the whole.
func (in *input) reader() io.Reader { return &inputReader{in: in} }

// inputReader is one reader's place.
type inputReader struct {
	in *input
	at int64
}

// Read implements [io.Reader].
func (r *inputReader) Read(p []byte) (int, error) {
	in := r.in
	in.mu.Lock()
	defer in.mu.Unlock()
	for r.at == in.size && in.err == nil {
		if in.reading {
			in.more.Wait()
			continue
		}
		in.fetch()
	}
	if r.at == in.size {
		return 0, in.err
	}
	n, err := in.copy(p, r.at)
	r.at += int64(n)
	return n, err
}

// copy returns bytes that are there. The caller holds mu.
func (in *input) copy(p []byte, at int64) (int, error) {
	if at < int64(len(in.head)) {
		return copy(p, in.head[at:]), nil
	}
	p = p[:min(int64(len(p)), in.size-at)]
	return in.file.ReadAt(p, at-int64(len(in.head)))
}

// fetch reads once from the source. The caller holds mu, which is free
// meanwhile.
func (in *input) fetch() {
	in.reading = true
	in.mu.Unlock()
	b := make([]byte, 32<<10)
	n, err := in.from.Read(b)
	in.mu.Lock()
	in.reading = false
	if kept := in.keep(b[:n]); kept != nil {
		// Half an input that looks like a whole one is worse than none.
		in.fail(kept)
		err = kept
	}
	in.err = err
	in.more.Broadcast()
}

func (in *input) keep(b []byte) error {
	if room := inputInMemory - len(in.head); in.file == nil && room > 0 {
		n := min(room, len(b))
		in.head, b = append(in.head, b[:n]...), b[n:]
		in.size += int64(n)
	}
	if len(b) == 0 {
		return nil
	}
	if in.file == nil {
		file, err := os.CreateTemp("", "gateway-stdin-*") // 0600
		if err != nil {
			return err
		}
		os.Remove(file.Name())
		in.file = file // closed by the end of the process
	}
	n, err := in.file.WriteAt(b, in.size-int64(len(in.head)))
	in.size += int64(n)
	return err
}
