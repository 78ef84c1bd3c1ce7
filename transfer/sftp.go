package transfer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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
	ctx, cancel := context.WithTimeoutCause(ctx, greeting, errSilent)
	defer cancel()
	l := &link{in: &incoming{from: pipe.Stdout, most: maxListed}, block: safeBlock, room: semaphore.NewWeighted(maxRoom)}
	l.out = newOutgoing(pipe, l.in)
	stop := context.AfterFunc(ctx, func() { pipe.Close() })
	var err error
	l.Client, err = sftp.NewClientPipe(l.in, l.out, sftp.MaxPacketUnchecked(maxRequest))
	if !stop() {
		if err == nil { // too late: the pipe is closed
			_ = l.Client.Close()
		}
		err = context.Cause(ctx)
	}
	if err != nil {
		pipe.Close()
		return nil, err
	}
	if l.has("limits@openssh.com") { // such a server takes 255 KiB
		l.block = block
	}
	begun := time.Now()
	l.home = l.begin(func() (_ int, err error) {
		l.where, err = l.RealPath(".")
		l.far.Store(int64(time.Since(begun)))
		return 0, err
	})
	return l, nil
}

// create makes a file that has no more than these permissions.
func (l *link) create(path string, perm fs.FileMode) (*sftp.File, error) {
	if perm&0o044 != 0o044 { // else the server's own show its umask
		l.out.born.Store(path, perm|onlyOwner)
		defer l.out.born.Delete(path)
	}
	return l.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
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
	n    int
	err  error
}

// begin starts a call.
func (l *link) begin(call func() (int, error)) *pending {
	p := &pending{done: make(chan struct{})}
	l.calls.Go(func() {
		defer close(p.done)
		n, err := call()
		p.n, p.err = n, l.in.explain(err)
	})
	return p
}

func (p *pending) wait(ctx context.Context) (int, error) {
	select {
	case <-p.done:
		return p.n, p.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
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
	_, err := l.begin(func() (int, error) { return 0, call() }).wait(ctx)
	return err
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

// list lists a directory.
func (l *link) list(ctx context.Context, dir string) ([]fs.FileInfo, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer l.in.limit(cancel)()
	found, err := get(ctx, l, func() ([]fs.FileInfo, error) { return l.ReadDirContext(ctx, dir) })
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return found, err
}

// incoming is what the server sends. It notes why that ends, counts what comes of
// lists, and takes no OK where another answer is due.
type incoming struct {
	from io.Reader
	most int64 // of a list

	head   [13]byte // of a packet: its length, type and number, and of a status the code
	filled int
	left   int // of the packet's body

	mu     sync.Mutex
	err    error           // guarded by mu
	listed int64           // guarded by mu
	limits map[*limit]bool // of the lists that are under way; guarded by mu
	deeds  map[uint32]bool // the requests that OK is an answer to; guarded by mu
}

// A limit ends a list when too much has come since it began.
type limit struct {
	at  int64
	end context.CancelCauseFunc
}

// limit sets one, until the returned function is called.
func (in *incoming) limit(end context.CancelCauseFunc) (lift func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	l := &limit{in.listed + in.most, end}
	if in.limits == nil {
		in.limits = make(map[*limit]bool)
	}
	in.limits[l] = true
	return func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		delete(in.limits, l)
	}
}

// count adds to what has come of lists.
func (in *incoming) count(n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.listed += int64(n)
	for l := range in.limits {
		if in.listed > l.at {
			l.end(errEndless)
		}
	}
}

// The types of answers that are looked at, and the code of a status that stands for
// what can't be understood; draft-ietf-secsh-filexfer-02, sections 3 and 7.
const (
	typeStatus = 101
	typeName   = 104
	badMessage = 5
)

func (in *incoming) Read(b []byte) (int, error) {
	n, err := in.from.Read(b)
	in.follow(b[:n])
	if err != nil {
		in.ended(err)
	}
	return n, err
}

// ended notes why the connection has ended. What comes from the server says
// more than what cannot be sent, so it may come later.
func (in *incoming) ended(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.err == nil || errors.Is(err, transport.ErrLost) {
		in.err = err
	}
}

// expect notes a request that is about to be sent.
func (in *incoming) expect(request []byte) {
	if !isDeed(request) {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.deeds == nil {
		in.deeds = make(map[uint32]bool)
	}
	in.deeds[binary.BigEndian.Uint32(request[5:])] = true
}

// follow follows the packets.
func (in *incoming) follow(b []byte) {
	for len(b) > 0 {
		if in.left > 0 {
			n := min(in.left, len(b))
			in.left -= n
			b = b[n:]
			continue
		}
		n := copy(in.head[in.filled:in.headSize()], b)
		if in.filled += n; in.filled == in.headSize() {
			in.begun(&b[n-1])
			in.left = in.length() - in.filled
			in.filled = 0
		}
		b = b[n:]
	}
}

// length is that of a packet.
func (in *incoming) length() int { return 4 + int(max(binary.BigEndian.Uint32(in.head[:]), 1)) }

// headSize is how much of a packet is kept, as far as is known.
func (in *incoming) headSize() int {
	switch {
	case in.filled < 5:
		return 5
	case in.head[4] == typeStatus:
		return min(in.length(), 13)
	}
	return min(in.length(), 9)
}

// begun looks at the head of a packet. The library takes OK for an answer to everything,
// and gives nothing then where something was asked for: not even an error. last is the
// end of the head, which it has not seen.
func (in *incoming) begun(last *byte) {
	if in.head[4] == typeName {
		in.count(in.length() - 5)
	}
	if in.filled < 9 {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	number := binary.BigEndian.Uint32(in.head[5:])
	if !in.deeds[number] && in.filled == 13 && binary.BigEndian.Uint32(in.head[9:]) == 0 {
		*last = badMessage
	}
	delete(in.deeds, number)
}

// errGone is what the errors of calls match whose connection has ended.
var errGone = errors.New("the connection has ended")

// gone is why a connection has ended.
type gone struct{ cause error }

func (g gone) Error() string {
	if g.cause == io.EOF {
		return "the server has ended the connection"
	}
	return g.cause.Error()
}

func (g gone) Unwrap() error        { return g.cause }
func (g gone) Is(target error) bool { return target == errGone }

// answered reports whether an error is the server's word for it.
func answered(err error) bool {
	var status *sftp.StatusError
	return err == io.EOF || errors.As(err, &status) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// explain puts the cause in place of the end of a connection.
func (in *incoming) explain(err error) error {
	if err == nil || answered(err) || errors.Is(err, errGone) {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.err != nil:
		return gone{in.err}
	case errors.Is(err, sftp.ErrSSHFxConnectionLost):
		return gone{err}
	}
	return err
}
