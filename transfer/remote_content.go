package transfer

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"

	"github.com/pkg/sftp"
)

// ahead is how many bytes of a file are asked for before they are needed. A
// channel's window has 2 MiB.
const ahead = 3 << 20

// Open implements [Source].
func (r *Remote) Open(ctx context.Context, path string, info Info, from int64) (Content, error) {
	file, err := r.link.open(ctx, func() (*sftp.File, error) { return r.link.Open(at(path)) })
	if err != nil {
		return nil, r.problem("read", path, err)
	}
	c := &remoteContent{remote: r, ctx: ctx, path: path, info: info, file: file, asked: from, spare: make(chan []byte, queued+2)}
	c.lanes.first = lane{r.link, file}
	c.look = r.link.begin(func() (err error) {
		c.opened, err = file.Stat()
		return err
	})
	c.lanes.widen(ctx, r, at(path), os.O_RDONLY, info.Size-from, c.isOther)
	c.ask()
	if r.link.block < block { // holes are found by whole blocks
		return struct{ Content }{c}, nil
	}
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

	asked  int64       // up to where reads have been sent
	reads  []*read     // in the order of their offsets
	rest   []byte      // what has come and Read has not given
	buffer []byte      // that rest is in
	spare  chan []byte // blocks to be used again
	ended  bool
}

type read struct {
	call *pending
	into []byte
	n    int // have come; read it when call is done
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
		select {
		case spare := <-c.spare:
			into = spare[:want]
		default:
			into = make([]byte, want)
		}
		from, lane := c.asked, c.lanes.next()
		r := &read{into: into}
		r.call = lane.link.begin(func() (err error) {
			r.n, err = lane.file.ReadAt(into, from)
			return err
		})
		c.reads = append(c.reads, r)
		c.asked += want
	}
}

// lend implements [lender].
func (c *remoteContent) lend(most int64) ([]byte, error) {
	c.ask()
	if len(c.reads) == 0 {
		return nil, io.EOF
	}
	first := c.reads[0]
	c.reads = c.reads[1:]
	err := first.call.wait(c.ctx)
	if err != nil {
		c.ended, c.reads = true, nil
	}
	if err != nil && err != io.EOF {
		return nil, c.remote.problem("read", c.path, err)
	}
	if err := c.remote.link.in.sound(); err != nil {
		return nil, err
	}
	return first.into[:min(int64(first.n), most)], nil
}

// free implements [lender].
func (c *remoteContent) free(b []byte) {
	if cap(b) < c.remote.link.block { // the file's last
		return
	}
	select {
	case c.spare <- b:
	default:
	}
}

// Read implements [io.Reader].
func (c *remoteContent) Read(b []byte) (int, error) {
	for len(c.rest) == 0 {
		if c.buffer != nil {
			c.free(c.buffer)
		}
		var err error
		if c.buffer, err = c.lend(math.MaxInt64); err != nil {
			return 0, err
		}
		c.rest = c.buffer
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Opened implements [Content].
func (c *remoteContent) Opened(ctx context.Context) (Info, error) {
	if err := c.look.wait(ctx); err != nil {
		return Info{}, c.remote.problem("look at", c.path, err)
	}
	c.info = remoteInfo(c.info.Name, c.opened)
	return c.info, nil
}

// isOther is the error of a file that is not the one that was opened first, as far
// as the server tells them apart.
func (c *remoteContent) isOther(ctx context.Context, file *sftp.File) error {
	if err := c.look.wait(ctx); err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && differs(remoteInfo("", info), remoteInfo("", c.opened)) {
		err = errOther
	}
	return err
}

var errOther = errors.New("another file has the name")

// Changed implements [Content].
func (c *remoteContent) Changed(ctx context.Context) (bool, error) {
	lanes := []lane{c.lanes.first}
	if second := c.lanes.second.Load(); second != nil {
		lanes = append(lanes, *second)
	}
	for _, lane := range lanes {
		now, err := get(ctx, lane.link, lane.file.Stat)
		if err != nil {
			return false, c.remote.problem("look at", c.path, err)
		}
		if differs(remoteInfo("", now), c.info) {
			return true, nil
		}
	}
	return false, nil
}

// Close implements [io.Closer]. Nobody waits for the server.
func (c *remoteContent) Close() error {
	c.ended, c.reads = true, nil
	c.lanes.leave(nil)
	c.remote.link.begin(c.file.Close)
	return nil
}
