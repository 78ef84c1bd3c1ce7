package transcript

import (
	"bufio"
	"os"
)

// Open opens the log in dir for reading only, after a crash for example. It
// reads all of it, and leaves out what is damaged, which [Log.Damaged] counts:
// in each file the records up to the first damaged one are there. A directory
// without a log is an empty log.
func Open(dir string) (*Log, error) {
	starts, err := segments(dir)
	if err != nil {
		return nil, err
	}
	l := &Log{dir: dir, closed: true}
	for _, start := range starts {
		if err := l.load(start); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Reach notes that the log came to a cursor. Its files say so as well, unless that
// could not be written, as on a full disk.
func (l *Log) Reach(end Cursor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = max(l.end, end)
}

// Bounds returns where the log in dir starts and ends, as [Open] would find. It reads
// the last file only.
func Bounds(dir string) (start, end Cursor, err error) {
	starts, err := segments(dir)
	if err != nil || len(starts) == 0 {
		return 0, 0, err
	}
	l := &Log{dir: dir}
	err = l.load(starts[len(starts)-1])
	return starts[0], l.end, err
}

// load adds the sound part of a file to the index.
func (l *Log) load(start Cursor) error {
	file, err := l.open(start, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return failed("open", file.Name(), err)
	}
	l.end = max(l.end, start)
	l.index.segments = append(l.index.segments, segment{start: start, end: l.end})
	var offset int64
	for from := bufio.NewReaderSize(file, maxRecord); ; {
		r, ok := readRecord(from)
		if !ok || r.at < l.end {
			break
		}
		l.index.add(r, offset)
		l.end = r.end()
		offset += r.size()
		_, _ = from.Discard(int(r.size())) // it is in the buffer
	}
	l.damaged += info.Size() - offset
	return nil
}

// readRecord returns the next record without taking it.
func readRecord(from *bufio.Reader) (record, bool) {
	header, _ := from.Peek(headerSize) // an error shows as less than that
	size, ok := claimed(header)
	if !ok {
		return record{}, false
	}
	b, _ := from.Peek(size)
	return parse(b)
}
