package transfer

import (
	"bytes"
	"context"
	"io"
	"io/fs"

	"gateway/internal/sftp"
)

// ahead is how many bytes of a file are asked for before they are needed. A
// channel's window has 2 MiB.
const ahead = 4 << 20

// Open implements [Source].
func (r *Remote) Open(ctx context.Context, path string, info Info, from int64) (Content, error) {
	h, err := r.client.Open(ctx, at(path), sftp.Read, sftp.Attr{})
	if err != nil {
		return nil, r.problem("read", path, err)
	}
	c := &remoteContent{remote: r, ctx: ctx, path: path, info: info, handle: h, offset: from, asked: from}
	c.ask()
	if info.Size <= Small {
		c.after = r.client.Fstat(h) // answered behind the reads, without a wait of its own
	}
	return c, nil
}

// remoteContent reads ahead.
type remoteContent struct {
	remote *Remote
	ctx    context.Context
	path   string
	info   Info
	handle sftp.Handle
	after  *sftp.Call // what the file is behind the reads; nil: not asked yet

	offset int64  // of what Read gives next
	asked  int64  // up to where reads have been sent
	reads  []read // in the order of their offsets
	rest   []byte // what has come and was not given
	buffer []byte // that rest is in
	free   [][]byte
	ended  bool
}

type read struct {
	call *sftp.Call
	into []byte
}

// ask sends what may be under way. A size of 0 may be that of a file that is
// made up while it is read, as in /proc.
func (c *remoteContent) ask() {
	most, _ := c.remote.client.Blocks()
	most = min(most, block)
	for !c.ended && len(c.reads) < ahead/most {
		want := int64(most)
		if c.info.Size > 0 {
			want = min(want, c.info.Size-c.asked)
		} else if len(c.reads) > 0 {
			return
		}
		if want <= 0 {
			return
		}
		var buffer []byte
		if n := len(c.free); n > 0 {
			buffer, c.free = c.free[n-1][:want], c.free[:n-1]
		} else {
			buffer = make([]byte, want)
		}
		c.reads = append(c.reads, read{c.remote.client.ReadAt(c.handle, buffer, c.asked), buffer})
		c.asked += want
	}
}

// Read implements [io.Reader].
func (c *remoteContent) Read(b []byte) (int, error) {
	for len(c.rest) == 0 {
		if c.buffer != nil && cap(c.buffer) >= block {
			c.free = append(c.free, c.buffer[:cap(c.buffer)])
		}
		c.buffer = nil
		c.ask()
		if len(c.reads) == 0 {
			return 0, io.EOF
		}
		first := c.reads[0]
		n, err := first.call.Data(c.ctx)
		if err == io.EOF || err == nil && n == 0 {
			c.ended, c.reads = true, nil
			return 0, io.EOF
		}
		if err != nil {
			c.ended, c.reads = true, nil
			return 0, c.remote.problem("read", c.path, err)
		}
		c.rest, c.buffer = first.into[:n], first.into
		if n < len(first.into) && c.info.Size > 0 { // servers may give less than they are asked for
			more := first.into[n:]
			into := make([]byte, len(more))
			c.reads[0] = read{c.remote.client.ReadAt(c.handle, into, c.offset+int64(n)), into}
		} else {
			c.reads = c.reads[1:]
			if c.info.Size == 0 {
				c.asked = c.offset + int64(n)
			}
		}
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	c.offset += int64(n)
	return n, nil
}

// Changed implements [Content].
func (c *remoteContent) Changed(ctx context.Context) (bool, error) {
	if c.after == nil {
		c.after = c.remote.client.Fstat(c.handle)
	}
	attr, err := c.after.Attr(ctx)
	if err != nil {
		return false, c.remote.problem("look at", c.path, err)
	}
	_, modified := attr.Times()
	return attr.Size != c.info.Size || !modified.Equal(c.info.Modified), nil
}

// Close implements [io.Closer].
func (c *remoteContent) Close() error {
	c.remote.client.CloseHandle(c.handle)
	c.ended, c.reads = true, nil
	return nil
}

// Create implements [Target].
func (r *Remote) Create(ctx context.Context, spec Spec) (Part, error) {
	p := &remotePart{remote: r, ctx: ctx, spec: spec, path: partPath(at(spec.Path)), offset: spec.At}
	flags := uint32(sftp.Read | sftp.Write | sftp.Create | sftp.Excl)
	if spec.Old != "" {
		// Under a name of one's own it is nobody else's to go on with.
		if err := r.client.Rename(at(spec.Old), p.path).Done(ctx); err != nil {
			return nil, r.problem("take over", spec.Old, err)
		}
		flags = sftp.Read | sftp.Write
	}
	var err error
	p.handle, err = r.client.Open(ctx, p.path, flags, sftp.Attr{}.WithMode(spec.Perm|0o600))
	if err != nil {
		return nil, r.problem("write", spec.Path, r.explain(ctx, spec.Path, err))
	}
	if narrow := 0o600 &^ spec.Perm; narrow != 0 { // the umask has spoken, and we took more
		attr, err := r.client.Fstat(p.handle).Attr(ctx)
		if err != nil {
			return p, r.problem("write", spec.Path, err)
		}
		perm := attr.Mode().Perm() &^ narrow
		p.perm = &perm
	}
	if spec.Old != "" {
		if err := r.client.Fsetstat(p.handle, sftp.Attr{}.WithSize(spec.At)).Done(ctx); err != nil {
			return p, r.problem("write", spec.Path, err)
		}
	}
	return p, nil
}

// underway is how many writes wait for their answers.
const underway = 64

type remotePart struct {
	remote *Remote
	ctx    context.Context
	spec   Spec
	path   string
	handle sftp.Handle
	perm   *fs.FileMode
	closed bool

	offset int64
	calls  []*sftp.Call // writes without an answer yet
	holes  bool         // the last bytes may have been left out
	whole  []byte       // all of a small file
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
	_, most := p.remote.client.Blocks()
	for len(b) > 0 {
		n := min(len(b), most)
		p.calls = append(p.calls, p.remote.client.WriteAt(p.handle, b[:n], p.offset))
		p.offset += int64(n)
		b = b[n:]
		if len(p.calls) > underway {
			if err := p.settleFirst(p.ctx); err != nil {
				return 0, err
			}
		}
	}
	return total, nil
}

func (p *remotePart) settleFirst(ctx context.Context) error {
	call := p.calls[0]
	p.calls = p.calls[1:]
	if err := call.Done(ctx); err != nil {
		return p.remote.problem("write", p.spec.Path, p.remote.explain(ctx, p.spec.Path, err))
	}
	return nil
}

// orderly reports whether the server processes requests about one file in their
// order, as it must. OpenSSH does; what is built on others' libraries may not.
func (r *Remote) orderly() bool { return r.client.Has("fsync@openssh.com") }

// Finish implements [Part]. All its requests go at once. A small file is read
// back among them, which costs no round trip.
func (p *remotePart) Finish(ctx context.Context, attr Attr) (bool, error) {
	client := p.remote.client
	if !p.remote.orderly() {
		if err := p.settleAll(ctx); err != nil {
			return false, err
		}
	}
	small := int64(len(p.whole)) == p.offset
	var back *sftp.Call
	into := make([]byte, len(p.whole))
	if small && len(into) > 0 {
		back = client.ReadAt(p.handle, into, 0)
	}
	if p.holes {
		p.calls = append(p.calls, client.Fsetstat(p.handle, sftp.Attr{}.WithSize(p.offset)))
	}
	if attr.Perm == nil {
		attr.Perm = p.perm
	}
	if !attr.empty() {
		p.calls = append(p.calls, client.Fsetstat(p.handle, wireAttr(attr)))
	}
	if !small && client.Has("fsync@openssh.com") {
		p.calls = append(p.calls, client.Fsync(p.handle))
	}
	p.calls = append(p.calls, client.CloseHandle(p.handle))
	p.closed = true
	if err := p.settleAll(ctx); err != nil || back == nil {
		return small && err == nil, err
	}
	n, err := back.Data(ctx)
	if err == nil && bytes.Equal(into[:n], p.whole) {
		return true, nil
	}
	return p.again(ctx)
}

func (p *remotePart) settleAll(ctx context.Context) error {
	for len(p.calls) > 0 {
		if err := p.settleFirst(ctx); err != nil {
			return err
		}
	}
	return nil
}

// again looks a second time: a server may have read before it wrote.
func (p *remotePart) again(ctx context.Context) (bool, error) {
	stored, err := p.remote.Open(ctx, p.path, Info{Size: p.offset}, 0)
	if err != nil {
		return false, err
	}
	defer stored.Close()
	b, err := io.ReadAll(stored)
	if err == nil && !bytes.Equal(b, p.whole) {
		err = mismatch(p.remote.name, p.spec.Path)
	}
	return err == nil, err
}

// Commit implements [Part].
func (p *remotePart) Commit(ctx context.Context) error {
	err := p.remote.rename(ctx, p.path, at(p.spec.Path))
	return p.remote.problem("write", p.spec.Path, p.remote.explain(ctx, p.spec.Path, err))
}

// Abandon implements [Part].
func (p *remotePart) Abandon(keep bool) {
	client := p.remote.client
	var last *sftp.Call
	if !p.closed {
		last = client.CloseHandle(p.handle)
	}
	if !keep {
		last = client.Remove(p.path)
	}
	if last != nil {
		ctx, cancel := context.WithTimeout(context.Background(), parting)
		defer cancel()
		_ = last.Done(ctx) // there is nobody left to tell
	}
}
