package transfer

import (
	"context"
	"errors"
	"hash/maphash"
	"io/fs"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// twins are the names in one place that a disk may take for one: that of a Mac does not
// tell upper and lower case apart, nor é as one character from é as two. Of a large
// directory they take little memory.
type twins map[uint64]int

var twinSeed = maphash.MakeSeed()

// add returns how many names are like this one, with it.
func (t twins) add(name string) int {
	key := twinKey(name)
	t[key]++
	return t[key]
}

func twinKey(name string) uint64 {
	return maphash.String(twinSeed, norm.NFC.String(strings.ToLower(norm.NFC.String(name))))
}

// spellings are ways to write a name, of which a disk that takes any names for one takes
// at least one for it.
func spellings(name string) []string {
	return []string{strings.ToUpper(name), strings.ToLower(name), norm.NFC.String(name), norm.NFD.String(name)}
}

// hold has a task wait until its twin is done: then it is seen whether the target tells
// their names apart.
func (w *walk) hold(t task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, t)
}

// release adds the tasks that wait, but for those whose name on the target is their twin's.
// It reports whether there were any.
func (w *walk) release(ctx context.Context) bool {
	w.mu.Lock()
	waiting := w.waiting
	w.waiting = nil
	w.mu.Unlock()
	var lists perDir[twins]
	forAll(waiting, func(_ int, t task) {
		if err := w.apart(ctx, t, &lists); err != nil {
			w.failed(ctx, t.from, t.to, err)
			return
		}
		w.add(t)
	})
	return len(waiting) > 0
}

// listed returns the names in a directory of the target.
func (w *walk) listed(ctx context.Context, dir string) (twins, error) {
	there := make(twins)
	err := w.To.List(ctx, dir, func(info Info) error { there.add(info.Name); return nil })
	return there, err
}

// meets refuses what has the place of something else on the target, that another tree has
// brought there under another name.
func (w *walk) meets(ctx context.Context, t task) error {
	w.run.mu.Lock()
	if w.spelled == nil {
		w.run.mu.Unlock()
		return nil
	}
	key := twinKey(t.to)
	first := w.spelled[key]
	if first == "" {
		w.spelled[key] = t.to
	}
	w.run.mu.Unlock()
	if first == "" || first == t.to {
		return nil
	}
	return w.apart(ctx, t, new(perDir[twins]))
}

// apart refuses a task whose name the target takes for its twin's: something has that
// name, the directory does not list two that are like it, and what it lists has yet another
// one.
func (w *walk) apart(ctx context.Context, t task, lists *perDir[twins]) error {
	if t.info.Mode&fs.ModeSymlink != 0 && w.Links == SkipLinks {
		return nil
	}
	if there, err := w.has(ctx, t.to); !there || err != nil {
		return err
	}
	dir, name := split(t.to)
	listed, err := lists.of(dir, func() (twins, error) { return w.listed(ctx, dir) })
	if err != nil || listed[twinKey(name)] > 1 {
		return err
	}
	for _, other := range spellings(name) {
		if other == name {
			continue
		}
		switch there, err := w.has(ctx, Join(dir, other)); {
		case err != nil:
			return err
		case there:
			return refuse(codeExists, "call one of them something else", "%s: a file whose name the disk there takes for the same has its place", Show(w.To.About().Name, t.to))
		}
	}
	return nil
}

// has reports whether something on the target has a name.
func (w *walk) has(ctx context.Context, path string) (bool, error) {
	_, err := w.To.Stat(ctx, path, false)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
