package main

import (
	"io"
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
	kept    overflow  // guarded by mu
	reading bool      // somebody waits for from; guarded by mu
	err     error     // what from ended with; guarded by mu
}

func newInput(from io.Reader, fail func(error)) *input {
	in := &input{from: from, fail: fail, kept: overflow{room: inputInMemory, name: "stdin"}}
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
	for r.at == in.kept.size && in.err == nil {
		if in.reading {
			in.more.Wait()
			continue
		}
		in.fetch()
	}
	if r.at == in.kept.size {
		return 0, in.err
	}
	n, err := in.kept.ReadAt(p[:min(int64(len(p)), in.kept.size-r.at)], r.at)
	r.at += int64(n)
	return n, err
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
	if failed := in.kept.add(b[:n]); failed != nil {
		// Half an input that looks like a whole one is worse than none.
		in.fail(failed)
		err = failed
	}
	in.err = err
	in.more.Broadcast()
}
