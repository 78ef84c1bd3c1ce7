package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// hasData reports, without waiting, whether something can be read from f that
// is not read without -i: bytes in a pipe or a socket, or the rest of a file.
func hasData(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		at, err := f.Seek(0, io.SeekCurrent)
		return err == nil && at < info.Size()
	case mode&(os.ModeNamedPipe|os.ModeSocket) != 0:
		n, err := unix.IoctlGetInt(int(f.Fd()), ioctlReadable)
		return err == nil && n > 0
	}
	return false
}
