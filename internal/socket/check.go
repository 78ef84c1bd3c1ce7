package socket

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxLinks is how many symbolic links one path may lead through, as in the
// kernel (path_resolution(7)).
const maxLinks = 40

func owner(info fs.FileInfo) int {
	return int(info.Sys().(*syscall.Stat_t).Uid)
}

// checkDir returns an error unless the directory is ours alone, and nobody but
// us and root could put another one into its place. Only then what is found in
// it can be trusted, and stays so after it was looked at.
func checkDir(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail(err, startIt, "%s: no such directory", dir)
	case err != nil:
		return unusable(dir, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return fail(nil, elsewhere, "%s: the directory of the socket is a symbolic link", dir)
	case !info.IsDir():
		return fail(syscall.ENOTDIR, elsewhere, "%s: not a directory", dir)
	case owner(info) != os.Geteuid():
		return fail(nil, elsewhere, "%s: the directory of the socket belongs to user %d, not to %d", dir, owner(info), os.Geteuid())
	case info.Mode().Perm()&0o077 != 0:
		// A chmod is no remedy: the directory may be /tmp.
		return fail(nil, elsewhere, "%s: the directory of the socket is open to others (mode %04o)", dir, info.Mode().Perm())
	}
	return checkAbove(filepath.Dir(dir))
}

// CanMakeDir reports why [MakeDir] would fail, as far as can be seen. It makes nothing.
func CanMakeDir(path string) error {
	at := filepath.Dir(path)
	err := checkDir(at)
	for errors.Is(err, fs.ErrNotExist) {
		at = filepath.Dir(at)
		err = checkAbove(at)
	}
	if err == nil {
		if denied := unix.Access(at, unix.W_OK|unix.X_OK); denied != nil {
			return unusable(at, denied)
		}
	}
	return err
}

// checkAbove walks from the root to dir as the kernel does, and looks at every
// directory and symbolic link on the way.
func checkAbove(dir string) error {
	at, links := "/", 0
	rest := strings.Split(dir, "/")
	for {
		if err := checkPlace(at); err != nil {
			return err
		}
		for len(rest) > 0 && (rest[0] == "" || rest[0] == ".") {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return nil
		}
		next := filepath.Join(at, rest[0]) // "at" has no links in it, so that ".." is what it seems
		rest = rest[1:]
		info, err := os.Lstat(next)
		if err != nil {
			return unusable(next, err)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err == nil && links > maxLinks {
			err = syscall.ELOOP
		}
		switch {
		case err != nil:
			return unusable(next, err)
		case !trusted(info):
			return fail(nil, elsewhere, "%s, on the way to the socket, is a symbolic link of user %d", next, owner(info))
		case filepath.IsAbs(target):
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
}

// checkPlace returns an error if others could replace what is in a directory.
// The sticky bit keeps them from that, but not the directory's owner.
func checkPlace(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return unusable(dir, err)
	case !info.IsDir():
		return fail(syscall.ENOTDIR, elsewhere, "%s: not a directory", dir)
	case !trusted(info):
		return fail(nil, elsewhere, "%s, above the socket, belongs to user %d", dir, owner(info))
	case info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0:
		return fail(nil, elsewhere, "%s, above the socket, can be written to by others (mode %04o)", dir, info.Mode().Perm())
	}
	return nil
}

func trusted(info fs.FileInfo) bool { return owner(info) == 0 || owner(info) == os.Geteuid() }
