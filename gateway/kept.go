package gateway

import (
	"sync"

	"gateway/session"
)

// keptLimit is how much of a stream a result keeps; see session.Command.
const keptLimit = 1 << 20

// kept is what is kept of a stream of several commands: the head and the tail
// up to a limit, and everything in a spool once that is passed.
type kept struct {
	limit int
	open  func() session.Spool // nil: no spool

	mu     sync.Mutex
	data   []byte // at most half a limit more than the limit
	total  int64
	spool  session.Spool
	closed bool
}

func (k *kept) size() int {
	if k.limit > 0 {
		return max(k.limit, 2)
	}
	return keptLimit
}

func (k *kept) write(b []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	size := k.size()
	if k.total+int64(len(b)) > int64(size) && k.total <= int64(size) && k.open != nil {
		if k.spool = k.open(); k.spool != nil {
			_, _ = k.spool.Write(k.data) // a spool that fails says so in its Name
		}
	}
	if k.spool != nil {
		_, _ = k.spool.Write(b) // as above
	}
	k.total += int64(len(b))
	k.data = append(k.data, b...)
	if len(k.data) > size+size/2 {
		k.data = headAndTail(k.data, size)
	}
}

// headAndTail returns the beginning and the end of data, size bytes together, in
// its place.
func headAndTail(data []byte, size int) []byte {
	if len(data) <= size {
		return data
	}
	head := size - size/2
	return append(data[:head], data[len(data)-size/2:]...)
}

// close ends it; what comes later is another command's.
func (k *kept) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.spool != nil && !k.closed {
		k.spool.Close()
	}
	k.closed = true
	k.data = headAndTail(k.data, k.size())
}

func (k *kept) bytes() []byte { return k.data }

// truncated reports whether bytes leaves something out. It is for after close.
func (k *kept) truncated() bool { return k.total > int64(len(k.data)) }

// file names the file with the whole stream, if there is one. It is for after
// close.
func (k *kept) file() string {
	if k.spool == nil {
		return ""
	}
	return k.spool.Name()
}
