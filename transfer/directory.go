package transfer

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"strings"
)

// mkdir makes the directory of a task, unless it is there.
func (w *walk) mkdir(ctx context.Context, t task) (fresh bool, err error) {
	if !t.fresh {
		if there, err := w.isDir(ctx, t); there || err != nil {
			return false, err
		}
	}
	if w.DryRun {
		return true, nil
	}
	perm := t.info.Mode.Perm()
	made := w.To.Mkdir(ctx, t.to, perm|0o700)
	if made != nil {
		if there, err := w.isDir(ctx, t); !there || err != nil {
			return false, cmp.Or(err, made)
		}
		if !errors.Is(made, fs.ErrPermission) { // another copy has made it meanwhile
			return false, nil
		}
	}
	w.count(&w.report.Dirs, 1)
	var end *fs.FileMode
	if perm&0o700 != 0o700 && !w.Preserve { // it is to have less than it needs while it is filled
		made, err := w.To.Stat(ctx, t.to, false)
		if err != nil {
			return false, err
		}
		end = new(perm & made.Mode.Perm())
	}
	w.dirEnd(t, end)
	return true, nil
}

// isDir reports whether the directory of a task is there. Nothing else takes its place.
func (w *walk) isDir(ctx context.Context, t task) (bool, error) {
	// DST may be a symlink, which was named. What is in it was not: another copy, of
	// what a hostile machine has, may have put it there.
	info, err := w.To.Stat(ctx, t.to, t.to == w.Into)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case info.Mode&fs.ModeSymlink != 0:
		return false, refuse(codeNotDirectory, "remove it, or copy into what it points to", "%s is a symlink, which is not followed", Show(w.To.About().Name, t.to))
	case !info.Mode.IsDir():
		return false, refuse(codeNotDirectory, "", "%s is there and no directory", Show(w.To.About().Name, t.to))
	}
	w.dirEnd(t, nil)
	return true, nil
}

// dirEnd notes what a directory gets in the end: perm, or what is to be kept.
func (w *walk) dirEnd(t task, perm *fs.FileMode) {
	attr := Attr{Perm: perm}
	if w.Preserve {
		attr = Attr{new(t.info.Mode.Perm()), Times{t.info.Accessed, t.info.Modified}}
	}
	if attr.empty() || w.DryRun {
		return
	}
	w.run.mu.Lock()
	defer w.run.mu.Unlock()
	w.attrs[t.to] = attr
}

// finishDirs gives directories what they could not have while they were filled,
// the deepest first: one that nobody may enter must be the last on its way.
func (r *run) finishDirs(ctx context.Context) {
	byDepth := map[int][]string{}
	deepest := 0
	for dir := range r.attrs {
		depth := strings.Count(dir, "/")
		byDepth[depth] = append(byDepth[depth], dir)
		deepest = max(deepest, depth)
	}
	for depth := deepest; depth >= 0; depth-- {
		forAll(byDepth[depth], func(_ int, dir string) {
			err := r.finishDir(ctx, dir, r.attrs[dir])
			if err != nil && (r.Preserve || !errors.Is(err, fs.ErrPermission)) { // a disk such as FAT has the same ones for all
				r.failed(ctx, dir, dir, err)
			}
		})
	}
}

// finishDir leaves a directory what makes it a group's, or everybody's: that is its own.
func (r *run) finishDir(ctx context.Context, dir string, attr Attr) error {
	if attr.Perm != nil {
		info, err := r.To.Stat(ctx, dir, true)
		if err != nil {
			return err
		}
		attr.Perm = new(*attr.Perm | info.Mode&(fs.ModeSetgid|fs.ModeSticky))
	}
	return r.To.Chattr(ctx, dir, attr)
}
