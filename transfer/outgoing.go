package transfer

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"slices"
	"sync"

	"gateway/transport"
)

// outgoing is a pipe's stdin, whose end is the pipe's. What is asked while earlier
// requests are being written goes with the others in one piece: that many fewer
// packets are sealed here and opened there, which is most of what a small request
// costs. An error of writing ends the connection, and with it all calls.
type outgoing struct {
	pipe *transport.Pipe
	in   *incoming
	born sync.Map // path to fs.FileMode, of files that are being made for few

	mu      sync.Mutex
	changed sync.Cond
	waiting []byte // what comes next; guarded by mu
	rest    int    // what is missing of its last request; guarded by mu
	spare   []byte // guarded by mu
	busy    bool   // something is being written; guarded by mu
	err     error  // guarded by mu
}

// enough is how much may wait until who asks has to wait, too.
const enough = 16 << 10

func newOutgoing(pipe *transport.Pipe, in *incoming) *outgoing {
	o := &outgoing{pipe: pipe, in: in}
	o.changed.L = &o.mu
	return o
}

// Write implements [io.Writer]. The library calls it for one request at a time,
// twice for one that writes to a file: head and content.
func (o *outgoing) Write(b []byte) (int, error) {
	total := len(b)
	b = o.withPerm(b)
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && o.busy && o.rest == 0 && len(o.waiting) > enough {
		o.changed.Wait()
	}
	if o.err != nil {
		return 0, o.err
	}
	if o.rest == 0 {
		o.in.expect(b)
		o.rest = 4 + int(binary.BigEndian.Uint32(b))
	}
	o.rest -= len(b)
	o.waiting = append(o.waiting, b...)
	if !o.busy && o.rest == 0 {
		o.busy = true
		go o.flush() // ends with the pipe; Close waits for it
	}
	return total, nil
}

// flush writes what waits until nothing does.
func (o *outgoing) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && len(o.waiting) > 0 {
		b := o.waiting
		o.waiting, o.spare = o.spare[:0], nil
		o.changed.Broadcast()
		o.mu.Unlock()
		_, err := o.pipe.Stdin.Write(b)
		if err != nil { // who waits for an answer is to learn of it
			o.in.ended(err)
			_ = o.pipe.Close()
		}
		o.mu.Lock()
		o.spare, o.err = b[:0], err
	}
	o.busy = false
	o.changed.Broadcast()
}

// Close implements [io.Closer].
func (o *outgoing) Close() error {
	err := o.pipe.Close()
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.busy {
		o.changed.Wait()
	}
	return err
}

// What a request to open a file begins with: its length, type and number, and
// the length of the path. Behind the path are two words, the flags and which
// attributes follow; draft-ietf-secsh-filexfer-02, sections 5 and 6.3.
const (
	typeOpen        = 3
	openHead        = 4 + 1 + 4 + 4
	attrPermissions = 4
)

// isDeed reports whether OK is an answer to a request: those to close, write, set
// attributes, remove, make a directory, remove one, rename and make a symlink, and those
// of OpenSSH but for the one about a disk; draft-ietf-secsh-filexfer-02, section 3.
func isDeed(request []byte) bool {
	const extended = 200
	switch request[4] {
	case 4, 6, 9, 10, 13, 14, 15, 18, 20:
		return true
	case extended:
		return !bytes.HasPrefix(request[openHead:], []byte(statvfs))
	}
	return false
}

// withPerm puts permissions into the request that makes a file: the library
// sends none, and who opens the file before it is closed to others could go on to
// read it. Nothing else that is written has the name of a part in this place.
func (o *outgoing) withPerm(b []byte) []byte {
	if len(b) < openHead+8 || b[4] != typeOpen {
		return b
	}
	perm, ok := o.born.Load(string(b[openHead : len(b)-8]))
	if !ok {
		return b
	}
	b = binary.BigEndian.AppendUint32(slices.Clone(b[:len(b)-4]), attrPermissions)
	b = binary.BigEndian.AppendUint32(b, uint32(perm.(fs.FileMode)))
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}
