package transfer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"gateway/transport"
)

// Create implements [Target].
func (r *Remote) Create(ctx context.Context, spec Spec) (Part, error) {
	p := &remotePart{remote: r, spec: spec, path: partPath(at(spec.Path)), writes: remoteWrites{ctx: ctx, offset: spec.At}}
	call := r.link.begin(func() (err error) {
		p.file, p.perms, err = partOn(serverDisk{r.link, &r.umasks}, r.name, p.path, spec)
		return err
	})
	err := call.wait(ctx)
	if err == nil {
		p.writes.lanes.first = lane{r.link, p.file.File}
		p.writes.lanes.widen(ctx, r, p.path, os.O_WRONLY, spec.Size-spec.At, nil)
		return p, nil
	}
	if ctx.Err() != nil { // it may be about to be there, and is the caller's to abandon
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), Committing)
		defer cancel()
		if failed := call.wait(late); failed == nil {
			return p, transport.Cause(ctx)
		}
	}
	return nil, p.problem(ctx, err)
}

// problem is the error of making the file, or a part of it.
func (p *remotePart) problem(ctx context.Context, err error) error {
	return p.remote.problem("write", p.spec.Path, p.remote.explain(ctx, p.spec.Path, err))
}

type remotePart struct {
	remote *Remote
	spec   Spec
	path   string
	file   *serverFile
	perms
	writes remoteWrites
	whole  []byte // all of a small file
	closed bool
}

// Path implements [Part].
func (p *remotePart) Path() string { return p.path }

// Write implements [Part].
func (p *remotePart) Write(b []byte) (int, error) {
	if end := p.writes.offset + int64(len(b)); p.isWhole() && end <= Small {
		p.whole = append(p.whole, b...)
	}
	if err := p.writes.write(b); err != nil {
		return 0, p.problem(p.writes.ctx, err)
	}
	return len(b), nil
}

// isWhole reports whether all that was written is here: that of a small file is.
func (p *remotePart) isWhole() bool { return int64(len(p.whole)) == p.writes.offset }

// Finish implements [Part]. A small file is read back.
func (p *remotePart) Finish(ctx context.Context, times Times) (bool, error) {
	link := p.remote.link
	err := p.writes.settle(ctx)
	if err == nil {
		p.writes.leave()
		err = link.do(ctx, p.writes.lengthen)
	}
	if err != nil {
		return false, p.problem(ctx, err)
	}
	small := p.isWhole()
	if small {
		if err := p.readBack(ctx); err != nil {
			return false, err
		}
	}
	if err := link.do(ctx, func() error { return p.end(times, !small || p.spec.Sync) }); err != nil {
		return false, p.problem(ctx, err)
	}
	p.closed = true
	return small, p.problem(ctx, cmp.Or(link.in.sound(), p.writes.early.wait(ctx)))
}

// readBack compares what the server has of a small file with what was written.
func (p *remotePart) readBack(ctx context.Context) error {
	if len(p.whole) == 0 {
		return nil
	}
	back, err := get(ctx, p.remote.link, func() ([]byte, error) {
		into := make([]byte, len(p.whole))
		n, err := p.file.ReadAt(into, 0)
		if err == io.EOF {
			err = nil
		}
		return into[:n], err
	})
	if err != nil {
		return p.remote.problem("read back", p.spec.Path, err)
	}
	if !bytes.Equal(back, p.whole) {
		return mismatch(p.remote.name, p.spec.Path)
	}
	return nil
}

// fsync is OpenSSH's; its PROTOCOL, section 4.6.
const fsync = "fsync@openssh.com"

// syncs reports whether a machine has a large file on the disk when it gets its name.
func syncs(m Machine) bool {
	r, ok := m.(*Remote)
	return !ok || r.link.has(fsync)
}

// end gives the file its attributes and closes it.
func (p *remotePart) end(times Times, sync bool) error {
	l := p.remote.link
	if p.has != p.ends {
		if _, err := p.spec.chmod(p.remote.name, p.file, p.ends); err != nil {
			return err
		}
	}
	if sync && l.has(fsync) {
		if err := p.file.Sync(); err != nil {
			return err
		}
	}
	if err := p.file.Close(); err != nil {
		return err
	}
	return l.chtimes(p.path, times)
}

// Commit implements [Part].
func (p *remotePart) Commit(ctx context.Context) error {
	err := p.remote.rename(ctx, p.path, at(p.spec.Path))
	return p.problem(ctx, err)
}

// Abandon implements [Part].
func (p *remotePart) Abandon(keep bool) (left bool) {
	// Over a slow link this comes behind what was written last.
	ctx, cancel := context.WithTimeout(context.Background(), Committing)
	defer cancel()
	p.writes.leave()
	err := p.remote.link.do(ctx, func() error {
		if keep && !p.closed {
			_ = p.writes.lengthen()
		}
		if !p.closed {
			_ = p.file.Close()
		}
		if keep {
			return nil
		}
		return p.remote.link.Remove(p.path)
	})
	return keep || err != nil && !errors.Is(err, fs.ErrNotExist)
}
