package socket

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"gateway/transport"
)

// ErrRunning is what [Listen] returns where a daemon listens already.
var ErrRunning = errors.New("a daemon is running")

// Listen makes the socket, and its directory if that is missing. It takes a
// lock beside the socket, which the Listener holds until [Listener.Release]:
// there is one daemon for a socket, and what a dead one left is removed by its
// successor only. With it goes the lock of the daemon's records, whose directory must
// be there; an empty name is none. The context bounds the wait for a daemon that is
// ending; a daemon that listens is ErrRunning at once, and one that listens elsewhere
// and has the records is ErrHeld in a moment.
//
// A socket that somebody removes is made again. One that systemd has opened is used as
// it is (sd_listen_fds(3)).
func Listen(ctx context.Context, path, records string) (*Listener, error) {
	if err := MakeDir(path); err != nil {
		return nil, err
	}
	place, kept, err := takeOver(ctx, path, records)
	if err != nil {
		return nil, err
	}
	l := &Listener{path: path, records: kept, closed: make(chan struct{}), place: place}
	l.listener, err = inherited(path)
	if l.listener == nil && err == nil {
		if l.listener, err = bind(path); err == nil {
			l.watched.Go(l.stay)
		}
	}
	if err != nil {
		l.releaseLocks()
		return nil, err
	}
	return l, nil
}

// MakeDir makes the directory of a socket and checks it.
func MakeDir(path string) error {
	if err := checkLength(path); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return unusable(dir, err)
	}
	return checkDir(dir)
}

// lockOf returns the lock that a daemon holds as long as it lives.
func lockOf(path string) string { return path + ".lock" }

// takeOver takes the daemon's lock, and that of its records. It has none of them while
// it waits: who has the records may be about to listen here again.
func takeOver(ctx context.Context, path, records string) (place, kept *Lock, err error) {
	soon, cancel := context.WithTimeout(ctx, 2*lookTime)
	defer cancel()
	for {
		held := lockOf(path)
		if place, err = tryLock(held); err == nil && records != "" {
			held = records
			if kept, err = tryLock(held); err != nil {
				place.Release()
			}
			if e, ok := errors.AsType[*transport.Error](err); ok {
				e.Hint = elsewhereRecorded
			}
		}
		if !errors.Is(err, ErrHeld) {
			return place, kept, err
		}
		if conn, err := Dial(ctx, path); err == nil {
			conn.Close()
			return nil, nil, fail(ErrRunning, "end it with: gateway serve --stop", "process %s is the daemon at %s already", holder(held), path)
		}
		switch {
		case held == records && wait(soon) != nil:
			return nil, nil, fail(ErrHeld, "", "%s: held by process %s", held, holder(held))
		case held != records && wait(ctx) != nil:
			return nil, nil, fail(context.Cause(ctx), "it may be ending: try again", "process %s holds the place of the daemon at %s, and does not listen",
				holder(held), path)
		}
	}
}

// bind makes the socket in place of a dead daemon's, under the lock.
func bind(path string) (*net.UnixListener, error) {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, unusable(path, err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fail(nil, elsewhere, "%s is there and no socket", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, unusable(path, err)
		}
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fail(err, elsewhere, "%s: listen: %v", path, errnoOf(err))
	}
	// Until here the directory keeps others out.
	if err := os.Chmod(path, 0o600); err != nil {
		listener.Close()
		return nil, unusable(path, err)
	}
	return listener, nil
}

// inherited returns the socket that systemd has opened for this process, or nil.
func inherited(path string) (*net.UnixListener, error) {
	pid, count := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	for _, variable := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(variable) // they are for this process, not for what it starts
	}
	const hint = "set ListenStream= in gateway.socket to the path that gateway uses"
	if count != "1" {
		return nil, fail(nil, hint, "systemd passed %s sockets, not one", count)
	}
	file := os.NewFile(3, "systemd") // SD_LISTEN_FDS_START
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fail(err, hint, "the socket that systemd passed: %v", err)
	}
	unix, ok := listener.(*net.UnixListener)
	if !ok || unix.Addr().String() != path {
		listener.Close()
		return nil, fail(nil, hint, "systemd passed the socket %s, not %s", listener.Addr(), path)
	}
	return unix, nil
}

// Gone waits until a process is not the daemon at the socket any more, or the
// context ends: then its error is ErrHeld. Another one may be the daemon by then.
func Gone(ctx context.Context, path string, pid int) error {
	for pid != 0 {
		now, err := daemonAt(path)
		switch {
		case errors.Is(err, fs.ErrNotExist): // nor its directory
			return nil
		case err != nil || now != pid:
			return err
		}
		if wait(ctx) != nil {
			return fail(errors.Join(ErrHeld, context.Cause(ctx)), "", "%s: held by process %d", lockOf(path), pid)
		}
	}
	return nil
}

// errnoOf returns what the system said, without the address around it.
func errnoOf(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}
