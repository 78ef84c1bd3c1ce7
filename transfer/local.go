package transfer

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"

	"gateway/transport"
)

// Local is the files of this machine. A relative path begins in the working
// directory, or in Dir if it is set.
type Local struct {
	Name, Dir string

	stat func(*os.File) (fs.FileInfo, error) // how it is seen what a part has become; nil: by the file's own
}

// About implements [Machine].
func (l *Local) About() About { return About{Name: l.Name, Via: viaLocal} }

// Close implements [Machine].
func (l *Local) Close() error { return nil }

func (l *Local) at(path string) string {
	if l.Dir != "" && !filepath.IsAbs(path) {
		return l.Dir + "/" + path
	}
	if path == "" {
		return "."
	}
	return path
}

func (l *Local) problem(doing, path string, err error) error {
	return problem(l.Name, doing, path, err)
}

// Stat implements [Tree].
func (l *Local) Stat(_ context.Context, path string, follow bool) (Info, error) {
	stat := os.Lstat
	if follow {
		stat = os.Stat
	}
	info, err := stat(l.at(path))
	if err != nil {
		return Info{}, l.problem("look at", path, err)
	}
	return infoOf(info), nil
}

func infoOf(info fs.FileInfo) Info {
	return Info{Name: info.Name(), Mode: info.Mode(), Size: info.Size(), Accessed: accessed(info), Modified: info.ModTime()}
}

// Look returns what is at a path of this machine, behind symlinks. The error, which may
// come beside that, says why it can't be read. Only files and directories are opened: to
// open a FIFO would wait.
func Look(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return info, err
	}
	f, err := open(path)
	if err == nil {
		f.Close()
	}
	return info, err
}

// open opens a file to read it. What has become a FIFO since it was found must not block.
func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// List implements [Tree].
func (l *Local) List(ctx context.Context, dir string, each func(Info) error) error {
	f, err := os.OpenFile(l.at(dir), os.O_RDONLY|syscall.O_DIRECTORY, 0) // a FIFO does not block then, either
	if err != nil {
		return l.problem("list", dir, err)
	}
	defer f.Close()
	for ctx.Err() == nil {
		entries, err := f.ReadDir(256)
		for _, entry := range entries {
			info, err := entry.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // it has gone meanwhile
			}
			if err != nil {
				return l.problem("look at", Join(dir, entry.Name()), err)
			}
			if err := each(infoOf(info)); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return l.problem("list", dir, err)
		}
	}
	return transport.Cause(ctx)
}

// Readlink implements [Tree].
func (l *Local) Readlink(_ context.Context, path string) (string, error) {
	target, err := os.Readlink(l.at(path))
	return target, l.problem("read the symlink", path, err)
}

// Sum implements [Tree].
func (l *Local) Sum(ctx context.Context, path string, from, to int64) (Sum, error) {
	if to < 0 {
		to = math.MaxInt64
	}
	return sumContent(ctx, l, path, from, to)
}

// Mkdir implements [Target].
func (l *Local) Mkdir(_ context.Context, path string, perm fs.FileMode) error {
	return l.problem("make the directory", path, os.Mkdir(l.at(path), perm))
}

// Symlink implements [Target].
func (l *Local) Symlink(_ context.Context, target, path string) error {
	disk, part := localDisk{l}, partPath(path)
	err := os.Symlink(target, l.at(part))
	if err == nil {
		if err = disk.Rename(part, path); err != nil {
			_ = disk.Remove(part) // the error says what is wrong
		}
	}
	return l.problem("make the symlink", path, err)
}

// Chattr implements [Target].
func (l *Local) Chattr(_ context.Context, path string, attr Attr) error {
	if attr.Perm != nil {
		if err := os.Chmod(l.at(path), *attr.Perm); err != nil {
			return l.problem("change the mode of", path, err)
		}
	}
	if !attr.Modified.IsZero() {
		if err := os.Chtimes(l.at(path), attr.Accessed, attr.Modified); err != nil {
			return l.problem("set the times of", path, err)
		}
	}
	return nil
}

// Home implements [Machine].
func (l *Local) Home(context.Context) (string, error) {
	home, err := filepath.Abs(l.at(""))
	return home, l.problem("find", "", err)
}

// Settle implements [Target].
func (l *Local) Settle(_ context.Context, dir string) error {
	return l.problem(settling, dir, settle(l.at(dir)))
}

var _ Machine = (*Local)(nil)
