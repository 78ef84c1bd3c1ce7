package transcript

// A tear is what could not be written, and why.
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
	if len(l.tears) == maxTears {
		l.tears = append(l.tears[:0], l.tears[1:]...)
	}
	l.tears = append(l.tears, tear{r.at, r.end(), err})
}

// Why returns the [*Error] for which bytes between two cursors could not be
// written. It is nil where they were dropped for the limit, in a log that [Open]
// opened, and for a tear with many behind it.
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
