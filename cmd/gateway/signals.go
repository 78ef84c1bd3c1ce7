package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// patience is how long a command may take to end after the first signal, unless
// it says otherwise.
const patience = 5 * time.Second

// An interruption is the cause of a context that a signal has ended.
type interruption struct{ signal syscall.Signal }

func (i *interruption) Error() string { return fmt.Sprintf("gateway was told to stop (%v)", i.signal) }

// ErrorCode returns the error code of the contract.
func (i *interruption) ErrorCode() string { return "cmd.interrupted" }

// ErrorHint returns the empty string: whoever sent the signal knows.
func (i *interruption) ErrorHint() string { return "" }

func (i *interruption) status() int { return 128 + int(i.signal) }

// watchSignals makes the first signal end the context, and the second one, or
// a command that does not end, the process. The returned function ends that.
func (a *app) watchSignals() (stop func()) {
	// Go lets SIGPIPE kill the process when stdout has nobody at its end. With
	// a receiver, the write returns EPIPE. Ignoring the signal would do that
	// too, but for everything that is started on this machine as well.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		// nohup, and a shell without job control for what it puts in the
		// background, want the signal to stay ignored.
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	done := make(chan struct{})
	go func() { // ends with done, or with the process
		var first *interruption
		select {
		case s := <-signals:
			first = &interruption{s.(syscall.Signal)}
		case <-done:
			return
		}
		a.cancel(first)
		select {
		case s := <-signals:
			first = &interruption{s.(syscall.Signal)}
		case <-time.After(time.Duration(a.patience.Load())):
		case <-done:
			return
		}
		a.hangUp()
		if leave := a.leaving.Load(); leave != nil {
			(*leave)(first.status())
		}
		a.console.restore()
		if say := a.parting.Load(); say != nil {
			(*say)()
		}
		os.Exit(first.status())
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// hurry is how long hanging up may take. What was started hangs on descriptors
// of this process too, and goes with them at the latest.
const hurry = time.Second

// hangUp ends what was started.
func (a *app) hangUp() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if g := a.gateway.Load(); g != nil {
			g.Close()
		}
	}()
	select {
	case <-done:
	case <-time.After(hurry):
	}
}

// interrupted returns the signal that an error stands for.
func interrupted(err error) (*interruption, bool) {
	var i *interruption
	return i, errors.As(err, &i)
}
