package socket

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// poll is how often a lock is tried again: waiting in flock(2) cannot be ended.
const poll = 10 * time.Millisecond

// ErrHeld is what [Take] returns where another process keeps the lock.
var ErrHeld = errors.New("lock is held")

// A Lock is held by one process at a time, and ends with it at the latest. Its
// file stays: removing it would let two processes hold a lock of one name.
type Lock struct{ file *os.File }

// Take waits for the lock until the context ends. The directory must be there;
// it is the caller's to check.
func Take(ctx context.Context, path string) (*Lock, error) {
	for {
		lock, err := tryLock(path)
		if !errors.Is(err, ErrHeld) {
			return lock, err
		}
		if wait(ctx) != nil {
			return nil, fail(errors.Join(ErrHeld, context.Cause(ctx)), "", "%s: held by process %s", path, holder(path))
		}
	}
}

// wait waits a moment. Its error is that the context has ended.
func wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(poll):
		return nil
	}
}

// tryLock does not wait. Its error for a lock that is held is ErrHeld.
func tryLock(path string) (*Lock, error) {
	lock, err := flock(path, unix.LOCK_EX)
	if err == nil {
		_ = lock.file.Truncate(0) // nobody has the number then, which is for messages and [Daemon]
		_, _ = lock.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return lock, err
}

// flock takes a lock of a kind, see flock(2), as tryLock does.
func flock(path string, kind int) (*Lock, error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, unusable(path, err)
		}
		err = unix.Flock(int(file.Fd()), kind|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			file.Close()
			return nil, ErrHeld
		case err != nil:
			file.Close()
			return nil, unusable(path, err)
		}
		// Whoever cleans up may have removed the file since it was opened.
		if lock := (&Lock{file}); lock.named(path) {
			return lock, nil
		}
		file.Close()
	}
}

// named reports whether the lock's file is the one of that name.
func (l *Lock) named(path string) bool {
	locked, err := l.file.Stat()
	there, e := os.Lstat(path)
	return err == nil && e == nil && os.SameFile(locked, there)
}

// Release gives the lock back. It may be called more than once.
func (l *Lock) Release() { l.file.Close() }

// Daemon returns the process that holds the place of the daemon at a socket; 0 if
// there is none, or it is not known.
func Daemon(path string) int {
	pid, _ := daemonAt(path) // it is not known
	return pid
}

// daemonAt is Daemon, with what keeps it from looking. Who looks is not taken for
// the daemon: a lock that is shared has no number.
func daemonAt(path string) (pid int, err error) {
	if err := checkDir(filepath.Dir(path)); err != nil {
		return 0, err
	}
	lock, err := flock(lockOf(path), unix.LOCK_SH)
	switch {
	case errors.Is(err, ErrHeld):
		pid, _ = strconv.Atoi(holder(lockOf(path)))
		return pid, nil
	case err == nil:
		lock.Release()
	}
	return 0, err
}

// holder returns the number of the process that has the lock, as far as is known.
func holder(path string) string {
	text, err := os.ReadFile(path)
	pid := strings.TrimSpace(string(text))
	if _, bad := strconv.Atoi(pid); err != nil || bad != nil {
		return "(unknown)"
	}
	return pid
}
