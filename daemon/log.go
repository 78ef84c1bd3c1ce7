package daemon

import (
	"bytes"
	"io"
	"os"
	"sync"
)

// maxLog bounds the log of a daemon that runs for months, in bytes.
const maxLog = 1 << 20

// A Log bounds a file that is open for reading and appending. When it is full,
// the older half goes.
type Log struct {
	mu   sync.Mutex
	file *os.File
}

// NewLog returns the log in a file, which stays the caller's to close.
func NewLog(file *os.File) *Log { return &Log{file: file} }

// Write implements [io.Writer].
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// What a panic says goes past this, so the length is the file's.
	if info, err := l.file.Stat(); err == nil && info.Size()+int64(len(b)) > maxLog {
		if err := l.halve(info.Size()); err != nil {
			return 0, err
		}
	}
	return l.file.Write(b)
}

// halve keeps whole lines of the newer half.
func (l *Log) halve(size int64) error {
	from := max(0, size-maxLog/2)
	tail, err := io.ReadAll(io.NewSectionReader(l.file, from, size-from))
	if err != nil {
		return err
	}
	if at := bytes.IndexByte(tail, '\n'); from > 0 && at >= 0 {
		tail = tail[at+1:]
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err = l.file.Write(tail)
	return err
}
