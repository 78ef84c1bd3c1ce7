package transfer

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"sync"
	"time"

	"gateway/gateway"
	"gateway/transport"
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
	if err != nil {
		w.failed(ctx, t.from, t.to, err)
		return
	}
	if w.Checksum && have && old.Mode.IsRegular() && old.Size == t.info.Size {
		same, err := w.same(ctx, t)
		if err != nil {
			w.failed(ctx, t.from, t.to, err)
			return
		}
		if same {
			err = w.unchanged(ctx, t, old)
			if err == nil {
				w.count(&w.report.Unchanged)
				w.event(Event{Path: t.from, Target: t.to, Done: Unchanged, Size: t.info.Size})
				return
			}
			if !errors.Is(err, fs.ErrPermission) { // somebody else's can be replaced
				w.failed(ctx, t.from, t.to, err)
				return
			}
		}
	}
	if w.DryRun {
		w.n.files.Add(1)
		w.n.bytes.Add(t.info.Size)
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
	w.n.files.Add(1)
	if f.checked {
		w.count(&w.report.Checked)
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

// unchanged gives a file that has its bytes already what else it is to have.
func (w *walk) unchanged(ctx context.Context, t task, old Info) error {
	attr := (&fileCopy{walk: w, task: t}).attr()
	if attr.Perm != nil && *attr.Perm == old.Mode.Perm() {
		attr.Perm = nil
	}
	if attr.Modified.Unix() == old.Modified.Unix() {
		attr.Modified = time.Time{}
	}
	if attr.empty() || w.DryRun {
		return nil
	}
	return w.To.Chattr(ctx, t.to, attr)
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

// A fileCopy is one file under way.
type fileCopy struct {
	*walk
	task
	keep    *fs.FileMode // the permissions of the file that is replaced
	at      int64        // what was there already
	others  []string     // parts that are not gone on with
	stale   bool         // the source has been written to since that was compared with it
	checked bool
}

// copy copies the file and returns how many bytes it has moved.
func (f *fileCopy) copy(ctx context.Context) (n int64, err error) {
	var old string
	before := f.info
	// In a directory that was just made there is no part. Less than a step is not gone on with.
	if f.Resume && (!f.fresh || f.rel == "") && f.info.Size >= step {
		if before, err = f.From.Stat(ctx, f.from, true); err != nil {
			return 0, err
		}
		if old, f.at, err = f.oldPart(ctx); err != nil {
			return 0, err
		}
	}
	content, err := f.From.Open(ctx, f.from, f.info, f.at)
	if err != nil {
		return 0, err
	}
	defer content.Close()
	if err := f.opened(ctx, content, before); err != nil {
		return 0, err
	}
	perm := f.perm()
	part, err := f.To.Create(ctx, Spec{Path: f.to, Perm: perm | 0o400, Size: f.info.Size, Old: old, At: f.at})
	committed := false
	if part != nil {
		defer func() {
			if err == nil || committed {
				return
			}
			keep := f.at+n >= worthKeeping && !wrong(err) && (f.Resume || gateway.Code(err) != codeNoSpace)
			if part.Abandon(keep); keep {
				f.count(&f.report.Kept)
			}
		}()
	}
	if err != nil {
		return 0, f.besides(err)
	}
	if f.Watch != nil {
		f.Watch.Begin(f.from, f.info.Size, f.at)
	}
	f.n.resumed.Add(f.at)
	c := newChecker(ctx, f, part.Path())
	defer c.close()
	if n, err = f.stream(ctx, content, part, c); err != nil {
		return n, err
	}
	attr := f.attr()
	now, unreadable := readable(attr.Perm)
	unreadable = unreadable || attr.Perm == nil && perm&0o400 == 0
	checked, err := part.Finish(ctx, Attr{now, attr.Accessed, attr.Modified})
	if err != nil {
		return n, err
	}
	if err := c.source(content, n); err != nil {
		return n, err
	}
	if !checked {
		err := c.target()
		if err == nil && f.Preserve { // it was read for that
			err = f.To.Chattr(ctx, part.Path(), Attr{nil, attr.Accessed, attr.Modified})
		}
		if err != nil {
			return n, err
		}
	}
	f.checked = f.To.About().Via != viaLocal
	err = part.Commit(ctx)
	if committed = err == nil; committed && unreadable {
		err = hide(ctx, f.To, f.to)
	}
	if committed {
		f.sweep(ctx)
	}
	if unsure(err) {
		err = mayBeDone(f.To, f.to, err)
		f.count(&f.report.Unsure)
	}
	return n, err
}

// besides says of a part that could not be made where it was to be.
func (f *fileCopy) besides(err error) error {
	var e *transport.Error
	if errors.As(err, &e) && e.Code == codePermission && e.Hint == "" {
		dir, _ := split(f.to)
		e.Hint = "a copy is made beside the file and then gets its name: " + Show(f.To.About().Name, dir) + " has to be writable"
	}
	return err
}

// opened takes the file for what it is now: another one may have its name since
// it was found.
func (f *fileCopy) opened(ctx context.Context, content Content, before Info) error {
	info, err := content.Opened(ctx)
	if err != nil {
		return err
	}
	if info.Size < f.at || info.Size == 0 && f.info.Size > 0 {
		return f.hasChanged()
	}
	info.Name = f.info.Name
	f.info, f.stale = info, differs(info, before)
	return nil
}

// wrong reports whether a copy is no beginning of what it should be.
func wrong(err error) bool {
	var e *transport.Error
	return errors.As(err, &e) && (e.Code == codeMismatch || e.Code == codeChanged)
}

// worthKeeping is from where on a part of a file is kept for another time.
const worthKeeping = 8 << 20

// perm is what a new file is to have, less the umask.
func (f *fileCopy) perm() fs.FileMode {
	if f.Mode != nil || f.Preserve || f.keep != nil {
		return 0o600 // what it is to have is set before it gets its name
	}
	return f.info.Mode.Perm()
}

// attr is what the file gets.
func (f *fileCopy) attr() Attr {
	var attr Attr
	switch {
	case f.Mode != nil:
		attr.Perm = f.Mode
	case f.Preserve:
		attr.Perm = new(f.info.Mode.Perm())
	case f.keep != nil:
		attr.Perm = f.keep
	}
	if f.Preserve {
		attr.Accessed, attr.Modified = f.info.Accessed, f.info.Modified
	}
	return attr
}

// stream moves the bytes.
func (f *fileCopy) stream(ctx context.Context, content Content, part Part, c *checker) (n int64, err error) {
	source, lends := content.(lender)
	if !lends {
		pool := &largeBuffers
		if f.info.Size <= Small {
			pool = &smallBuffers
		}
		own := newBlocks(content, pool)
		defer own.close()
		source = own
	}
	defer c.wait()
	for ctx.Err() == nil {
		most := int64(math.MaxInt64)
		if f.info.Size > 0 { // no more than it had; what comes later is not looked at
			most = f.info.Size - f.at - n
		}
		if most == 0 {
			return n, nil
		}
		b, err := source.lend(most)
		if len(b) > 0 {
			c.write(b, source.free)
			if _, err := part.Write(b); err != nil {
				return n, err
			}
			n += int64(len(b))
			f.n.bytes.Add(int64(len(b)))
			if f.Watch != nil {
				f.Watch.Moved(f.from, len(b))
			}
		}
		switch {
		case err == io.EOF:
			if f.at+n < f.info.Size {
				return n, f.hasChanged()
			}
			return n, nil
		case err != nil:
			return n, err
		}
	}
	return n, context.Cause(ctx)
}

func (f *fileCopy) hasChanged() error {
	return refuse(codeChanged, "copy it again when nobody writes to it; a file that the kernel makes up may never have the size it shows", "%s changed while it was read", Show(f.From.About().Name, f.task.from))
}
