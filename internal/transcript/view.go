package transcript

import "io"

// A View is what some streams wrote between two cursors. It holds no resources
// and may be used by several at once.
type View struct {
	log      *Log
	from, to Cursor
	streams  set
}

// View returns what these streams, or all, wrote between two cursors. What is
// behind the log's end counts when it comes.
func (l *Log) View(from, to Cursor, streams ...Stream) View {
	return View{l, max(from, 0), to, setOf(streams)}
}

// now returns the view as far as the log goes.
func (v View) now() View {
	v.to = max(v.from, min(v.to, v.log.End()))
	return v
}

// A Page is a piece of a log.
type Page struct {
	Chunks []Chunk
	// Next is where to go on reading: Next less Chunks and Dropped is what other
	// streams wrote.
	Next Cursor
	// Dropped is how many bytes, of whatever stream, stood before the first
	// chunk and are no longer there.
	Dropped int64
}

// Read returns up to limit bytes of the view behind a cursor. A page has no bytes
// if there are none yet, and ends where bytes are missing: so Dropped always says
// what is missing before its chunks.
//
// With an error the page has what came before it.
func (v View) Read(from Cursor, limit int) (Page, error) {
	s := v.log.scan(max(from, v.from), v.to, v.streams)
	defer s.close()
	page := Page{Next: s.at}
	for limit > 0 {
		p, err := s.next()
		if err == io.EOF {
			page.Next = s.at
			break
		}
		if err != nil {
			return page, err
		}
		if p.dropped > 0 {
			page.Next = p.At
			if len(page.Chunks) > 0 {
				break
			}
			page.Dropped += p.dropped
			page.Next = s.at
			continue
		}
		c := p.Chunk.slice(0, limit)
		limit -= len(c.Data)
		page.Chunks = join(page.Chunks, c)
		page.Next = c.End()
	}
	return page, nil
}

// Count returns how many bytes of the view's streams there are. It reads two blocks
// of the log at most. How much a command wrote in all is known to who counted it.
func (v View) Count() (int64, error) {
	from, to, err := v.now().tallies()
	return v.kept(from, to), err
}

func (v View) kept(from, to tally) int64 { return to.of(v.streams) - from.of(v.streams) }

func (v View) tallies() (from, to tally, err error) {
	if from, err = v.log.tally(v.from); err == nil {
		to, err = v.log.tally(v.to)
	}
	return from, to, err
}

// tally returns what was kept of each stream before a cursor. Where that has
// been dropped, it is what was kept before the log's start.
func (l *Log) tally(at Cursor) (tally, error) {
	for {
		l.mu.Lock()
		m, ok := l.index.last(func(m mark) bool { return m.at <= at })
		if !ok {
			m, ok = l.index.firstMark(0)
		}
		if !ok || at >= l.index.end() {
			m = mark{at: at, before: l.index.kept}
		}
		l.mu.Unlock()
		if m.at >= at {
			return m.before, nil
		}
		count, err := l.countFrom(m, at)
		if err != nil || m.at >= l.Start() {
			return count, err
		}
		// The block was dropped while it was read.
	}
}

// countFrom returns what was kept before a cursor, from a mark not far before
// it.
func (l *Log) countFrom(m mark, at Cursor) (tally, error) {
	s := l.scan(m.at, at, all)
	defer s.close()
	for {
		p, err := s.next()
		if err == io.EOF {
			return m.before, nil
		}
		if err != nil {
			return tally{}, err
		}
		m.before[p.Stream] += int64(len(p.Data))
	}
}

// An Excerpt is the beginning and the end of a view.
type Excerpt struct {
	// Head and Tail are the view's first and last bytes. If nothing is omitted,
	// all are in Head, or in Tail where no head was wanted.
	Head, Tail []Chunk
	// Total is how many bytes of the view's streams there are, Omitted how many
	// of them are neither in Head nor in Tail.
	Total, Omitted int64
	// Dropped is how many bytes of whatever stream are no longer there.
	Dropped int64
	// HeadEnd is the cursor behind Head: from there on [View.Read] returns what is
	// omitted.
	HeadEnd Cursor
}

// Excerpt returns up to head bytes of the beginning and up to tail bytes of the
// end, and reads little more than these.
func (v View) Excerpt(head, tail int) (Excerpt, error) {
	v = v.now()
	from, to, err := v.tallies()
	if err != nil {
		return Excerpt{}, err
	}
	e := Excerpt{Total: v.kept(from, to), Dropped: int64(v.to-v.from) - to.of(all) + from.of(all), HeadEnd: v.from}
	if head > 0 {
		if e.Total <= int64(head)+int64(tail) {
			head, tail = int(e.Total), 0
		}
		if e.Head, e.HeadEnd, err = v.collect(v.from, 0, head); err != nil {
			return e, err
		}
	}
	if tail = int(min(int64(tail), e.Total)); tail > 0 {
		at, skip := v.seek(from, to.of(v.streams)-int64(tail))
		if e.Tail, _, err = v.collect(at, skip, tail); err != nil {
			return e, err
		}
	}
	e.Omitted = e.Total - int64(length(e.Head)+length(e.Tail))
	return e, nil
}

// seek returns a cursor not far before the place where n bytes of the streams
// have been kept, and how many bytes of the streams to skip there. from is the
// tally at the view's beginning.
func (v View) seek(from tally, n int64) (Cursor, int64) {
	v.log.mu.Lock()
	defer v.log.mu.Unlock()
	m, ok := v.log.index.last(func(m mark) bool { return m.before.of(v.streams) <= n })
	if !ok || m.at < v.from {
		m = mark{at: v.from, before: from}
	}
	return m.at, n - m.before.of(v.streams)
}

// collect returns n bytes of the streams behind a cursor, without the first
// skip ones, and the cursor behind them.
func (v View) collect(at Cursor, skip int64, n int) (chunks []Chunk, end Cursor, err error) {
	s := v.log.scan(at, v.to, v.streams)
	defer s.close()
	end = at
	for n > 0 {
		p, err := s.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return chunks, end, err
		}
		cut := min(skip, int64(len(p.Data)))
		skip -= cut
		c := p.Chunk.slice(int(cut), n)
		if len(c.Data) == 0 {
			continue
		}
		end = c.End()
		n -= len(c.Data)
		chunks = join(chunks, c)
	}
	return chunks, end, nil
}
