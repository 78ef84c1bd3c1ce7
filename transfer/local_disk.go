package transfer

import (
	"io/fs"
	"os"
	"syscall"
)

// localDisk is this machine's.
type localDisk struct{ *Local }

func (d localDisk) open(path string, flags int, perm fs.FileMode) (*localFile, error) {
	file, err := os.OpenFile(d.at(path), os.O_RDWR|syscall.O_NOFOLLOW|flags, perm)
	return &localFile{file, d.Local}, err
}

func (d localDisk) Lstat(path string) (fs.FileInfo, error)    { return os.Lstat(d.at(path)) }
func (d localDisk) Chmod(path string, perm fs.FileMode) error { return os.Chmod(d.at(path), perm) }
func (d localDisk) Rename(from, to string) error              { return os.Rename(d.at(from), d.at(to)) }
func (d localDisk) Remove(path string) error                  { return os.Remove(d.at(path)) }

// A localFile is the file of a part here.
type localFile struct {
	*os.File
	local *Local
}

func (f *localFile) made(fs.FileMode) (fs.FileMode, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Mode().Perm(), nil
}

func (f *localFile) Stat() (fs.FileInfo, error) {
	if f.local.stat != nil {
		return f.local.stat(f.File)
	}
	return f.File.Stat()
}

// Chmod looks what has become of it: Linux says yes of a disk such as FAT, and leaves the
// permissions as they are.
func (f *localFile) Chmod(perm fs.FileMode) error {
	if err := f.File.Chmod(perm); err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().Perm() != perm {
		err = fs.ErrPermission
	}
	return err
}
