package socket

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// lookTime is how often a daemon looks whether its socket is still there. Shorter than
// what a person who has just logged in again needs to type a command.
const lookTime = time.Second

// A Listener is the daemon's side of the socket. It implements [net.Listener].
type Listener struct {
	path    string
	records *Lock // nil for none

	closed  chan struct{}
	watched sync.WaitGroup // over soon after that

	mu       sync.Mutex
	listener *net.UnixListener // guarded by mu: the one that listens now
	place    *Lock             // guarded by mu
}

// Accept waits for a connection of this user. Others are refused, root too: it
// needs no door to become us, and a caller that is root by mistake (sudo
// gateway …) would hand over another user's keys and questions.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		listener := l.now()
		conn, err := listener.AcceptUnix()
		if err != nil {
			if listener != l.now() {
				continue
			}
			return nil, err
		}
		if uid, err := peer(conn); err == nil && uid == os.Geteuid() {
			return conn, nil
		}
		conn.Close()
	}
}

func (l *Listener) now() *net.UnixListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.listener
}

// Addr returns the address of the socket.
func (l *Listener) Addr() net.Addr { return l.now().Addr() }

// Close stops listening and removes the socket, unless it is systemd's. The
// locks stay, so that no other daemon begins before this one has ended. It may be
// called more than once.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return l.listener.Close()
}

// Release closes the listener and lets the next daemon begin. The end of the
// process does the same.
func (l *Listener) Release() {
	l.Close()
	l.watched.Wait()
	l.releaseLocks()
}

func (l *Listener) releaseLocks() {
	l.place.Release()
	if l.records != nil {
		l.records.Release()
	}
}

// stay listens again where the socket is gone, until the listener is closed: a logout
// removes $XDG_RUNTIME_DIR, and the daemon and its sessions outlive it.
func (l *Listener) stay() {
	look := time.NewTicker(lookTime)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			l.again()
		case <-l.closed:
			return
		}
	}
}

// again listens at the same place, if nobody does and that can be. Else it is tried
// again later.
func (l *Listener) again() {
	if _, err := os.Lstat(l.path); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed: // which has removed it
		return
	default:
	}
	// Its parent is not ours to make, and may be gone for good.
	dir := filepath.Dir(l.path)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) || checkDir(dir) != nil {
		return
	}
	place := l.place
	if !place.named(lockOf(l.path)) {
		// Who waits for our records has it for moments; see takeOver.
		ctx, cancel := context.WithTimeout(context.Background(), lookTime/4)
		defer cancel()
		var err error
		if place, err = Take(ctx, lockOf(l.path)); err != nil {
			return // another daemon begins there
		}
	}
	listener, err := bind(l.path)
	if err != nil {
		if place != l.place {
			place.Release()
		}
		return
	}
	l.listener.SetUnlinkOnClose(false) // the name is the new one's
	l.listener.Close()
	l.listener = listener
	if place != l.place {
		l.place.Release()
		l.place = place
	}
}
