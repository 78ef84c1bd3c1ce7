package transport

import (
	"context"
	"sync"
)

// An Ending is how a [Program] ends, for who implements one: that has its Wait, Done and
// AfterDone.
type Ending struct {
	over context.Context // ends once exit and err are final
	end  func()
	once sync.Once
	exit Exit
	err  error
}

// NewEnding returns that of a program that runs.
func NewEnding() *Ending {
	over, end := context.WithCancel(context.Background())
	return &Ending{over: over, end: end}
}

// Finish says how the program ended. The first call counts.
func (e *Ending) Finish(exit Exit, err error) {
	e.once.Do(func() {
		e.exit, e.err = exit, err
		e.end()
	})
}

// Wait implements [Program].
func (e *Ending) Wait() (Exit, error) {
	<-e.over.Done()
	return e.exit, e.err
}

// Done implements [Program].
func (e *Ending) Done() <-chan struct{} { return e.over.Done() }

// AfterDone implements [Program].
func (e *Ending) AfterDone(f func()) { context.AfterFunc(e.over, f) }
