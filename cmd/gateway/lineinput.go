package main

import (
	"bytes"
	"cmp"
	"io"
	"sync"
)

// A lineInput is what an editor reads: what is typed while it has the terminal.
type lineInput struct {
	mu     sync.Mutex
	more   *sync.Cond
	typed  []byte
	closed bool
	drop   bool // the line was given up
}

func newLineInput() *lineInput {
	l := &lineInput{}
	l.more = sync.NewCond(&l.mu)
	return l
}

// press adds what was typed. ^C gives the line up, and begins another one.
func (l *lineInput) press(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range b {
		if key != ctrlC {
			l.typed = append(l.typed, key)
			continue
		}
		l.typed = append(l.typed, 5, 21, '\r') // to the end, and delete all
		l.drop = true
	}
	l.more.Signal()
}

// dropped reports, once, that the person gave the line up.
func (l *lineInput) dropped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	drop := l.drop
	l.drop = false
	return drop
}

// Read ends behind a ^D: an editor that takes it for the end forgets what it has read
// behind it.
func (l *lineInput) Read(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.typed) == 0 && !l.closed {
		l.more.Wait()
	}
	if l.closed {
		return 0, io.EOF
	}
	n := copy(b, l.typed[:cmp.Or(bytes.IndexByte(l.typed, ctrlD)+1, len(l.typed))])
	l.typed = l.typed[n:]
	return n, nil
}

// Close ends a Read.
func (l *lineInput) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.more.Broadcast()
	return nil
}
