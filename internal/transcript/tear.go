package transcript

import (
	"errors"
	"io/fs"
)

// A tear is what could not be written, or is gone, and why.
type tear struct {
	from, to Cursor
	err      error
}

// maxTears is how many tears are remembered: a disk may be full now and then for
// months.
const maxTears = 64

// tore notes a record that could not be written. The caller holds mu.
func (l *Log) tore(r record, err error) {
	if n := len(l.tears); n > 0 && l.tears[n-1].to == r.at {
		l.tears[n-1].to = r.end()
		return
	}
	l.note(tear{r.at, r.end(), err})
}

// gone notes a segment whose file is not there: somebody has removed it, unless it was
// dropped meanwhile.
func (l *Log) gone(b block, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.segment < l.index.start() {
		return
	}
	for i, t := range l.tears {
		if t.from == b.segment && errors.Is(t.err, fs.ErrNotExist) { // it has grown
			l.tears[i].to = max(t.to, b.segmentEnd)
			return
		}
	}
	l.note(tear{b.segment, b.segmentEnd, err})
}

// note remembers a tear. The caller holds mu.
func (l *Log) note(t tear) {
	if len(l.tears) == maxTears {
		l.tears = append(l.tears[:0], l.tears[1:]...)
	}
	l.tears = append(l.tears, t)
}

// Why returns the [*Error] for which bytes between two cursors could not be
// written, or are gone although nothing dropped them. It is nil where that was the
// limit, where a log that [Open] opened has never had them, and for a tear with many
// behind it.
func (l *Log) Why(from, to Cursor) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.tears {
		if t.from < to && from < t.to {
			return t.err
		}
	}
	return nil
}
