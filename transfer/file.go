package transfer

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"
)

// maxWeight is what a file takes of the budget at most: it is about what is
// under way of it, over two channels.
const maxWeight = 2 * ahead

// file copies a regular file.
func (w *walk) file(ctx context.Context, t task) {
	if weight := min(t.info.Size, maxWeight); t.info.Size > Small {
		if w.budget.Acquire(ctx, weight) != nil {
			return
		}
		defer w.budget.Release(weight)
	}
	begun := time.Now()
	old, have, err := w.there(ctx, t, "file")
	done := false
	if err == nil && w.Checksum && have && old.Mode.IsRegular() && old.Size == t.info.Size {
		done, err = w.unchanged(ctx, t, old)
	}
	switch {
	case err != nil:
		w.failed(ctx, t.from, t.to, err)
		return
	case done:
		w.count(&w.report.Unchanged, 1)
		w.event(Event{Path: t.from, Target: t.to, Done: Unchanged, Size: t.info.Size})
		return
	case w.DryRun:
		w.count(&w.report.Files, 1)
		w.count(&w.report.Bytes, t.info.Size)
		w.event(Event{Path: t.from, Target: t.to, Done: Would, Size: t.info.Size})
		return
	}
	f := &fileCopy{walk: w, task: t}
	if have && old.Mode.IsRegular() {
		f.keep = new(old.Mode.Perm())
	}
	n, err := f.copy(ctx)
	if err != nil {
		w.failed(ctx, t.from, t.to, err)
		return
	}
	w.count(&w.report.Files, 1)
	if w.To.About().Via != viaLocal { // which needs no second look
		w.count(&w.report.Checked, 1)
	}
	if f.info.Size <= Small || !syncs(w.To) {
		w.settle.Store(true)
	}
	w.event(Event{Path: t.from, Target: t.to, Done: Copied, Bytes: n, Size: f.at + n, Duration: time.Since(begun)})
}

// there returns what has the name of the copy already, unless nothing of a kind
// takes its place.
func (w *walk) there(ctx context.Context, t task, kind string) (info Info, have bool, err error) {
	if err := w.take(t); err != nil {
		return Info{}, false, err
	}
	if err := w.meets(ctx, t); err != nil {
		return Info{}, false, err
	}
	if t.fresh {
		return Info{}, false, nil
	}
	info, err = w.To.Stat(ctx, t.to, false)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Info{}, false, nil
	case err != nil:
		return Info{}, false, err
	case info.Mode.IsDir():
		return Info{}, false, refuse(codeIsDirectory, "", "%s is a directory: no %s takes its place", Show(w.To.About().Name, t.to), kind)
	case !info.Mode.IsRegular() && info.Mode&fs.ModeSymlink == 0:
		return Info{}, false, refuse(codeSpecial, "", "%s is no regular file (%s): no %s takes its place", Show(w.To.About().Name, t.to), kindOf(info.Mode), kind)
	}
	return info, true, nil
}

// unchanged reports whether the target has the same bytes already, and gives the file
// what else it is to have.
func (w *walk) unchanged(ctx context.Context, t task, old Info) (bool, error) {
	if same, err := w.same(ctx, t); !same || err != nil {
		return false, err
	}
	f := &fileCopy{walk: w, task: t}
	attr := Attr{f.final(), f.times()}
	if attr.Perm != nil && *attr.Perm == old.Mode.Perm() {
		attr.Perm = nil
	}
	if attr.Modified.Unix() == old.Modified.Unix() {
		attr.Modified = time.Time{}
	}
	if attr.empty() || w.DryRun {
		return true, nil
	}
	err := w.To.Chattr(ctx, t.to, attr)
	if errors.Is(err, fs.ErrPermission) { // somebody else's can be replaced
		return false, nil
	}
	return err == nil, err
}

// same reports whether the target has the same bytes already.
func (w *walk) same(ctx context.Context, t task) (bool, error) {
	sum := func(m Machine, path string) (Sum, error) {
		if t.info.Size <= Small && m.About().Via == viaSFTP {
			return sumContent(ctx, m, path, 0, t.info.Size)
		}
		return m.Sum(ctx, path, 0, -1)
	}
	if t.info.Size == 0 { // or so it says: what the kernel makes up has no size before it is read
		some, err := ReadAt(ctx, w.From, t.from, t.info, 0, 1)
		return len(some) == 0, err
	}
	var theirs Sum
	var failed error
	var other sync.WaitGroup
	other.Go(func() { theirs, failed = sum(w.To, t.to) })
	ours, err := sum(w.From, t.from)
	other.Wait()
	if errors.Is(failed, fs.ErrPermission) { // it can be replaced all the same
		return false, err
	}
	return ours == theirs, errors.Join(err, failed)
}
