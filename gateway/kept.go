package gateway

import (
	"sync"

	"gateway/internal/phrase"
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
	data   []byte // at most a good half of a limit more than the limit
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
	// What is next to the cuts shows later which characters they go through.
	head, tail := size-size/2+phrase.Margin, size/2+phrase.Margin
	if len(k.data) > head+tail+size/2 {
		k.data = append(k.data[:head], k.data[len(k.data)-tail:]...)
	}
}

// close ends it; what comes later is another command's.
func (k *kept) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.spool != nil && !k.closed {
		k.spool.Close()
	}
	k.closed = true
	if size := k.size(); len(k.data) > size {
		first, last := phrase.Ends(k.data, k.data, size-size/2, size/2)
		k.data = append(first, last...)
	}
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
