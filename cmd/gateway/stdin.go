package main

import (
	"context"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// hasData reports, without waiting, whether something can be read from f that
// is not read without -i: bytes in a pipe or a socket, or the rest of a file.
func hasData(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		at, err := f.Seek(0, io.SeekCurrent)
		return err == nil && at < info.Size()
	case mode&(os.ModeNamedPipe|os.ModeSocket) != 0:
		n, err := unix.IoctlGetInt(int(f.Fd()), ioctlReadable)
		return err == nil && n > 0
	}
	return false
}

// maxScript is one more than a session takes: that it is too long is for the
// session to say.
const maxScript = 4<<20 + 1

// foreign returns the first line of a script that names the program to read it, if that
// is no shell. A shell would run what it can of it, such as "import os".
func foreign(script string) string {
	line, _, _ := strings.Cut(script, "\n")
	program, ok := strings.CutPrefix(line, "#!")
	// Shells have sh in their names (bash, ksh93, busybox sh); other languages hardly do.
	if !ok || slices.ContainsFunc(strings.Fields(program), func(word string) bool { return strings.Contains(path.Base(word), "sh") }) {
		return ""
	}
	return line
}

// readAll reads a file, or stdin with the name "-", up to a limit, and until a signal
// comes: who writes a FIFO may have to be waited for.
func readAll(ctx context.Context, name string, limit int64) ([]byte, error) {
	return before(ctx, func() ([]byte, error) {
		file := os.Stdin
		if name != "-" {
			opened, err := os.Open(name)
			if err != nil {
				return nil, err
			}
			defer opened.Close()
			file = opened
		}
		return io.ReadAll(io.LimitReader(file, limit))
	})
}

// before does what nothing can end, such as the wait for a FIFO's other side, and
// waits for it no longer than the context lasts.
func before[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type end struct {
		result T
		err    error
	}
	done := make(chan end, 1)
	go func() { // ends with do, or with the process
		result, err := do()
		done <- end{result, err}
	}()
	select {
	case e := <-done:
		return e.result, e.err
	case <-ctx.Done():
		return *new(T), context.Cause(ctx)
	}
}

// unread notices that stdin has something that nobody reads.
type unread struct {
	app   *app
	flags string // what would pass it on
	done  bool
}

func (a *app) unread(f *execFlags) *unread {
	u := &unread{app: a, flags: "-i", done: f.stdin || f.tty || f.script == "-"}
	if f.script != "" && !f.keepGoing {
		u.flags = "-i with --keep-going" // only a script that runs whole has a stdin
	}
	return u
}

// warn warns once.
func (u *unread) warn() {
	if !u.done && hasData(os.Stdin) {
		u.done = true
		u.app.warn("stdin has data that nobody reads: " + u.flags + " passes it on")
	}
}
