// Package transcript keeps the output of a session on disk and gives it back
// by byte cursors.
//
// A [Log] takes what several streams write, in the order of arrival. A
// [Cursor] counts the bytes of all streams since the beginning, so it names a
// place for ever, also when the oldest bytes have been dropped: whoever reads
// there is told how many are missing. A [View] is what some streams wrote
// between two cursors, the output of one command for example.
package transcript

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"
)

// A Cursor is a place in a log: how many bytes stand before it.
type Cursor int64

// A Stream says where bytes came from. The numbers are the caller's.
type Stream uint8

// Streams is how many streams a log has: 0 to Streams-1.
const Streams = 4

// defaultLimit is the contract's for a spool.
const defaultLimit = 64 << 20

// ErrClosed: an Append to a log that was closed, or that [Open] opened.
var ErrClosed = errors.New("transcript: closed")

// Options may be left zero.
type Options struct {
	// Limit is how many bytes the files may take together, 64 MiB if not set.
	// The oldest are dropped. Each record takes 24 bytes beside its data.
	Limit int64
	// Segment is how large one file becomes, and how much is dropped at once: a
	// sixteenth of Limit if not set, at most half of it, and at least 64.
	Segment int64
}

// A Log is one session's output. Any number of writers and readers may use it
// at once; a reader that is slow does not hold up a writer. An idle log has no
// goroutine, and no open file after Rest.
type Log struct {
	dir     string
	limit   int64
	segment int64
	piece   int // how much data a record holds

	writing sync.Mutex // held while a record is written; taken before mu
	file    *os.File   // the last segment, open for writing, or nil; guarded by writing
	problem error      // what an Append could not write last; guarded by writing

	mu      sync.Mutex // guards what follows; never held during I/O
	index   index
	end     Cursor
	closed  bool
	tears   []tear
	damaged int64 // set by Open only
}

// Create starts a log in dir, which it makes with mode 0700 where it does not
// exist. A directory that others may enter is refused, and one that holds a log
// already.
func Create(dir string, options Options) (*Log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, failed("create", dir, err)
	}
	starts, err := segments(dir)
	if err != nil {
		return nil, err
	}
	if len(starts) > 0 {
		return nil, failed("create", dir, fs.ErrExist)
	}
	l := &Log{dir: dir, limit: options.Limit, segment: options.Segment}
	if l.limit <= 0 {
		l.limit = defaultLimit
	}
	if l.segment <= 0 {
		l.segment = l.limit / 16
	}
	l.segment = max(min(l.segment, l.limit/2), 64)
	l.piece = int(min(l.segment-headerSize, maxData))
	return l, nil
}

// Append adds bytes and returns the cursor behind them. It does not keep b.
//
// With an error the bytes are lost, or a part of them, but they are counted:
// the cursor is right, readers are told what is missing, and [Log.Why] says why.
// The next Append tries again. Only after Close nothing is counted, and the error is
// [ErrClosed].
func (l *Log) Append(from Stream, b []byte) (Cursor, error) {
	if from >= Streams {
		return l.End(), failed("append", l.dir, errors.New("no such stream"))
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.isClosed() {
		return l.End(), ErrClosed
	}
	l.problem = nil
	now := time.Now()
	for len(b) > 0 {
		n := min(len(b), l.piece)
		l.add(record{from, l.end, now.UnixNano(), b[:n]}) // only add changes end
		b = b[n:]
	}
	return l.End(), l.problem
}

// add writes one record and counts it, written or not. The caller holds
// writing.
func (l *Log) add(r record) {
	offset, err := l.write(r)
	if err != nil {
		l.problem = err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.index.add(r, offset)
	} else {
		l.tore(r, err) // with end, so that nobody sees the gap without its cause
	}
	l.end = r.end()
}

// End returns the cursor behind the last byte.
func (l *Log) End() Cursor {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// Start returns the cursor of the oldest byte that may still be there: what
// stands before it was dropped.
func (l *Log) Start() Cursor {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.index.start()
}

// Damaged returns how many bytes of the files [Open] could not make sense of:
// the record that was being written during a crash, for example.
func (l *Log) Damaged() int64 { return l.damaged }

// Rest closes the log's file until the next Append: for a session that is
// idle, since a thousand of them would need a thousand descriptors.
func (l *Log) Rest() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.rest()
}

func (l *Log) rest() {
	if l.file != nil {
		l.file.Close() // nothing is buffered
		l.file = nil
	}
}

// Close ends the writing; the log may still be read. It may be called again.
func (l *Log) Close() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.isClosed() {
		return nil
	}
	l.problem = nil
	if l.end > l.index.end() {
		// An empty record keeps the cursor that the log came to, behind bytes
		// that could not be written.
		l.add(record{at: l.end, time: time.Now().UnixNano()})
	}
	l.rest()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.problem
}

func (l *Log) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}
