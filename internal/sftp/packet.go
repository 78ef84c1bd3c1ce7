package sftp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// The packets of draft-ietf-secsh-filexfer-02, section 3.
const (
	typeInit     = 1
	typeVersion  = 2
	typeOpen     = 3
	typeClose    = 4
	typeRead     = 5
	typeWrite    = 6
	typeLstat    = 7
	typeFstat    = 8
	typeSetstat  = 9
	typeFsetstat = 10
	typeOpendir  = 11
	typeReaddir  = 12
	typeRemove   = 13
	typeMkdir    = 14
	typeRmdir    = 15
	typeStat     = 17
	typeRename   = 18
	typeReadlink = 19
	typeSymlink  = 20
	typeStatus   = 101
	typeHandle   = 102
	typeData     = 103
	typeName     = 104
	typeAttrs    = 105
	typeExtended = 200
	typeReply    = 201
)

// How [Client.Open] opens a file; section 6.3.
const (
	Read   = 1
	Write  = 2
	Create = 8
	Trunc  = 16
	Excl   = 32
)

const (
	attrSize     = 1
	attrOwner    = 2
	attrMode     = 4
	attrTimes    = 8
	attrExtended = 1 << 31
)

// Attr is what a machine says about a file, or is told to change. What Has does
// not name is not known.
type Attr struct {
	has          uint32
	Size         int64
	UID, GID     uint32
	mode         uint32
	atime, mtime uint32
}

// WithMode returns the attributes with permissions to set.
func (a Attr) WithMode(perm fs.FileMode) Attr {
	a.has |= attrMode
	a.mode = uint32(perm.Perm())
	return a
}

// WithTimes returns the attributes with times to set. The protocol has whole
// seconds, up to the year 2106.
func (a Attr) WithTimes(atime, mtime time.Time) Attr {
	a.has |= attrTimes
	a.atime, a.mtime = seconds(atime), seconds(mtime)
	return a
}

// WithSize returns the attributes with a size to cut or extend to.
func (a Attr) WithSize(size int64) Attr {
	a.has |= attrSize
	a.Size = size
	return a
}

// Empty reports whether nothing is set.
func (a Attr) Empty() bool { return a.has == 0 }

func seconds(t time.Time) uint32 { return uint32(min(max(t.Unix(), 0), 1<<32-1)) }

// Mode returns type and permissions. A machine that names no type leaves it a
// regular file.
func (a Attr) Mode() fs.FileMode { return Mode(a.mode) }

// Mode returns what the bits of inode(7) stand for.
func Mode(bits uint32) fs.FileMode {
	mode := fs.FileMode(bits & 0o777)
	switch bits & 0o170000 {
	case 0o040000:
		mode |= fs.ModeDir
	case 0o120000:
		mode |= fs.ModeSymlink
	case 0o010000:
		mode |= fs.ModeNamedPipe
	case 0o140000:
		mode |= fs.ModeSocket
	case 0o060000:
		mode |= fs.ModeDevice
	case 0o020000:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	}
	return mode
}

// Times returns when the file was read and changed last.
func (a Attr) Times() (atime, mtime time.Time) {
	return time.Unix(int64(a.atime), 0), time.Unix(int64(a.mtime), 0)
}

// packet is a packet that is being written.
type packet []byte

func (p packet) u32(v uint32) packet  { return binary.BigEndian.AppendUint32(p, v) }
func (p packet) u64(v uint64) packet  { return binary.BigEndian.AppendUint64(p, v) }
func (p packet) str(s string) packet  { return append(p.u32(uint32(len(s))), s...) }
func (p packet) data(b []byte) packet { return append(p.u32(uint32(len(b))), b...) }

func (p packet) attr(a Attr) packet {
	p = p.u32(a.has)
	if a.has&attrSize != 0 {
		p = p.u64(uint64(a.Size))
	}
	if a.has&attrMode != 0 {
		p = p.u32(a.mode)
	}
	if a.has&attrTimes != 0 {
		p = p.u32(a.atime).u32(a.mtime)
	}
	return p
}

var errShort = errors.New("sftp: the server sent a packet that is too short")

// reader takes a packet apart. Its first error stays.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) take(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.rest) {
		r.err = errShort
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *reader) str() string {
	n := r.u32()
	if uint64(n) > uint64(len(r.rest)) {
		r.err = errShort
		return ""
	}
	return string(r.take(int(n)))
}

func (r *reader) attr() Attr {
	a := Attr{has: r.u32()}
	if a.has&attrSize != 0 {
		size := r.u64()
		if size > 1<<63-1 {
			r.err = fmt.Errorf("sftp: the server names a size of %d bytes", size)
		}
		a.Size = int64(size)
	}
	if a.has&attrOwner != 0 {
		a.UID, a.GID = r.u32(), r.u32()
	}
	if a.has&attrMode != 0 {
		a.mode = r.u32()
	}
	if a.has&attrTimes != 0 {
		a.atime, a.mtime = r.u32(), r.u32()
	}
	if a.has&attrExtended != 0 {
		for n := r.u32(); n > 0 && r.err == nil; n-- {
			r.str()
			r.str()
		}
	}
	return a
}

// Status is a request that the machine refused.
type Status struct {
	Code    uint32
	Message string
}

// What a [Status] says; section 7.
const (
	StatusEOF         = 1
	StatusNotFound    = 2
	StatusPermission  = 3
	StatusFailure     = 4
	StatusBadMessage  = 5
	StatusUnsupported = 8
)

func (s *Status) Error() string {
	if s.Message != "" {
		return s.Message
	}
	return fmt.Sprintf("status %d", s.Code)
}

// Is makes errors.Is work with the errors of package fs.
func (s *Status) Is(target error) bool {
	switch s.Code {
	case StatusNotFound:
		return target == fs.ErrNotExist
	case StatusPermission:
		return target == fs.ErrPermission
	}
	return false
}
