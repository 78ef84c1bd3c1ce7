package transcript

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// A Chunk is what one stream wrote at once, or nearly so.
type Chunk struct {
	Stream Stream
	At     Cursor
	Time   time.Time
	Data   []byte
}

// End returns the cursor behind the chunk.
func (c Chunk) End() Cursor { return c.At + Cursor(len(c.Data)) }

// slice returns the chunk without its first bytes, and with n bytes at most.
func (c Chunk) slice(from, n int) Chunk {
	c.At += Cursor(from)
	c.Data = c.Data[from:min(from+n, len(c.Data))]
	return c
}

// moment is how far apart the writes of a chunk may be, and small how long it is
// at most when another is added to it.
const (
	moment = 10 * time.Millisecond
	small  = 4 << 10
)

// join adds a copy of a chunk, to the last one if that is small and goes on in
// it.
func join(chunks []Chunk, c Chunk) []Chunk {
	if len(chunks) > 0 {
		last := &chunks[len(chunks)-1]
		if len(last.Data) < small && last.Stream == c.Stream && last.End() == c.At && c.Time.Sub(last.Time) < moment {
			last.Data = append(last.Data, c.Data...)
			return chunks
		}
	}
	c.Data = bytes.Clone(c.Data)
	return append(chunks, c)
}

// Bytes returns the data of chunks as one.
func Bytes(chunks []Chunk) []byte {
	b := make([]byte, 0, length(chunks))
	for _, c := range chunks {
		b = append(b, c.Data...)
	}
	return b
}

func length(chunks []Chunk) (n int) {
	for _, c := range chunks {
		n += len(c.Data)
	}
	return n
}

// A piece is a chunk, or bytes from a cursor on that are not there, of whatever
// stream.
type piece struct {
	Chunk
	dropped int64
}

// A scan goes over a part of a log, one block in memory at a time. It holds no
// lock while it reads.
type scan struct {
	log     *Log
	at, to  Cursor // what is before at has been handed out
	streams set

	seek   Cursor // where the next block is looked for
	block  block
	rest   []byte // of the block
	buffer *[]byte
	file   *os.File // the segment of the block
}

// scan returns the streams' bytes between two cursors. The caller closes it.
func (l *Log) scan(from, to Cursor, streams set) *scan {
	from = max(from, 0)
	return &scan{log: l, at: from, seek: from, to: to, streams: streams}
}

func (s *scan) close() {
	if s.file != nil {
		s.file.Close()
	}
	if s.buffer != nil {
		buffers.Put(s.buffer)
	}
}

// next returns the next piece, whose data is valid until the next call. At the
// end the error is io.EOF.
func (s *scan) next() (piece, error) {
	for s.at < s.to {
		r, ok := s.record()
		if !ok {
			end, err := s.fetch()
			switch {
			case err == nil:
				continue
			case err != io.EOF:
				return piece{}, err
			case s.at < end:
				return s.gap(end), nil
			}
			return piece{}, io.EOF
		}
		if r.at > s.at {
			return s.gap(min(r.at, s.to)), nil
		}
		s.rest = s.rest[r.size():]
		if r.end() <= s.at {
			continue
		}
		c := Chunk{r.stream, s.at, time.Unix(0, r.time), r.data[s.at-r.at : min(r.end(), s.to)-r.at]}
		s.at = c.End()
		if s.streams.has(r.stream) {
			return piece{Chunk: c}, nil
		}
	}
	return piece{}, io.EOF
}

func (s *scan) gap(end Cursor) piece {
	p := piece{Chunk: Chunk{At: s.at}, dropped: int64(end - s.at)}
	s.at = end
	return p
}

// record returns the block's next record. What is damaged ends the block.
func (s *scan) record() (record, bool) {
	if len(s.rest) == 0 {
		return record{}, false
	}
	r, ok := parse(s.rest)
	if !ok || r.at < s.block.at || r.end() > s.block.end {
		s.rest = nil
		return record{}, false
	}
	return r, true
}

// fetch reads the next block. If there is none, the error is io.EOF, and what
// is missing up to the cursor returned is not there.
func (s *scan) fetch() (Cursor, error) {
	for {
		s.log.mu.Lock()
		b, ok := s.log.index.block(s.seek)
		end := s.log.end
		s.log.mu.Unlock()
		if !ok || b.at >= s.to {
			return min(end, s.to), io.EOF
		}
		if s.at >= b.at && b.without(s.streams) {
			s.at, s.seek = max(s.at, min(b.end, s.to)), b.end
			if s.at >= s.to {
				return s.to, io.EOF
			}
			continue
		}
		err := s.read(b)
		if err == nil {
			return 0, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		s.log.gone(b, err)
		s.seek = b.segmentEnd
	}
}

// read reads a block. What a file lacks at its end is as good as damaged.
func (s *scan) read(b block) error {
	if s.file == nil || s.block.segment != b.segment {
		if s.file != nil {
			s.file.Close()
		}
		var err error
		if s.file, err = s.log.open(b.segment, os.O_RDONLY); err != nil {
			return err
		}
	}
	if s.buffer == nil {
		s.buffer = buffers.Get().(*[]byte)
	}
	n, err := s.file.ReadAt((*s.buffer)[:b.size], b.offset)
	if err != nil && err != io.EOF {
		return failed("read", s.file.Name(), err)
	}
	s.rest, s.block, s.seek = (*s.buffer)[:n], b, b.end
	return nil
}
