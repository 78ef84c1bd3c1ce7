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

func (d serverDisk) open(path string, flags int) (*serverFile, error) {
	file, err := d.OpenFile(path, os.O_RDWR|flags)
	return &serverFile{file, d.umasks}, err
}

// make leaves it to the server what all may read: it has its umask.
func (d serverDisk) make(path string, perm fs.FileMode) (*serverFile, error) {
	if perm&0o044 != 0o044 {
		d.out.born.Store(path, perm)
		defer d.out.born.Delete(path)
	}
	return d.open(path, os.O_CREATE|os.O_EXCL)
}

func (d serverDisk) begun(path string, perm fs.FileMode, file *serverFile) (fs.FileMode, error) {
	if err := d.in.sound(); err != nil {
		return 0, err
	}
	return d.umasks.of(path, perm, file.Stat)
}

func (d serverDisk) reopen(path string) (*serverFile, error) { return d.open(path, 0) }

// A serverFile is the file of a part there.
type serverFile struct {
	*sftp.File
	umasks *umasks
}

// Chmod looks what has become of it, as that of a file here, once in a directory.
func (f *serverFile) Chmod(perm fs.FileMode) error {
	dir, _ := split(f.Name())
	if err := f.File.Chmod(perm); err != nil || f.umasks.obeyed(dir) {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().Perm() != perm {
		return fs.ErrPermission
	}
	if err == nil {
		f.umasks.obeys(dir)
	}
	return err
}
