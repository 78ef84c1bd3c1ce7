package main

import (
	"os"
	"sync"

	"golang.org/x/term"

	"gateway/transport"
)

// A console is the terminal of whoever started gateway. Its methods may be
// called concurrently.
type console struct {
	asking sync.Mutex // one question at a time

	mu    sync.Mutex
	modes *term.State // guarded by mu: those of stdin before it was raw; nil: it is not
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// makeRaw has stdin pass every key on as it is, until restore.
func (c *console) makeRaw() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	modes, err := term.MakeRaw(int(os.Stdin.Fd()))
	if err == nil {
		c.modes = modes
	}
	return err
}

func (c *console) isRaw() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.modes != nil
}

// restore gives the terminal back as it was found. It may be called at any
// time, and more than once.
func (c *console) restore() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.modes == nil {
		return
	}
	_ = term.Restore(int(os.Stdin.Fd()), c.modes) // the terminal may be gone
	c.modes = nil
}

// size returns how large the terminal is; zero if there is none.
func (c *console) size() transport.Size {
	for _, f := range []*os.File{os.Stdout, os.Stdin, os.Stderr} {
		if cols, rows, err := term.GetSize(int(f.Fd())); err == nil {
			return transport.Size{Cols: cols, Rows: rows}
		}
	}
	return transport.Size{}
}
