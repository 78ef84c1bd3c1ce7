// Package regular opens and reads regular files, and no others: what a setting
// names may be a FIFO or a device, whose end nobody knows.
package regular

import (
	"context"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
)

// An Error says what is in the place of a regular file.
type Error string

func (e Error) Error() string { return string(e) + ", and no regular file" }

// Open opens a file for reading, without ever waiting for somebody who writes it.
// [os.DevNull] is an empty file. A pipe that the process has been given is read,
// too: it has an end, as bash's <(…). The error is an [fs.PathError], for others
// about an [Error].
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path) // first, for some devices do something when they are opened
	if err != nil {
		return nil, err
	}
	if err := readable(path, info); err != nil {
		return nil, err
	}
	// It may be a FIFO by now: without O_NONBLOCK open waits for who writes.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = readable(path, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Read reads up to limit bytes of a file, as [Open] opens it. The context's end
// ends the wait for a pipe.
func Read(ctx context.Context, path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) }) // only pipes have one
	defer stop()
	return io.ReadAll(io.LimitReader(f, limit))
}

// readable refuses what may have no end, or none that comes: FIFOs and devices.
func readable(path string, info os.FileInfo) error {
	given := path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
	switch mode := info.Mode(); {
	case mode.IsRegular(), isNull(info), mode&os.ModeNamedPipe != 0 && given:
		return nil
	case mode.IsDir():
		return wrong(path, syscall.EISDIR)
	case mode&os.ModeNamedPipe != 0:
		return wrong(path, Error("a FIFO"))
	case mode&os.ModeSocket != 0:
		return wrong(path, Error("a socket"))
	}
	return wrong(path, Error("a device"))
}

// isNull reports whether it is [os.DevNull], by whatever path.
func isNull(info os.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}

func wrong(path string, err error) error { return &fs.PathError{Op: "open", Path: path, Err: err} }
