package main

import (
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"gateway/gateway"
	"gateway/transport"
)

// An attachment connects the person's terminal with a command's.
type attachment struct {
	console *console
	resized chan os.Signal // closed by stop
	once    sync.Once
}

func newAttachment(c *console) *attachment {
	return &attachment{console: c, resized: make(chan os.Signal, 1)}
}

// attach lets the person at the terminal type to a command that runs on one.
// Nobody does where the output is for a program; prompts are then answered as
// for any other command.
func (a *app) attach(c *gateway.Command, f *execFlags, show *show) *attachment {
	at := newAttachment(a.console)
	if f.tty {
		c.Session.Size, c.Session.Term = a.console.size(), os.Getenv("TERM")
		c.Echo = isTerminal(os.Stdin) && a.out.format == "text"
	}
	c.Started = func(live gateway.Live) {
		show.started()
		if !c.Echo {
			return
		}
		if err := a.console.makeRaw(); err != nil {
			a.warn("the terminal stays as it is: " + err.Error())
		}
		at.follow(c.Session.Size, live.Resize)
		go forward(live)
	}
	return at
}

// follow tells about every change of the terminal's size, until stop. told is the size
// that is known: on the way to a host it may have changed already.
func (at *attachment) follow(told transport.Size, resize func(transport.Size) error) {
	signal.Notify(at.resized, syscall.SIGWINCH)
	if size := at.console.size(); size != told {
		_ = resize(size) // as below
	}
	go func() { // ends with stop
		for range at.resized {
			_ = resize(at.console.size()) // a size that is wrong for a moment
		}
	}()
}

// stop gives the terminal back. It may be called more than once.
func (at *attachment) stop() {
	at.once.Do(func() {
		signal.Stop(at.resized) // nothing is sent to it any more
		close(at.resized)
	})
	at.console.restore()
}

// forward passes on what is typed, until it cannot be passed on. Its last Read
// stays until the process ends.
func forward(to io.Writer) { _, _ = io.Copy(to, os.Stdin) }

// leavable passes on what is typed, up to the ~. with which the person leaves.
type leavable struct {
	pass  func([]byte)
	leave func()

	escapes escapes
}

// Write implements [io.Writer].
func (l *leavable) Write(b []byte) (int, error) {
	typed, left := l.escapes.filter(b)
	l.pass(typed)
	if left {
		l.leave()
		return 0, errLeft
	}
	return len(b), nil
}
