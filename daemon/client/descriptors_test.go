package client

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMarkDescriptors(t *testing.T) {
	for name, mark := range map[string]func() error{"all": closeOnExec, "each": markEach} {
		fd, err := unix.Dup(0) // without the mark
		if err != nil {
			t.Fatal(err)
		}
		file := os.NewFile(uintptr(fd), "dup")
		if err := mark(); err != nil {
			t.Error(name, err)
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("%s: flags %#x, %v, want FD_CLOEXEC", name, flags, err)
		}
		if flags, err := unix.FcntlInt(2, unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC != 0 {
			t.Errorf("%s: stderr has flags %#x, %v", name, flags, err)
		}
		file.Close()
	}
}
