package transcript

import "sort"

// blockSize is how far apart the marks of a segment are, at least. What lies
// between two of them is read at once.
const (
	blockSize = 32 << 10
	maxBlock  = blockSize + maxRecord
)

// A tally counts the bytes of each stream.
type tally [Streams]int64

// of returns how many bytes the streams have together.
func (t tally) of(s set) (n int64) {
	for stream, count := range t {
		if s.has(Stream(stream)) {
			n += count
		}
	}
	return n
}

// A set says which streams are wanted, a bit each.
type set uint8

const all set = 1<<Streams - 1

// setOf returns the set of these streams, and of all if there are none.
func setOf(streams []Stream) (s set) {
	for _, stream := range streams {
		s |= 1 << stream
	}
	if len(streams) == 0 {
		return all
	}
	return s
}

func (s set) has(stream Stream) bool { return s&(1<<stream) != 0 }

// A mark says where a record stands in its file, and what was kept of each
// stream before it, since the log began or as far back as it could be read.
type mark struct {
	at     Cursor
	offset int64
	before tally
}

// A segment is one file. It is named after the cursor where it starts.
type segment struct {
	start, end Cursor // end: behind its last record
	size       int64
	marks      []mark // the first record, and then one for each block
}

// An index knows the files of a log.
type index struct {
	segments []segment
	kept     tally
	size     int64 // of all files
}

// start returns where the oldest segment begins.
func (x *index) start() Cursor {
	if len(x.segments) == 0 {
		return 0
	}
	return x.segments[0].start
}

// end returns the cursor behind the last record.
func (x *index) end() Cursor {
	if len(x.segments) == 0 {
		return 0
	}
	return x.segments[len(x.segments)-1].end
}

// add takes note of a record in the last segment.
func (x *index) add(r record, offset int64) {
	s := &x.segments[len(x.segments)-1]
	if len(s.marks) == 0 || offset-s.marks[len(s.marks)-1].offset >= blockSize {
		s.marks = append(s.marks, mark{r.at, offset, x.kept})
	}
	s.size = offset + r.size()
	s.end = r.end()
	x.size += r.size()
	x.kept[r.stream] += int64(len(r.data))
}

// drop forgets the oldest segment.
func (x *index) drop() {
	x.size -= x.segments[0].size
	x.segments[0].marks = nil
	x.segments = x.segments[1:]
}

// A block is a part of a file, from a mark to the next.
type block struct {
	mark
	segment, segmentEnd Cursor
	size                int64  // in the file
	end                 Cursor // where the next block begins, or the segment ends
	after               tally  // what was kept of each stream before end
}

// without reports whether a block holds nothing of these streams, and whether
// nothing of it was lost: there is no need to read it.
func (b block) without(s set) bool {
	return b.before.of(s) == b.after.of(s) && b.after.of(all)-b.before.of(all) == int64(b.end-b.at)
}

// block returns the first one that may hold bytes behind the cursor.
func (x *index) block(at Cursor) (block, bool) {
	// Segments and marks are in order, so both are found by halves.
	i := sort.Search(len(x.segments), func(i int) bool { return x.segments[i].end > at })
	for i < len(x.segments) && len(x.segments[i].marks) == 0 {
		i++
	}
	if i == len(x.segments) {
		return block{}, false
	}
	s := x.segments[i]
	j := sort.Search(len(s.marks), func(j int) bool { return s.marks[j].at > at })
	return x.blockAt(i, max(j-1, 0)), true
}

func (x *index) blockAt(i, j int) block {
	s := x.segments[i]
	b := block{mark: s.marks[j], segment: s.start, segmentEnd: s.end, size: s.size, end: s.end, after: x.kept}
	if j+1 < len(s.marks) {
		next := s.marks[j+1]
		b.size, b.end, b.after = next.offset, next.at, next.before
	} else if next, ok := x.firstMark(i + 1); ok {
		b.after = next.before
	}
	b.size -= b.offset
	return b
}

// firstMark returns the first mark from a segment on.
func (x *index) firstMark(i int) (mark, bool) {
	for ; i < len(x.segments); i++ {
		if marks := x.segments[i].marks; len(marks) > 0 {
			return marks[0], true
		}
	}
	return mark{}, false
}

// last returns the last mark for which before is true, which must hold for all
// marks up to one and for none behind it.
func (x *index) last(before func(mark) bool) (m mark, ok bool) {
	for _, s := range x.segments {
		j := sort.Search(len(s.marks), func(j int) bool { return !before(s.marks[j]) })
		if j > 0 {
			m, ok = s.marks[j-1], true
		}
		if j < len(s.marks) {
			break
		}
	}
	return m, ok
}
