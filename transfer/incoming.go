package transfer

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"sync"

	"github.com/pkg/sftp"

	"gateway/transport"
)

// incoming is what the server sends. It notes why that ends, counts what comes of
// lists, and takes no OK where another answer is due, and no handle that is in use.
type incoming struct {
	from io.Reader
	most int64 // of a list

	head   [4 + 1 + 4 + 4 + 256]byte // of a packet: its length, type and number, of a status the code, and a handle
	filled int
	left   int // of the packet's body

	mu     sync.Mutex
	err    error           // guarded by mu
	listed int64           // guarded by mu
	limits map[*limit]bool // of the lists that are under way; guarded by mu
	deeds  map[uint32]bool // the requests that OK is an answer to; guarded by mu
	open   map[string]bool // the handles that are in use; guarded by mu
	double bool            // one was given twice; guarded by mu
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
	typeClose  = 4
	typeStatus = 101
	typeHandle = 102
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
	if request[4] == typeClose {
		delete(in.open, string(request[9:]))
	}
	if in.deeds == nil {
		in.deeds = make(map[uint32]bool)
	}
	in.deeds[binary.BigEndian.Uint32(request[5:])] = true
}

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
	case in.head[4] == typeHandle:
		return min(in.length(), len(in.head))
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
	if in.head[4] == typeHandle {
		in.given(string(in.head[9:in.filled]))
	}
}

// given notes a handle; mu is held.
func (in *incoming) given(handle string) {
	if in.open == nil {
		in.open = make(map[string]bool)
	}
	in.double = in.double || in.open[handle]
	in.open[handle] = true
}

// errDouble is about what Erlang's server does from the third open file on: what is meant for
// one goes into another, and is read back from there.
var errDouble = refuse(codeUnsafe, "copy its files one by one", "the server takes two open files for one")

// sound returns errDouble once that has happened. What is asked before an answer has come is
// sound if it is behind that.
func (in *incoming) sound() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.double {
		return errDouble
	}
	return nil
}

// errGone is what the errors of calls match whose connection has ended.
var errGone = errors.New("the connection has ended")

// gone is why a connection has ended.
type gone struct{ cause error }

func (g gone) Error() string {
	if g.cause == io.EOF || errors.Is(g.cause, io.ErrClosedPipe) { // whichever is noticed first
		return "the server has ended the connection"
	}
	return g.cause.Error()
}

func (g gone) Unwrap() error { return g.cause }

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
