package transfer

import (
	"context"
	"errors"
	"io/fs"
	"sync"
)

// Symlink implements [Target].
func (r *Remote) Symlink(ctx context.Context, target, path string) error {
	part := partPath(at(path))
	made := r.link.begin(func() error { return r.order.symlink(r.link, target, part) })
	err := made.wait(ctx)
	if err == nil {
		err = r.rename(ctx, part, at(path))
	}
	if err != nil && (!made.over() || made.err == nil) { // it is there, or may be soon
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), Committing)
		defer cancel()
		_ = r.link.do(late, func() error { // there is nobody left to tell
			<-made.done
			return r.link.Remove(part)
		})
	}
	return r.problem("make the symlink", path, r.explain(ctx, path, err))
}

// A linkOrder is the order in which a server takes the two names of a symlink. OpenSSH has
// it the other way round than the draft (its PROTOCOL, section 4.1), and most do as it
// does, but not all: asyncssh does so for clients that call themselves OpenSSH, and Twisted
// and Erlang go by the draft.
type linkOrder struct {
	mu      sync.Mutex
	known   bool // guarded by mu
	swapped bool // guarded by mu: as in the draft
}

// symlink makes a symlink at part. It blocks until that is answered.
func (o *linkOrder) symlink(l *link, target, part string) error {
	swapped, err := o.of(l, part)
	if err != nil {
		return err
	}
	if swapped {
		target, part = part, target
	}
	return l.Symlink(target, part)
}

// of finds the order out, once, with two names that are nobody else's: a server with the
// other one would make what the symlink is to lead to.
func (o *linkOrder) of(l *link, part string) (swapped bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known {
		return o.swapped, nil
	}
	made, other := asidePath(part), asidePath(part)
	if err := l.Symlink(other, made); err != nil {
		return false, err
	}
	if _, err := l.Lstat(made); errors.Is(err, fs.ErrNotExist) {
		made, o.swapped = other, true
	}
	_ = l.Remove(made) // a server that refuses it makes symlinks all the same
	o.known = true
	return o.swapped, nil
}
