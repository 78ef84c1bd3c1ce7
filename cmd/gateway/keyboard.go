package main

import (
	"context"
	"sync"
	"time"

	"gateway/gateway"
)

// A keyboard passes on what a person types: one piece at a time, so that their
// order is kept, and what has come meanwhile as the next one.
type keyboard struct {
	send func([]byte) error

	mu      sync.Mutex
	pending []byte            // guarded by mu
	program int               // guarded by mu: counts those that were typed to
	waiting []chan<- struct{} // guarded by mu: closed when nothing is pending
	wake    chan struct{}     // something is pending
}

func newKeyboard(send func([]byte) error) *keyboard {
	return &keyboard{send: send, wake: make(chan struct{}, 1)}
}

// press queues keys. It never blocks.
func (k *keyboard) press(b []byte) {
	k.mu.Lock()
	k.pending = append(k.pending, b...)
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// next drops what the program has not got: it is not for another one.
func (k *keyboard) next() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pending = nil
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
			if err := k.send(b); gateway.Code(err) != "usage" || time.Now().After(patient) {
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
