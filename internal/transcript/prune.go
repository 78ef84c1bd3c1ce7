package transcript

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// goneSuffix is what a directory is renamed to before it is removed, so that a
// crash leaves no half of a session.
const goneSuffix = ".gone"

// Prune removes directories in root, the oldest first: those in which nothing
// was written for longer than age, and more until the files in them have no more
// than total bytes. It asks keep, if there is one, before it removes one. It
// follows no symbolic links, and returns what it removed, also with an error.
func Prune(root string, total int64, age time.Duration, keep func(dir string) bool) (removed []string, err error) {
	info, err := os.Lstat(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, failed("prune", root, err)
	}
	if err := check(root, info, true); err != nil {
		return nil, err
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, failed("prune", root, err)
	}
	defer r.Close()
	dirs, err := directories(r)
	if err != nil {
		return nil, failed("prune", root, err)
	}
	var size int64
	for _, d := range dirs {
		size += d.size
	}
	var problems []error
	for _, d := range dirs {
		path := filepath.Join(root, d.name)
		gone := strings.HasSuffix(d.name, goneSuffix)
		if !gone && (size <= total && time.Since(d.written) <= age || keep != nil && keep(path)) {
			continue
		}
		if err := remove(r, d.name, gone); err != nil {
			problems = append(problems, failed("remove", path, err))
			continue
		}
		size -= d.size
		removed = append(removed, path)
	}
	return removed, errors.Join(problems...)
}

func remove(root *os.Root, name string, gone bool) error {
	if !gone {
		if err := root.Rename(name, name+goneSuffix); err != nil {
			return err
		}
		name += goneSuffix
	}
	return root.RemoveAll(name)
}

// A directory is what Prune knows of one.
type directory struct {
	name    string
	size    int64
	written time.Time // when something in it changed last
}

// directories returns those in root, the oldest first.
func directories(root *os.Root) ([]directory, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var dirs []directory
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		d := directory{name: entry.Name()}
		// What can't be read counts for nothing: it must not stop the others.
		_ = fs.WalkDir(root.FS(), d.name, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil {
				return fs.SkipDir
			}
			if info, err := entry.Info(); err == nil {
				if !entry.IsDir() {
					d.size += info.Size()
				}
				if info.ModTime().After(d.written) {
					d.written = info.ModTime()
				}
			}
			return nil
		})
		dirs = append(dirs, d)
	}
	slices.SortFunc(dirs, func(a, b directory) int {
		return cmp.Or(a.written.Compare(b.written), cmp.Compare(a.name, b.name))
	})
	return dirs, nil
}
