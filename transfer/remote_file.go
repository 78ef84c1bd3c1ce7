package transfer

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"

	"github.com/pkg/sftp"
)

// ahead is how many bytes of a file are asked for before they are needed. A
// channel's window has 2 MiB.
const ahead = 3 << 20

// Open implements [Source].
func (r *Remote) Open(ctx context.Context, path string, info Info, from int64) (Content, error) {
	file, err := get(ctx, r.link, func() (*sftp.File, error) { return r.link.Open(at(path)) })
	if err != nil {
		return nil, r.problem("read", path, err)
	}
	c := &remoteContent{remote: r, ctx: ctx, path: path, info: info, file: file, offset: from, asked: from}
	c.lanes.first = lane{r.link, file}
	c.lanes.widen(ctx, r, at(path), os.O_RDONLY, info.Size-from)
	c.look = r.link.begin(func() (_ int, err error) {
		c.opened, err = file.Stat()
		return 0, err
	})
	c.ask()
	return c, nil
}

// remoteContent reads ahead.
type remoteContent struct {
	remote *Remote
	ctx    context.Context
	path   string
	info   Info
	file   *sftp.File
	lanes  lanes
	look   *pending // goes with the first reads, and takes no round trip of its own
	opened fs.FileInfo

	offset int64  // of what Read gives next
	asked  int64  // up to where reads have been sent
	reads  []read // in the order of their offsets
	rest   []byte // what has come and was not given
	buffer []byte // that rest is in
	free   [][]byte
	ended  bool
}

type read struct {
	call *pending
	into []byte
}

// ask sends what may be under way. A size of 0 may be that of a file that is
// made up while it is read, as in /proc.
func (c *remoteContent) ask() {
	most := c.remote.link.block
	depth := ahead / most
	if c.lanes.second.Load() != nil {
		depth *= 2
	}
	for !c.ended && len(c.reads) < depth {
		want := int64(most)
		if c.info.Size > 0 {
			want = min(want, c.info.Size-c.asked)
		} else if len(c.reads) > 0 {
			return
		}
		if want <= 0 {
			return
		}
		var into []byte
		if n := len(c.free); n > 0 {
			into, c.free = c.free[n-1][:want], c.free[:n-1]
		} else {
			into = make([]byte, want)
		}
		from, lane := c.asked, c.lanes.next()
		c.reads = append(c.reads, read{lane.link.begin(func() (int, error) { return lane.file.ReadAt(into, from) }), into})
		c.asked += want
	}
}

// Read implements [io.Reader].
func (c *remoteContent) Read(b []byte) (int, error) {
	for len(c.rest) == 0 {
		if c.buffer != nil && cap(c.buffer) >= c.remote.link.block {
			c.free = append(c.free, c.buffer[:cap(c.buffer)])
		}
		c.buffer = nil
		c.ask()
		if len(c.reads) == 0 {
			return 0, io.EOF
		}
		first := c.reads[0]
		c.reads = c.reads[1:]
		n, err := first.call.wait(c.ctx)
		if err != nil {
			c.ended, c.reads = true, nil
		}
		if err != nil && err != io.EOF {
			return 0, c.remote.problem("read", c.path, err)
		}
		c.rest, c.buffer = first.into[:n], first.into
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	c.offset += int64(n)
	return n, nil
}

// Opened implements [Content].
func (c *remoteContent) Opened(ctx context.Context) (Info, error) {
	if _, err := c.look.wait(ctx); err != nil {
		return Info{}, c.remote.problem("look at", c.path, err)
	}
	c.info = remoteInfo(c.info.Name, c.opened)
	return c.info, nil
}

// Changed implements [Content].
func (c *remoteContent) Changed(ctx context.Context) (bool, error) {
	now, err := get(ctx, c.remote.link, c.file.Stat)
	if err != nil {
		return false, c.remote.problem("look at", c.path, err)
	}
	return differs(remoteInfo(c.info.Name, now), c.info), nil
}

// Close implements [io.Closer]. Nobody waits for the server.
func (c *remoteContent) Close() error {
	c.ended, c.reads = true, nil
	if second := c.lanes.settle(); second != nil {
		second.link.begin(func() (int, error) { return 0, second.file.Close() })
	}
	c.remote.link.begin(func() (int, error) { return 0, c.file.Close() })
	return nil
}

// Create implements [Target].
func (r *Remote) Create(ctx context.Context, spec Spec) (Part, error) {
	p := &remotePart{remote: r, ctx: ctx, spec: spec, path: partPath(at(spec.Path)), offset: spec.At}
	call := r.link.begin(func() (_ int, err error) {
		p.file, err = p.open()
		return 0, err
	})
	_, err := call.wait(ctx)
	if err == nil {
		p.lanes.first = lane{r.link, p.file}
		p.lanes.widen(ctx, r, p.path, os.O_WRONLY, spec.Size-spec.At)
		return p, nil
	}
	if ctx.Err() != nil { // it may be about to be there, and is the caller's to abandon
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting)
		defer cancel()
		if _, failed := call.wait(late); failed == nil {
			return p, context.Cause(ctx)
		}
	}
	return nil, r.problem("write", spec.Path, r.explain(ctx, spec.Path, err))
}

// open makes the file. The server gives it those permissions that its umask
// leaves, perhaps whatever it is asked for: where not all may read it, nobody
// else may read what comes.
func (p *remotePart) open() (*sftp.File, error) {
	l := p.remote.link
	file, err := l.create(p.path, p.spec.Perm)
	if err != nil {
		return nil, err
	}
	if p.spec.Perm != onlyOwner {
		var made fs.FileInfo
		if made, err = file.Stat(); err == nil {
			p.made, p.perm = made.Mode().Perm(), lessUmask(p.spec.Perm, made.Mode())
		}
	}
	ours := true
	if err == nil && p.spec.Old != "" {
		// Under a name of one's own it is nobody else's to go on with.
		_ = file.Close()
		if err = l.Remove(p.path); err == nil {
			err = l.Rename(at(p.spec.Old), p.path)
		}
		if err != nil {
			return nil, err
		}
		if file, err = l.OpenFile(p.path, os.O_RDWR); err != nil {
			return nil, err
		}
		ours, p.made = false, 0
		err = file.Truncate(p.spec.At)
	}
	if err == nil && (p.spec.Perm&0o044 != 0o044 || !ours) {
		err = file.Chmod(onlyOwner)
		p.made = onlyOwner
	}
	if err != nil {
		_ = file.Close()
		if ours {
			_ = l.Remove(p.path) // the error says what is wrong
		}
		return nil, err
	}
	return file, nil
}

// onlyOwner is what nobody else may read.
const onlyOwner fs.FileMode = 0o600

// lessUmask takes from perm what the umask took from a file that was made to be
// read and written by all. Who may not read it may not run it.
func lessUmask(perm, made fs.FileMode) fs.FileMode {
	return perm & (made.Perm() | made.Perm()&0o444>>2)
}

// underway is how many writes wait for their answers.
const underway = 48

type remotePart struct {
	remote *Remote
	ctx    context.Context
	spec   Spec
	path   string
	file   *sftp.File
	lanes  lanes
	made   fs.FileMode // the permissions that it has
	perm   fs.FileMode // those that it is to have by itself; 0: they are set
	closed bool

	offset int64
	calls  []write // without an answer yet
	free   [][]byte
	holes  bool   // the last bytes may have been left out
	whole  []byte // all of a small file
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
	p.calls = append(p.calls, write{lane.link.begin(func() (int, error) { return lane.file.WriteAt(from, offset) }), from})
	p.offset += int64(len(b))
	return nil
}

func (p *remotePart) settleFirst(ctx context.Context) error {
	first := p.calls[0]
	p.calls = p.calls[1:]
	if _, err := first.call.wait(ctx); err != nil {
		return p.remote.problem("write", p.spec.Path, p.remote.explain(ctx, p.spec.Path, err))
	}
	p.free = append(p.free, first.from)
	return nil
}

// Finish implements [Part]. A small file is read back.
func (p *remotePart) Finish(ctx context.Context, attr Attr) (bool, error) {
	for len(p.calls) > 0 {
		if err := p.settleFirst(ctx); err != nil {
			return false, err
		}
	}
	link := p.remote.link
	if second := p.lanes.settle(); second != nil {
		second.link.begin(func() (int, error) { return 0, second.file.Close() })
	}
	if p.holes {
		if err := link.do(ctx, func() error { return p.file.Truncate(p.offset) }); err != nil {
			return false, p.remote.problem("write", p.spec.Path, p.remote.explain(ctx, p.spec.Path, err))
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
	err := link.do(ctx, func() error { return p.end(attr, !small || p.spec.Sync) })
	if err != nil {
		return false, p.remote.problem("write", p.spec.Path, p.remote.explain(ctx, p.spec.Path, err))
	}
	p.closed = true
	return small, nil
}

// end gives the file its attributes and closes it.
func (p *remotePart) end(attr Attr, sync bool) error {
	l := p.remote.link
	if attr.Perm == nil && p.perm != 0 && p.perm != p.made {
		attr.Perm = &p.perm
	}
	if attr.Perm != nil {
		if err := p.file.Chmod(*attr.Perm); err != nil {
			return err
		}
	}
	if sync && l.has("fsync@openssh.com") {
		if err := p.file.Sync(); err != nil {
			return err
		}
	}
	if err := p.file.Close(); err != nil {
		return err
	}
	return l.chtimes(p.path, attr)
}

// Commit implements [Part].
func (p *remotePart) Commit(ctx context.Context) error {
	err := p.remote.rename(ctx, p.path, at(p.spec.Path))
	return p.remote.problem("write", p.spec.Path, p.remote.explain(ctx, p.spec.Path, err))
}

// Abandon implements [Part].
func (p *remotePart) Abandon(keep bool) {
	ctx, cancel := context.WithTimeout(context.Background(), parting)
	defer cancel()
	if second := p.lanes.settle(); second != nil {
		second.link.begin(func() (int, error) { return 0, second.file.Close() })
	}
	_ = p.remote.link.do(ctx, func() error { // there is nobody left to tell
		if !p.closed {
			_ = p.file.Close()
		}
		if keep {
			return nil
		}
		return p.remote.link.Remove(p.path)
	})
}
