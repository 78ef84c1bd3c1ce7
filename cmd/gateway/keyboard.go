package main

import (
	"bytes"
	"context"
	"sync"
	"time"

	"gateway/gateway"
)

// A keyboard passes on what a person types: one piece at a time, so that their
// order is kept, and what has come meanwhile as the next one.
type keyboard struct {
	send func([]byte) error
	// interrupt is what ^C does where the program does not take what was sent before
	// it. Set before the first key; nil: it waits like any other key.
	interrupt func()

	mu      sync.Mutex
	pending []byte            // guarded by mu
	program int               // guarded by mu: counts those that were typed to
	waiting []chan<- struct{} // guarded by mu: closed when nothing is pending
	wake    chan struct{}     // something is pending
	sends   int               // guarded by mu: counts what is sent
	sending bool              // guarded by mu: the last of that is under way
	typed   int               // guarded by mu: bytes that were sent to this program
	heard   int               // guarded by mu: counts what has come from it
}

// stuckAfter is how long what was typed may lie before its program counts as one
// that does not read, and ttyRoom how much of it a terminal holds: what stands behind
// that, also a ^C, has no effect before the program reads.
const (
	stuckAfter = 500 * time.Millisecond
	ttyRoom    = 4 << 10
)

// The keys.
const (
	ctrlC = 3
	ctrlD = 4
)

func newKeyboard(send func([]byte) error) *keyboard {
	return &keyboard{send: send, wake: make(chan struct{}, 1)}
}

// press queues keys. It never blocks.
func (k *keyboard) press(b []byte) {
	k.mu.Lock()
	k.pending = append(k.pending, b...)
	if k.sending && bytes.IndexByte(b, ctrlC) >= 0 {
		k.breakInLocked()
	}
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// hear notes that something has come from the program, or from its terminal, which
// shows a ^C that it takes.
func (k *keyboard) hear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.heard++
}

// breakInLocked interrupts the program of a ^C if what stands before it is not
// taken: it is still being sent, or so much that a terminal lets the key lie, and
// nothing comes of it. What was typed before the key goes with it, as on a terminal.
func (k *keyboard) breakInLocked() {
	if k.interrupt == nil {
		return
	}
	of, program, heard := k.sends, k.program, k.heard
	time.AfterFunc(stuckAfter, func() {
		k.mu.Lock()
		stuck := k.sends == of && k.program == program && (k.sending || k.typed > ttyRoom && k.heard == heard)
		if stuck {
			k.pending = k.pending[bytes.LastIndexByte(k.pending, ctrlC)+1:]
		}
		k.mu.Unlock()
		if stuck {
			k.interrupt()
		}
	})
}

// piece sends keys, which may hold a ^C themselves.
func (k *keyboard) piece(b []byte) error {
	k.mu.Lock()
	k.sends++
	k.sending = true
	k.typed += len(b)
	if bytes.IndexByte(b, ctrlC) >= 0 {
		k.breakInLocked()
	}
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		k.sending = false
		k.mu.Unlock()
	}()
	return k.send(b)
}

// next drops what the program has not got: it is not for another one.
func (k *keyboard) next() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pending, k.typed = nil, 0
	k.program++
}

// flush waits until all has been sent, but not for long.
func (k *keyboard) flush() {
	sent := make(chan struct{})
	k.mu.Lock()
	k.waiting = append(k.waiting, sent)
	k.mu.Unlock()
	k.press(nil)
	select {
	case <-sent:
	case <-time.After(time.Second):
	}
}

// sent tells those who wait for it, unless there is more.
func (k *keyboard) sent() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.pending) > 0 {
		return
	}
	for _, waiting := range k.waiting {
		close(waiting)
	}
	k.waiting = nil
}

func (k *keyboard) take() (b []byte, program int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	b, k.pending = k.pending, nil
	return b, k.program
}

func (k *keyboard) isFor(program int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.program == program
}

// run sends until ctx ends.
func (k *keyboard) run(ctx context.Context) {
	for {
		select {
		case <-k.wake:
		case <-ctx.Done():
			return
		}
		b, program := k.take()
		for patient := time.Now().Add(time.Second); len(b) > 0 && k.isFor(program) && ctx.Err() == nil; {
			// A command that has only just begun does not read yet.
			if err := k.piece(b); gateway.Code(err) != "usage" || time.Now().After(patient) {
				break
			}
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		k.sent()
	}
}
