package transcript

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

// A record is one piece of output as it stands in a file:
//
//	4 bytes  CRC-32C of all that follows
//	3 bytes  length of the data
//	1 byte   stream
//	8 bytes  cursor of the first byte
//	8 bytes  nanoseconds since 1970
//	         data
//
// All numbers are little-endian. A cursor higher than the end of the record
// before means that what is between them was lost; a lower one belongs to a
// file's earlier life. A record without data only says where the log ended.
type record struct {
	stream Stream
	at     Cursor
	time   int64
	data   []byte
}

const (
	headerSize = 24
	maxData    = 64 << 10
	maxRecord  = headerSize + maxData
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (r record) end() Cursor { return r.at + Cursor(len(r.data)) }
func (r record) size() int64 { return headerSize + int64(len(r.data)) }

func (r record) appendTo(b []byte) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.data))|uint32(r.stream)<<24)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.at))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.time))
	b = append(b, r.data...)
	binary.LittleEndian.PutUint32(b[start:], crc32.Checksum(b[start+4:], castagnoli))
	return b
}

// claimed returns how long the record is that begins with these bytes, if it is
// one. It looks at no checksum.
func claimed(header []byte) (size int, ok bool) {
	if len(header) < headerSize {
		return 0, false
	}
	n := int(binary.LittleEndian.Uint32(header[4:]) & 0xffffff)
	return headerSize + n, n <= maxData
}

// parse returns the record at the beginning of b, whose data it shares.
func parse(b []byte) (record, bool) {
	size, ok := claimed(b)
	if !ok || len(b) < size || crc32.Checksum(b[4:size], castagnoli) != binary.LittleEndian.Uint32(b) {
		return record{}, false
	}
	r := record{
		stream: Stream(b[7]),
		at:     Cursor(binary.LittleEndian.Uint64(b[8:])),
		time:   int64(binary.LittleEndian.Uint64(b[16:])),
		data:   b[headerSize:size],
	}
	return r, r.stream < Streams && r.at >= 0 && r.at <= math.MaxInt64-maxData
}
