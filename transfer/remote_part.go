package transfer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/pkg/sftp"
)

// Create implements [Target].
func (r *Remote) Create(ctx context.Context, spec Spec) (Part, error) {
	p := &remotePart{remote: r, ctx: ctx, spec: spec, path: partPath(at(spec.Path)), offset: spec.At}
	call := r.link.begin(func() (err error) {
		p.file, p.perms, err = partOn(serverDisk{r.link, &r.umasks}, r.name, p.path, spec)
		return err
	})
	err := call.wait(ctx)
	if err == nil {
		p.lanes.first = lane{r.link, p.file}
		p.lanes.widen(ctx, r, p.path, os.O_WRONLY, spec.Size-spec.At, nil)
		return p, nil
	}
	if ctx.Err() != nil { // it may be about to be there, and is the caller's to abandon
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), Committing)
		defer cancel()
		if failed := call.wait(late); failed == nil {
			return p, context.Cause(ctx)
		}
	}
	return nil, p.problem(ctx, err)
}

// problem is the error of making the file, or a part of it.
func (p *remotePart) problem(ctx context.Context, err error) error {
	return p.remote.problem("write", p.spec.Path, p.remote.explain(ctx, p.spec.Path, err))
}

// serverDisk is a server's.
type serverDisk struct {
	*link
	umasks *umasks
}

// make leaves it to the server what all may read: it has its umask.
func (d serverDisk) make(path string, perm fs.FileMode) (*sftp.File, error) {
	if perm&0o044 != 0o044 {
		d.out.born.Store(path, perm)
		defer d.out.born.Delete(path)
	}
	return d.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (d serverDisk) begun(path string, perm fs.FileMode, file *sftp.File) (fs.FileMode, error) {
	if err := d.in.sound(); err != nil {
		return 0, err
	}
	return d.umasks.of(path, perm, file.Stat)
}

func (d serverDisk) reopen(path string) (*sftp.File, error) { return d.OpenFile(path, os.O_RDWR) }

// underway is how many writes wait for their answers.
const underway = 48

type remotePart struct {
	remote *Remote
	ctx    context.Context
	spec   Spec
	path   string
	file   *sftp.File
	lanes  lanes
	perms
	closed bool

	offset int64
	calls  []write // without an answer yet
	free   [][]byte
	holes  bool   // the last bytes may have been left out
	whole  []byte // all of a small file

	dirty   int      // bytes that are there, and the disk was not told about
	syncing *pending // the last time that it was
}

type write struct {
	call *pending
	from []byte
}

// Path implements [Part].
func (p *remotePart) Path() string { return p.path }

// Write implements [Part]. Blocks of zeros become holes.
func (p *remotePart) Write(b []byte) (int, error) {
	total := len(b)
	if p.offset == int64(len(p.whole)) && p.offset+int64(total) <= Small {
		p.whole = append(p.whole, b...)
	}
	if p.holes = hollow(b); p.holes {
		p.offset += int64(total)
		return total, nil
	}
	for len(b) > 0 {
		n := min(len(b), p.remote.link.block)
		if err := p.write(b[:n]); err != nil {
			return 0, err
		}
		b = b[n:]
	}
	return total, nil
}

// write sends a copy of b: the caller goes on to use it.
func (p *remotePart) write(b []byte) error {
	if len(p.calls) >= underway {
		if err := p.settleFirst(p.ctx); err != nil {
			return err
		}
	}
	var from []byte
	if n := len(p.free); n > 0 {
		from, p.free = p.free[n-1], p.free[:n-1]
	}
	from = append(from[:0], b...)
	offset, lane := p.offset, p.lanes.next()
	if lane.link.room.Acquire(p.ctx, int64(len(b))) != nil {
		return context.Cause(p.ctx)
	}
	p.calls = append(p.calls, write{lane.link.begin(func() error {
		defer lane.link.room.Release(int64(len(from)))
		_, err := lane.file.WriteAt(from, offset)
		return err
	}), from})
	p.offset += int64(len(b))
	return nil
}

func (p *remotePart) settleFirst(ctx context.Context) error {
	first := p.calls[0]
	p.calls = p.calls[1:]
	if err := first.call.wait(ctx); err != nil {
		return p.problem(ctx, err)
	}
	p.free = append(p.free, first.from)
	p.dirty += len(first.from)
	return p.syncEarly(ctx)
}

// syncEarly has what is there written to the disk while more comes. A second
// channel that carries some of that has no time for it.
func (p *remotePart) syncEarly(ctx context.Context) error {
	second := p.lanes.second.Load()
	if p.dirty < early || p.lanes.far || second == nil || !second.link.has(fsync) {
		return nil
	}
	if p.syncing != nil && !p.syncing.over() {
		return nil
	}
	if err := p.synced(ctx); err != nil {
		return err
	}
	p.dirty = 0
	p.syncing = second.link.begin(second.file.Sync)
	return nil
}

// synced waits for the last syncEarly. The system may tell only one of those who ask
// that the disk has failed.
func (p *remotePart) synced(ctx context.Context) error {
	if p.syncing == nil {
		return nil
	}
	err := p.syncing.wait(ctx)
	return p.problem(ctx, err)
}

// Finish implements [Part]. A small file is read back.
func (p *remotePart) Finish(ctx context.Context, times Times) (bool, error) {
	for len(p.calls) > 0 {
		if err := p.settleFirst(ctx); err != nil {
			return false, err
		}
	}
	link := p.remote.link
	p.lanes.leave(p.syncing)
	if p.holes {
		if err := link.do(ctx, p.lengthen); err != nil {
			return false, p.problem(ctx, err)
		}
	}
	small := int64(len(p.whole)) == p.offset
	if small && len(p.whole) > 0 {
		back, err := get(ctx, link, func() ([]byte, error) {
			into := make([]byte, len(p.whole))
			n, err := p.file.ReadAt(into, 0)
			if err == io.EOF {
				err = nil
			}
			return into[:n], err
		})
		if err != nil {
			return false, p.remote.problem("read back", p.spec.Path, err)
		}
		if !bytes.Equal(back, p.whole) {
			return false, mismatch(p.remote.name, p.spec.Path)
		}
	}
	err := link.do(ctx, func() error { return p.end(times, !small || p.spec.Sync) })
	if err != nil {
		return false, p.problem(ctx, err)
	}
	p.closed = true
	return small, cmp.Or(link.in.sound(), p.synced(ctx))
}

// lengthen makes the zeros at the end that were left out.
func (p *remotePart) lengthen() error { return p.file.Truncate(p.offset) }

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
	p.lanes.leave(p.syncing)
	err := p.remote.link.do(ctx, func() error {
		if keep && p.holes && !p.closed {
			_ = p.lengthen()
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
