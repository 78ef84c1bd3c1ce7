package transfer

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// settles: one call writes all small files to the disk, where one for each of
// them would take longer than everything else.
const settles = true

func settle(dir string) error {
	f, err := open(dir)
	if errors.Is(err, fs.ErrPermission) { // one may write where one may not read
		unix.Sync()
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// writeOut begins to write to the disk what a file has so far, and does not wait for
// its end.
func writeOut(f *os.File) {
	_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE) // what fails of it fails later, too
}

func accessed(info fs.FileInfo) time.Time {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(s.Atim.Unix())
	}
	return info.ModTime()
}
