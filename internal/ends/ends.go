// Package ends keeps of a stream what a reader is shown of a long one.
package ends

import "gateway/internal/phrase"

// Ends is the beginning and the end of a stream, and how long it was: the end of
// a log matters as much as its beginning. Its memory is bounded by both, however
// much is added. It is not for concurrent use.
type Ends struct {
	// Head and Tail are how many bytes are kept of either. They are set before
	// anything is added.
	Head, Tail int

	head  []byte // it and the tail have a few bytes more, which show what a cut goes through
	tail  []byte // what is behind the head; a ring once it is as long as it gets
	at    int    // where the ring's oldest byte is
	total int64
}

// Add adds b to the stream.
func (e *Ends) Add(b []byte) {
	e.total += int64(len(b))
	if room := e.Head + phrase.Margin - len(e.head); room > 0 {
		n := min(room, len(b))
		e.head = append(e.head, b[:n]...)
		b = b[n:]
	}
	size := e.Tail + phrase.Margin
	if len(b) >= size {
		e.tail, e.at = append(e.tail[:0], b[len(b)-size:]...), 0
		return
	}
	if room := size - len(e.tail); room > 0 {
		n := min(room, len(b))
		e.tail = append(e.tail, b[:n]...)
		b = b[n:]
	}
	for len(b) > 0 {
		n := copy(e.tail[e.at:], b)
		b = b[n:]
		e.at = (e.at + n) % size
	}
}

// Total returns how many bytes were added.
func (e *Ends) Total() int64 { return e.total }

// Whole reports whether nothing was left out.
func (e *Ends) Whole() bool { return e.fits(0) }

// fits reports whether nothing would be left out with n bytes more.
func (e *Ends) fits(n int) bool { return e.total+int64(n) <= int64(e.Head)+int64(e.Tail) }

// Parts returns copies of the two ends, cut between characters; first is all of
// it if nothing was left out.
func (e *Ends) Parts() (first, last []byte) {
	all := make([]byte, 0, len(e.head)+len(e.tail))
	all = append(all, e.head...)
	all = append(all, e.tail[e.at:]...)
	all = append(all, e.tail[:e.at]...)
	if e.Whole() {
		return all, nil
	}
	return phrase.Ends(all, all, e.Head, e.Tail)
}

// Bytes returns a copy of both ends, one behind the other.
func (e *Ends) Bytes() []byte {
	first, last := e.Parts()
	return append(first, last...)
}
