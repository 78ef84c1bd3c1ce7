package transfer

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Links says what becomes of symlinks that are found in a directory. Those that
// are named as a source are always followed.
type Links int

const (
	KeepLinks   Links = iota // a symlink becomes a symlink, wherever it points
	FollowLinks              // what it points to is copied
	SkipLinks                // it is left out
)

// LinkWords are the words for Links, by their values.
var LinkWords = []string{KeepLinks: "keep", FollowLinks: "follow", SkipLinks: "skip"}

func (l Links) String() string { return LinkWords[l] }

// ParseLinks returns what a word stands for.
func ParseLinks(word string) (Links, error) {
	i := slices.Index(LinkWords, word)
	if i < 0 {
		return KeepLinks, fmt.Errorf("%q is none of keep, follow and skip", word)
	}
	return Links(i), nil
}

// follow replaces a symlink by what is behind it. It returns false if there is
// nothing left to do.
func (w *walk) follow(ctx context.Context, t *task) bool {
	info, err := w.From.Stat(ctx, t.from, true)
	if err != nil {
		w.failed(ctx, t.from, t.to, err)
		return false
	}
	info.Name = t.info.Name
	t.info = info
	if !info.Mode.IsDir() {
		if info.Mode.IsRegular() && w.Watch != nil {
			w.Watch.Found(info.Size)
		}
		return true
	}
	err = w.goesOn(ctx, t)
	if err == nil {
		err = w.inside(ctx, *t)
	}
	if err != nil {
		w.failed(ctx, t.from, t.to, err)
		return false
	}
	w.add(*t)
	return false
}

// maxFollowed is how many symlinks to directories are followed one inside the other.
const maxFollowed = 8

// goesOn refuses a symlink to a directory that is on the way to it: all of that would be
// found again behind it, without end.
func (w *walk) goesOn(ctx context.Context, t *task) error {
	const hint = "--links keep copies it as it is"
	if len(t.followed) == maxFollowed {
		return refuse(codeFailed, hint, "%s: more than %d symlinks to directories, one inside another", Show(w.From.About().Name, t.from), maxFollowed)
	}
	dir, _ := split(t.from)
	t.followed = append(slices.Clip(t.followed), leads(ctx, w.From, dir))
	to := leads(ctx, w.From, t.from)
	for _, from := range t.followed {
		if within(from, to) {
			return refuse(codeFailed, hint, "%s leads to %s, which it is in: it is not followed", Show(w.From.About().Name, t.from), printable(to))
		}
	}
	return nil
}

// link copies a symlink as it is.
func (w *walk) link(ctx context.Context, t task) {
	old, have, err := w.there(ctx, t, "symlink")
	var target string
	if err == nil {
		target, err = w.From.Readlink(ctx, t.from)
	}
	if err == nil && strings.ContainsRune(target, 0) { // a shell would leave it out
		err = refuse(codeUnsafe, hintLies, "%s is a symlink to %q", Show(w.From.About().Name, t.from), target)
	}
	switch {
	case err != nil:
	case w.Checksum && have && w.pointsTo(ctx, t.to, old, target):
		w.count(&w.report.Unchanged, 1)
		w.event(Event{Path: t.from, Target: t.to, Done: Unchanged})
		return
	case w.DryRun:
		w.count(&w.report.Links, 1)
		w.event(Event{Path: t.from, Target: t.to, Done: Would})
		return
	default:
		if err = w.To.Symlink(ctx, target, t.to); unsure(err) {
			err = mayBeDone(w.To, t.to, err)
			w.count(&w.report.Unsure, 1)
		}
	}
	if err != nil {
		w.failed(ctx, t.from, t.to, err)
		return
	}
	w.count(&w.report.Links, 1)
	w.event(Event{Path: t.from, Target: t.to, Done: Linked})
}

// pointsTo reports whether what is there is a symlink to target. One that can't be
// read can be replaced all the same.
func (w *walk) pointsTo(ctx context.Context, path string, there Info, target string) bool {
	if there.Mode&fs.ModeSymlink == 0 {
		return false
	}
	points, err := w.To.Readlink(ctx, path)
	return err == nil && points == target
}
