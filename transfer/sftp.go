package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/sync/semaphore"

	"gateway/transport"
)

// A link is a client of one server. The library's calls know no context and do
// not say why a connection ended; the link's do.
type link struct {
	*sftp.Client
	in    *incoming
	out   *outgoing
	calls sync.WaitGroup
	block int                 // how much is read or written by one request
	room  *semaphore.Weighted // in bytes that are to be written
	home  *pending            // finds out where
	where string              // a relative path begins; read it when home is done
	// far is how long a round trip took, in nanoseconds; 0 until it is known.
	far atomic.Int64
}

// maxRequest is more than any request here has: the library is not to split
// them.
const maxRequest = 255 << 10

// maxRoom bounds what is written at once, of all files: twice what a channel's
// window lets be under way. What else is asked waits behind it.
const maxRoom = 4 << 20

// safeBlock is what every server reads and writes at once;
// draft-ietf-secsh-filexfer-02, section 3.
const safeBlock = 32 << 10

// greeting is how long a server or a shell that was started may take to say its
// first word: whatever else was started in its place may never say one.
const greeting = 30 * time.Second

var errSilent = fmt.Errorf("it has said nothing for %v", greeting)

// newLink greets the server behind a pipe, which belongs to the link.
func newLink(ctx context.Context, pipe *transport.Pipe) (*link, error) {
	first, cancel := context.WithTimeout(ctx, greeting)
	defer cancel()
	l := &link{in: &incoming{from: pipe.Stdout, most: maxListed}, block: safeBlock, room: semaphore.NewWeighted(maxRoom)}
	l.out = newOutgoing(pipe, l.in)
	stop := context.AfterFunc(first, func() { pipe.Close() })
	var err error
	l.Client, err = sftp.NewClientPipe(l.in, l.out, sftp.MaxPacketUnchecked(maxRequest))
	if !stop() {
		if err == nil { // too late: the pipe is closed
			_ = l.Client.Close()
		}
		err = cmp.Or(transport.Cause(ctx), errSilent)
	}
	if err != nil {
		pipe.Close()
		return nil, err
	}
	if l.has("limits@openssh.com") { // such a server takes 255 KiB
		l.block = block
	}
	begun := time.Now()
	l.home = l.begin(func() (err error) {
		l.where, err = l.RealPath(".")
		l.far.Store(int64(time.Since(begun)))
		return err
	})
	return l, nil
}

func (l *link) has(extension string) bool {
	_, ok := l.HasExtension(extension)
	return ok
}

// close ends the connection, and with it all calls. The library's own Close
// waits for a request that is being written, so the pipe goes first.
func (l *link) close() {
	_ = l.out.Close()
	_ = l.Client.Close() // there is nobody left to tell
	l.calls.Wait()
}

// A pending is a call that is under way. One that nobody waits for goes on until
// it is answered or the link is closed.
type pending struct {
	done chan struct{}
	err  error
}

// begin starts a call.
func (l *link) begin(call func() error) *pending {
	p := &pending{done: make(chan struct{})}
	l.calls.Go(func() {
		defer close(p.done)
		p.err = l.in.explain(call())
	})
	return p
}

func (p *pending) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return transport.Cause(ctx)
	}
}

// over reports whether it has been answered.
func (p *pending) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// do makes a call and waits for its end, or the context's.
func (l *link) do(ctx context.Context, call func() error) error {
	return l.begin(call).wait(ctx)
}

// get is do for a call that returns something.
func get[T any](ctx context.Context, l *link, call func() (T, error)) (T, error) {
	var got T
	err := l.do(ctx, func() (err error) {
		got, err = call()
		return err
	})
	if err != nil { // the call may still be at work on got
		var none T
		return none, err
	}
	return got, nil
}

// maxListed bounds what a server sends while a directory is listed: the library
// keeps all of it, and a server could go on for ever.
const maxListed = 128 << 20

var errEndless = errors.New("it has hundreds of thousands of entries, or no end")

func (l *link) list(ctx context.Context, dir string) ([]fs.FileInfo, error) {
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer l.in.limit(cancel)()
	found, err := get(limited, l, func() ([]fs.FileInfo, error) { return l.ReadDirContext(limited, dir) })
	return found, cmp.Or(transport.Cause(ctx), context.Cause(limited), err, l.in.sound())
}
