package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gateway/gateway"
	"gateway/transport"
)

// Committing is how long a file may take to get its name, or to be removed, when
// nobody waits for the rest any more.
const Committing = 10 * time.Second

// commit gives a part its name, and then its last permissions. done reports whether it has
// the name, or whoever removes it would wait as long as for that.
func commit(ctx context.Context, m Machine, spec Spec, part Part) (done bool, err error) {
	err = inPlace(m.About().Name, spec.Path, part.Commit(ctx))
	done = err == nil || errors.Is(err, context.DeadlineExceeded)
	if err == nil && spec.unreadable() {
		err = hide(ctx, m, spec.Path)
	}
	if unsure(err) {
		err = mayBeDone(m, spec.Path, err)
	}
	return done, err
}

// hide takes from a file what its owner may read.
func hide(ctx context.Context, m Machine, path string) error {
	ctx, stop := outlast(ctx, Committing)
	defer stop()
	info, err := m.Stat(ctx, path, false)
	if err == nil {
		err = m.Chattr(ctx, path, Attr{Perm: new(info.Mode.Perm() &^ 0o400)})
	}
	return err
}

// outlast returns a context for what must be known to be done or not, as giving a file its
// name, which ends a while after ctx. Before that it has no end, since the request waits for
// all that the server has to do first, which may be the fsync of a large file.
func outlast(ctx context.Context, while time.Duration) (context.Context, context.CancelFunc) {
	last, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(while):
			cancel(context.DeadlineExceeded)
		case <-last.Done():
		}
	})
	return last, func() {
		stop()
		cancel(nil)
	}
}

// unsure reports whether a file may have its name although it was not learnt.
func unsure(err error) bool { return Lost(err) || errors.Is(err, context.DeadlineExceeded) }

var errMayBeDone = errors.New("it may have been done")

// MayBeDone reports whether an error of a copy or of [Write] is about a file that
// may have its name.
func MayBeDone(err error) bool { return errors.Is(err, errMayBeDone) }

// mayBeDone is the error of a file for which unsure is true.
func mayBeDone(m Machine, path string, err error) error {
	err = fmt.Errorf("%w: %w", errMayBeDone, err)
	return &transport.Error{
		Code: "link.lost", Message: fmt.Sprintf("transfer: write %s: %v", Show(m.About().Name, path), err), Err: err,
		Hint: "look what it has before you write it again",
	}
}

// Lost reports whether an error says that a machine is no longer reached, and
// needs to be opened again.
func Lost(err error) bool {
	switch gateway.Code(err) {
	case "link.lost", "ssh.closed", "daemon.unreachable":
		return true
	}
	return errors.Is(err, transport.ErrLost) || errors.Is(err, transport.ErrClosed) || errors.Is(err, transport.ErrUnreachable) || errors.Is(err, errGone)
}
