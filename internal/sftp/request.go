package sftp

import (
	"context"
	"errors"
	"io"
)

// A Handle is a file that the server has open.
type Handle string

// Open opens a file. A file that it makes has the permissions of attr from the
// first moment on, as far as the server's umask leaves them.
func (c *Client) Open(ctx context.Context, path string, flags uint32, attr Attr) (Handle, error) {
	return c.handle(ctx, c.call(typeOpen, nil, func(p packet) packet { return p.str(path).u32(flags).attr(attr) }))
}

func (c *Client) handle(ctx context.Context, call *Call) (Handle, error) {
	if err := call.wait(ctx, typeHandle); err != nil {
		if ctx.Err() != nil {
			go c.forget(call) // ends with the answer, or with the client
		}
		return "", err
	}
	r := &reader{rest: call.body}
	h := Handle(r.str())
	return h, r.err
}

// forget closes what was opened for somebody who has gone.
func (c *Client) forget(call *Call) {
	<-call.done
	r := &reader{rest: call.body}
	if h := r.str(); call.err == nil && call.kind == typeHandle && r.err == nil {
		c.CloseHandle(Handle(h))
	}
}

// CloseHandle gives a file back. Nobody needs to wait for it.
func (c *Client) CloseHandle(h Handle) *Call {
	return c.call(typeClose, nil, func(p packet) packet { return p.str(string(h)) })
}

// ReadAt reads up to len(into) bytes, which are [Call.Data]'s once it is done.
func (c *Client) ReadAt(h Handle, into []byte, offset int64) *Call {
	return c.call(typeRead, into, func(p packet) packet {
		return p.str(string(h)).u64(uint64(offset)).u32(uint32(len(into)))
	})
}

// WriteAt writes b, which it has copied when it returns.
func (c *Client) WriteAt(h Handle, b []byte, offset int64) *Call {
	return c.call(typeWrite, nil, func(p packet) packet {
		return p.str(string(h)).u64(uint64(offset)).data(b)
	})
}

// Fsetstat changes what attr has.
func (c *Client) Fsetstat(h Handle, attr Attr) *Call {
	return c.call(typeFsetstat, nil, func(p packet) packet { return p.str(string(h)).attr(attr) })
}

// Setstat is Fsetstat for a path.
func (c *Client) Setstat(path string, attr Attr) *Call {
	return c.call(typeSetstat, nil, func(p packet) packet { return p.str(path).attr(attr) })
}

// Fstat asks what an open file is; see [Call.Attr].
func (c *Client) Fstat(h Handle) *Call {
	return c.call(typeFstat, nil, func(p packet) packet { return p.str(string(h)) })
}

// Stat follows symlinks, Lstat does not; see [Call.Attr].
func (c *Client) Stat(path string) *Call {
	return c.call(typeStat, nil, func(p packet) packet { return p.str(path) })
}

// Lstat is Stat for the symlink itself.
func (c *Client) Lstat(path string) *Call {
	return c.call(typeLstat, nil, func(p packet) packet { return p.str(path) })
}

// Fsync has the file written to the disk; needs fsync@openssh.com.
func (c *Client) Fsync(h Handle) *Call {
	return c.extended("fsync@openssh.com", func(p packet) packet { return p.str(string(h)) })
}

// Rename puts a file in the place of another, if there is one: with
// posix-rename@openssh.com at one stroke. Without it a file that is there is in
// the way, and an error.
func (c *Client) Rename(from, to string) *Call {
	if c.Has("posix-rename@openssh.com") {
		return c.extended("posix-rename@openssh.com", func(p packet) packet { return p.str(from).str(to) })
	}
	return c.call(typeRename, nil, func(p packet) packet { return p.str(from).str(to) })
}

// Remove removes a file.
func (c *Client) Remove(path string) *Call {
	return c.call(typeRemove, nil, func(p packet) packet { return p.str(path) })
}

// Mkdir makes a directory.
func (c *Client) Mkdir(path string, attr Attr) *Call {
	return c.call(typeMkdir, nil, func(p packet) packet { return p.str(path).attr(attr) })
}

// Symlink makes path point to target. The arguments are in OpenSSH's order,
// which is not the draft's, and which others have taken over.
func (c *Client) Symlink(target, path string) *Call {
	return c.call(typeSymlink, nil, func(p packet) packet { return p.str(target).str(path) })
}

// Readlink returns where a symlink points.
func (c *Client) Readlink(ctx context.Context, path string) (string, error) {
	call := c.call(typeReadlink, nil, func(p packet) packet { return p.str(path) })
	if err := call.wait(ctx, typeName); err != nil {
		return "", err
	}
	r := &reader{rest: call.body}
	if n := r.u32(); n != 1 && r.err == nil {
		return "", errors.New("sftp: the server names no target of a symlink")
	}
	target := r.str()
	return target, r.err
}

// An Entry is one name in a directory.
type Entry struct {
	Name string
	Attr Attr
}

// ahead is how many requests for entries are under way: one packet has about a
// hundred of them.
const ahead = 4

// ReadDir calls each with the entries of a directory, "." and ".." among them,
// until it returns an error. However many there are, only a few packets of them
// are kept.
func (c *Client) ReadDir(ctx context.Context, dir string, each func(Entry) error) error {
	h, err := c.handle(ctx, c.call(typeOpendir, nil, func(p packet) packet { return p.str(dir) }))
	if err != nil {
		return err
	}
	defer c.CloseHandle(h)
	read := func() *Call { return c.call(typeReaddir, nil, func(p packet) packet { return p.str(string(h)) }) }
	var calls []*Call
	for range ahead {
		calls = append(calls, read())
	}
	for {
		err := calls[0].wait(ctx, typeName)
		if status := new(Status); errors.As(err, &status) && status.Code == StatusEOF {
			return nil
		}
		if err != nil {
			return err
		}
		r := &reader{rest: calls[0].body}
		for n := r.u32(); n > 0 && r.err == nil; n-- {
			name := r.str()
			r.str() // what ls -l would print
			attr := r.attr()
			if r.err != nil {
				break
			}
			if err := each(Entry{name, attr}); err != nil {
				return err
			}
		}
		if r.err != nil {
			return r.err
		}
		calls = append(calls[1:], read())
	}
}

// Room is what a file system has left.
type Room struct {
	Bytes, Files uint64
	ReadOnly     bool
}

// Room asks about the file system that path is on; needs statvfs@openssh.com.
func (c *Client) Room(ctx context.Context, path string) (Room, error) {
	call := c.extended("statvfs@openssh.com", func(p packet) packet { return p.str(path) })
	if err := call.wait(ctx, typeReply); err != nil {
		return Room{}, err
	}
	r := &reader{rest: call.body}
	var n [10]uint64 // as in statvfs(3): f_bsize, f_frsize, f_blocks, f_bfree, f_bavail, …
	for i := range n {
		n[i] = r.u64()
	}
	return Room{Bytes: n[1] * n[4], Files: n[7], ReadOnly: n[9]&1 != 0}, r.err
}

// Done waits for a request whose answer is only whether it went well.
func (call *Call) Done(ctx context.Context) error { return call.wait(ctx, typeStatus) }

// Data waits for what was read. It returns [io.EOF] at the end of the file.
func (call *Call) Data(ctx context.Context) (int, error) {
	err := call.wait(ctx, typeData)
	if status := new(Status); errors.As(err, &status) && status.Code == StatusEOF {
		return 0, io.EOF
	}
	return call.n, err
}

// Attr waits for what a file is.
func (call *Call) Attr(ctx context.Context) (Attr, error) {
	if err := call.wait(ctx, typeAttrs); err != nil {
		return Attr{}, err
	}
	r := &reader{rest: call.body}
	a := r.attr()
	return a, r.err
}
