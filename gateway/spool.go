package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"gateway/session"
)

// The limits of the contract.
const (
	maxSpool    = 64 << 20 // of one stream of a command
	maxSpools   = 1 << 30  // of all
	maxSpoolAge = 7 * 24 * time.Hour
)

// spools is the directory of the files that hold long output whole.
type spools struct {
	dir  string
	warn func(string)
	once sync.Once // one warning is enough
}

// open returns a spool for one stream of a command, or nil: a command never
// fails for want of a spool.
func (s *spools) open(id string, from session.Stream) session.Spool {
	if s.dir == "" {
		s.complain(errors.New("there is no directory for it"))
		return nil
	}
	file, err := s.create(id + "." + from.String())
	if err != nil {
		s.complain(err)
		return nil
	}
	return &spool{spools: s, file: file}
}

func (s *spools) complain(err error) {
	s.once.Do(func() { s.warn(fmt.Sprintf("output is not kept whole: %v", err)) })
}

func (s *spools) create(name string) (*os.File, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	s.prune(maxSpool)
	return os.OpenFile(filepath.Join(s.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// prune removes what is too old, and the oldest beyond the limit of all with room
// for so much more.
func (s *spools) prune(room int64) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	var files []os.FileInfo
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b os.FileInfo) int { return cmp.Compare(b.ModTime().UnixNano(), a.ModTime().UnixNano()) })
	total := room
	for _, info := range files {
		total += info.Size()
		if total > maxSpools || time.Since(info.ModTime()) > maxSpoolAge {
			os.Remove(filepath.Join(s.dir, info.Name()))
		}
	}
}

// spool implements [ends.Spool]. One goroutine at a time uses it.
type spool struct {
	spools *spools
	file   *os.File
	size   int64
	failed bool
}

var errSpoolFull = errors.New("more than 64 MiB")

func (s *spool) Write(b []byte) (int, error) {
	if s.failed {
		return 0, errSpoolFull
	}
	s.size += int64(len(b))
	var err error
	if s.size > maxSpool {
		err = &os.PathError{Op: "write", Path: s.file.Name(), Err: errSpoolFull}
	} else if _, err = s.file.Write(b); err == nil {
		return len(b), nil
	}
	// Half a stream under the name of a whole one would be a lie.
	s.failed = true
	s.spools.complain(err)
	s.file.Close()
	os.Remove(s.file.Name())
	return 0, err
}

func (s *spool) Close() error {
	if s.failed {
		return nil
	}
	defer s.spools.prune(0) // others have grown beside it
	return s.file.Close()
}

// Name returns the path of the file, or nothing if it is not whole.
func (s *spool) Name() string {
	if s.failed {
		return ""
	}
	return s.file.Name()
}
