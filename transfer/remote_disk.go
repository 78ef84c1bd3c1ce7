package transfer

import (
	"io/fs"
	"os"

	"github.com/pkg/sftp"
)

// serverDisk is a server's.
type serverDisk struct {
	*link
	umasks *umasks
}

// open leaves it to the server what all may read of what it makes: it has its umask.
func (d serverDisk) open(path string, flags int, perm fs.FileMode) (*serverFile, error) {
	if flags&os.O_CREATE != 0 && perm&0o044 != 0o044 {
		d.out.born.Store(path, perm)
		defer d.out.born.Delete(path)
	}
	file, err := d.OpenFile(path, os.O_RDWR|flags)
	return &serverFile{file, d}, err
}

// A serverFile is the file of a part there.
type serverFile struct {
	*sftp.File
	disk serverDisk
}

func (f *serverFile) made(perm fs.FileMode) (fs.FileMode, error) {
	if err := f.disk.in.sound(); err != nil {
		return 0, err
	}
	return f.disk.umasks.of(f.Name(), perm, f.Stat)
}

// Chmod looks what has become of it, as that of a file here, once in a directory.
func (f *serverFile) Chmod(perm fs.FileMode) error {
	dir, _ := split(f.Name())
	if err := f.File.Chmod(perm); err != nil || f.disk.umasks.obeyed(dir) {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().Perm() != perm {
		return fs.ErrPermission
	}
	if err == nil {
		f.disk.umasks.obeys(dir)
	}
	return err
}
