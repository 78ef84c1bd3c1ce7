package transcript

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"gateway/internal/phrase"
)

// An Error is what could not be done with a log's files.
type Error struct {
	Op, Path string
	Err      error
	code     string
	hint     string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("transcript: %s %s: %v", e.Op, e.Path, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorCode returns transcript.unsafe where others could reach the files, and
// else transcript.disk.
func (e *Error) ErrorCode() string { return e.code }

// ErrorHint returns the remedy, or the empty string.
func (e *Error) ErrorHint() string { return e.hint }

func failed(op, path string, err error) *Error {
	e := &Error{Op: op, Path: path, Err: phrase.WithoutPath(err), code: "transcript.disk"}
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		e.hint = "make room on the disk; commands go on, but their output is not kept meanwhile"
	case errors.Is(err, fs.ErrNotExist):
		e.hint = "somebody has removed it; commands go on, but their output is kept in another session only"
	case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
		e.hint = "this machine or its limits (ulimit -n) let no more files be opened; commands go on, but their output is not kept meanwhile"
	}
	return e
}

func unsafe(path, problem, hint string) *Error {
	return &Error{"open", path, errors.New(problem), "transcript.unsafe", hint}
}

// check refuses what somebody else could write or read.
func check(path string, info fs.FileInfo, directory bool) error {
	switch stat, ok := info.Sys().(*syscall.Stat_t); {
	case directory && !info.IsDir():
		return unsafe(path, "not a directory", "remove it")
	case !directory && !info.Mode().IsRegular():
		return unsafe(path, "not a file", "remove it")
	case ok && int(stat.Uid) != os.Geteuid():
		return unsafe(path, "owned by another user", "remove it, or its directory")
	case !directory && ok && stat.Nlink > 1:
		return unsafe(path, "it has a second name", "remove it")
	case info.Mode().Perm()&0o077 != 0:
		return unsafe(path, "open to other users, mode "+strconv.FormatUint(uint64(info.Mode().Perm()), 8), "chmod go= "+path)
	}
	return nil
}

const (
	namePrefix = "transcript-"
	nameSuffix = ".log"
	nameDigits = 20 // so that names sort as their cursors do
)

func (l *Log) path(start Cursor) string {
	return filepath.Join(l.dir, fmt.Sprintf("%s%0*d%s", namePrefix, nameDigits, int64(start), nameSuffix))
}

// segments returns the starts of the segments in a directory, in order.
func segments(dir string) ([]Cursor, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, failed("open", dir, err)
	}
	if err := check(dir, info, true); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, failed("open", dir, err)
	}
	var starts []Cursor
	for _, entry := range entries {
		digits, ok := strings.CutPrefix(entry.Name(), namePrefix)
		digits, suffixed := strings.CutSuffix(digits, nameSuffix)
		if !ok || !suffixed || len(digits) != nameDigits {
			continue
		}
		if start, err := strconv.ParseUint(digits, 10, 63); err == nil {
			starts = append(starts, Cursor(start))
		}
	}
	slices.Sort(starts)
	return starts, nil
}

// open opens a segment's file, for reading or with other flags.
func (l *Log) open(start Cursor, flags int) (*os.File, error) {
	path := l.path(start)
	// O_NONBLOCK: else a FIFO under this name would block.
	file, err := os.OpenFile(path, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.ELOOP) {
		return nil, unsafe(path, "a symbolic link", "remove it")
	}
	if err != nil {
		return nil, failed("open", path, err)
	}
	info, err := file.Stat()
	if err == nil {
		err = check(path, info, false)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, maxBlock); return &b }}

// write writes a record into the last segment, and makes room before. The
// caller holds writing, so the index changes nowhere else.
func (l *Log) write(r record) (offset int64, err error) {
	if err := l.ready(r); err != nil {
		return 0, err
	}
	offset = l.index.segments[len(l.index.segments)-1].size
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	b := r.appendTo((*buffer)[:0])
	if _, err := l.file.WriteAt(b, offset); err != nil {
		// Half a record takes room on a disk that is full. If it stays, the next
		// one is written over it.
		_ = l.file.Truncate(offset)
		err = failed("write", l.file.Name(), err)
		l.rest() // what it was on may be gone, and another one mounted in its place
		return 0, err
	}
	return offset, nil
}

// ready sees to it that there is an open segment with room for the record, and
// drops what is over the limit.
func (l *Log) ready(r record) error {
	last := len(l.index.segments) - 1
	if last >= 0 && l.index.segments[last].size > 0 && l.index.segments[last].size+r.size() > l.segment {
		l.rest()
		last = -1
	}
	var err error
	switch {
	case last < 0:
		if l.file, err = l.open(r.at, os.O_WRONLY|os.O_CREATE|os.O_EXCL); err == nil {
			l.mu.Lock()
			l.index.segments = append(l.index.segments, segment{start: r.at, end: r.at})
			l.mu.Unlock()
		}
	case l.file == nil:
		l.file, err = l.open(l.index.segments[last].start, os.O_WRONLY)
	}
	for err == nil && l.index.size+r.size() > l.limit && len(l.index.segments) > 1 {
		oldest := l.index.segments[0].start
		l.mu.Lock()
		l.index.drop()
		l.mu.Unlock()
		// A file that can't be removed is in nobody's way: it is not read again.
		_ = os.Remove(l.path(oldest))
	}
	return err
}
