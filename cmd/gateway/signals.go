package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"gateway/gateway"
)

// patience is how long a command may take to end after the first signal, unless
// it says otherwise.
const patience = 5 * time.Second

// A departure is what signals need to know of what runs, to end the process.
type departure struct {
	gateway  atomic.Pointer[gateway.Gateway] // what a second signal closes
	patience atomic.Int64                    // how long after the first one, in nanoseconds
	// givenUp is closed when nobody waits any more for what runs on many hosts, or
	// in a session.
	givenUp chan struct{}
	// leaving is called with the status when a signal ends the process before what
	// runs on many hosts could say how it ended.
	leaving atomic.Pointer[func(status int)]
	// left is the status when signals have hung up what ran, but not on many hosts.
	left atomic.Int32
}

// An interruption is the cause of a context that a signal has ended.
type interruption struct{ signal syscall.Signal }

func (i *interruption) Error() string { return fmt.Sprintf("gateway was told to stop (%v)", i.signal) }

// ErrorCode returns the error code of the contract.
func (i *interruption) ErrorCode() string { return "cmd.interrupted" }

// ErrorHint returns the empty string: whoever sent the signal knows.
func (i *interruption) ErrorHint() string { return "" }

func (i *interruption) status() int { return 128 + int(i.signal) }

// hangUp gives what runs on many hosts so long after the context's end, and hangs up
// on it then, so that there is time left for the summary.
func (a *app) hangUp(ctx context.Context, limit time.Duration) {
	a.patience.Store(int64(limit + 3*time.Second))
	context.AfterFunc(ctx, func() { // the process does not wait for it
		<-time.After(limit)
		a.gateway.Load().Close()
	})
}

// watchSignals makes the first signal end the context, and the second one, or
// a command that does not end, hang up and the process end. The returned function
// ends that.
func (a *app) watchSignals() (stop func()) {
	// Go lets SIGPIPE kill the process when stdout has nobody at its end. With
	// a receiver, the write returns EPIPE. Ignoring the signal would do that
	// too, but for everything that is started on this machine as well.
	nobody := make(chan os.Signal, 1)
	signal.Notify(nobody, syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(s) {
			// nohup, and a shell without job control for what it puts in the
			// background, want the signal to stay ignored: here, but not in what is
			// started on this machine, which could not be interrupted or hung up.
			signal.Notify(nobody, s)
		} else {
			signal.Notify(signals, s)
		}
	}
	done := make(chan struct{})
	go func() { // ends with done, or with the process
		var first *interruption
		select {
		case s := <-signals:
			first = a.received(s)
		case <-done:
			return
		}
		a.cancel(first)
		begun, over := time.Now(), time.After(time.Duration(a.patience.Load()))
		for waiting := true; waiting; {
			select {
			case s := <-signals:
				if sameEvent(first.signal, s, time.Since(begun)) {
					continue
				}
				first, waiting = a.received(s), false
			case <-over:
				waiting = false
			case <-done:
				return
			}
		}
		a.leave(first.status(), signals, done)
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// sameEvent reports whether a signal that comes so long behind the first one tells of
// nothing new. timeout(1) sends its own to the program, and at once to the group that
// this is in. Of a terminal's end the shell tells, and with the shell's end the kernel.
func sameEvent(first syscall.Signal, s os.Signal, behind time.Duration) bool {
	if s == syscall.SIGHUP {
		return first == syscall.SIGHUP && behind < time.Second
	}
	return s == first && behind < 10*time.Millisecond
}

// received notes a signal. The terminal shows ^C where the cursor was.
func (a *app) received(s os.Signal) *interruption {
	if s == syscall.SIGINT {
		a.out.echoed()
	}
	return &interruption{s.(syscall.Signal)}
}

// hurry is how long the process may take to end once it hangs up. What was
// started hangs on descriptors of this process too, and goes with them at the
// latest.
const hurry = time.Second

// leave hangs up and ends the process, in no time if there is one more signal.
// What runs ends by that, and says what is known of it; on many hosts it waits for
// none of them any more after half of the time, and in a session at once.
func (a *app) leave(status int, signals <-chan os.Signal, done <-chan struct{}) {
	hungUp := make(chan struct{})
	if g := a.gateway.Load(); g != nil {
		go func() { // ends with the process
			defer close(hungUp)
			g.Close()
		}()
	}
	many, over, patient := a.leaving.Load(), hungUp, hurry/2
	if many != nil {
		over = nil // it comes to its end, and that is done
	} else {
		a.left.Store(int32(status))
		patient = 0
	}
	half, whole := time.After(patient), time.After(hurry)
	for waiting := true; waiting; {
		select {
		case <-half:
			close(a.givenUp)
		case <-done:
			return
		case <-over: // one host's command has its end now, if it can have one
			over, whole = nil, time.After(hurry/2)
		case <-whole:
			waiting = false
		case <-signals:
			waiting = false
		}
	}
	if many != nil {
		(*many)(status)
	}
	a.console.restore()
	os.Exit(status)
}

// interrupted returns the signal that an error stands for.
func interrupted(err error) (*interruption, bool) { return errors.AsType[*interruption](err) }
