package transfer

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/pkg/sftp"
)

// A disk is where the files of parts are made: this machine's, or a server's.
type disk[F partFile] interface {
	// open opens a file. One that it makes has no more than these permissions, as far as
	// the disk does what it is asked for.
	open(path string, flags int, perm fs.FileMode) (F, error)

	Lstat(path string) (fs.FileInfo, error)
	Chmod(path string, perm fs.FileMode) error
	Rename(from, to string) error
	Remove(path string) error
}

// A partFile is the file of a part.
type partFile interface {
	// made returns the permissions that it got when it was made with these.
	made(perm fs.FileMode) (fs.FileMode, error)
	Stat() (fs.FileInfo, error)
	Chmod(perm fs.FileMode) error
	Truncate(size int64) error
	Close() error
}

// partOn makes the file of a part at a path, or has an old part take its place. A disk that
// gives it more permissions than it is asked for, as a server that does not look at them, is
// told once more.
func partOn[F partFile](d disk[F], machine, path string, s Spec) (F, perms, error) {
	var none F
	begins := s.begins()
	file, err := d.open(path, os.O_CREATE|os.O_EXCL, begins)
	if err != nil {
		return none, perms{}, err
	}
	has, err := file.made(begins)
	p := perms{has, s.ends(lessUmask(s.Perm, has))}
	if err == nil && s.Old != "" {
		file, p.has, err = takeOver(d, machine, path, s, file)
		return file, p, err
	}
	if err == nil && has&^begins != 0 {
		p.has, err = s.chmod(machine, file, has&begins)
	}
	if err != nil {
		_ = file.Close()
		_ = d.Remove(path) // the error says what is wrong
		return none, perms{}, err
	}
	return file, p, nil
}

// takeOver puts the old part in the place of the new one: under a name of one's own it is
// nobody else's to go on with.
func takeOver[F partFile](d disk[F], machine, path string, s Spec, ours F) (file F, has fs.FileMode, err error) {
	err = sameOwner(d, machine, s.Old, ours)
	_ = ours.Close()
	err = cmp.Or(err, d.Remove(path))
	if err == nil {
		err = d.Rename(s.Old, path)
	}
	if err == nil {
		file, err = d.open(path, 0, 0)
		if errors.Is(err, fs.ErrPermission) { // it had what the file is to have
			if err = d.Chmod(path, onlyOwner); err == nil {
				file, err = d.open(path, 0, 0)
			}
		}
	}
	if err == nil {
		if has, err = s.chmod(machine, file, onlyOwner); err == nil {
			err = file.Truncate(s.At)
		}
		if err != nil {
			_ = file.Close()
		}
	}
	return file, has, problem(machine, "take over", s.Old, err)
}

// sameOwner refuses an old part that does not belong to whom a new file does, and what has
// taken its place since it was found.
func sameOwner[F partFile](d disk[F], machine, old string, ours F) error {
	mine, err := ours.Stat()
	if err != nil {
		return err
	}
	theirs, err := d.Lstat(old)
	if err == nil && (!theirs.Mode().IsRegular() || owner(theirs) != owner(mine)) {
		err = foreignPart(machine, old)
	}
	return err
}

// owner is the number of whom a file belongs to.
func owner(info fs.FileInfo) uint32 {
	switch stat := info.Sys().(type) {
	case *syscall.Stat_t:
		return stat.Uid
	case *sftp.FileStat:
		return stat.UID
	}
	return 0
}
