package socket

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// startIt is the remedy where no daemon is.
const startIt = "start it with: gateway serve"

// Dial connects to the daemon. It talks to nobody but a process of this user,
// behind a socket of this user: passwords go over it. [Absent] tells an error
// that only means that no daemon is there.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	if err := checkLength(path); err != nil {
		return nil, err
	}
	if err := checkDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fail(err, startIt, "%s: no daemon listens", path)
	case err != nil:
		return nil, unusable(path, err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fail(nil, elsewhere, "%s is there and no socket", path)
	case owner(info) != os.Geteuid():
		return nil, fail(nil, elsewhere, "%s belongs to user %d, not to %d", path, owner(info), os.Geteuid())
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil, fail(err, startIt, "%s: no daemon listens", path)
	case err != nil:
		return nil, fail(err, "", "%s: connect: %v", path, errnoOf(err))
	}
	uid, err := peer(conn.(*net.UnixConn))
	if err == nil && uid == os.Geteuid() {
		return conn, nil
	}
	conn.Close()
	if err != nil {
		return nil, fail(err, "", "%s: who listens: %v", path, err)
	}
	return nil, fail(nil, elsewhere, "%s: who listens is user %d, not %d", path, uid, os.Geteuid())
}

// Absent reports whether an error of [Dial] means that no daemon is there, and
// one could be started.
func Absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// peer returns the user at the other end of a connection.
func peer(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	if e := raw.Control(func(fd uintptr) { uid, err = peerOf(int(fd)) }); e != nil {
		return 0, e
	}
	return uid, err
}
