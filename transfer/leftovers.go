package transfer

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

// partsIn returns the parts that earlier copies have left in a directory. In one that can't
// be listed, or is not there, there is nothing to go on with.
func partsIn(ctx context.Context, m Tree, dir string) (parts []Info, err error) {
	err = m.List(ctx, dir, func(info Info) error {
		if info.Mode.IsRegular() && strings.HasSuffix(info.Name, partSuffix) {
			parts = append(parts, info)
		}
		return nil
	})
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return parts, err
}

// oldPart finds what earlier copies have left, and of it the largest part of which
// something is right, or else the largest one.
func (f *fileCopy) oldPart(ctx context.Context) (path string, at int64, err error) {
	dir, name := split(f.to)
	left, err := f.left.of(dir, func() ([]Info, error) { return partsIn(ctx, f.To, dir) })
	if err != nil {
		return "", 0, err
	}
	parts := slices.DeleteFunc(slices.Clone(left), func(info Info) bool { return !isPart(info.Name, name) })
	slices.SortFunc(parts, func(a, b Info) int { return cmp.Compare(b.Size, a.Size) })
	for _, info := range parts {
		part := Join(dir, info.Name)
		if at == 0 {
			if whole := min(info.Size, f.info.Size) / step * step; whole > 0 {
				if at, err = f.rightUntil(ctx, part, whole); err != nil {
					return "", 0, err
				}
			}
			if path == "" || at > 0 {
				path, part = part, path
			}
		}
		if part != "" {
			f.others = append(f.others, part)
		}
	}
	return path, at, nil
}

// sweep removes the other parts, but for those of somebody else: nobody goes on with them
// any more. One that stays there harms nothing.
func (f *fileCopy) sweep(ctx context.Context) {
	for _, old := range f.others {
		if part, _ := f.To.Create(ctx, Spec{Path: f.to, Perm: onlyOwner, Old: old}); part != nil {
			part.Abandon(false)
		}
	}
}

// rightUntil returns up to where a part is a beginning of the file, in whole steps.
func (f *fileCopy) rightUntil(ctx context.Context, part string, end int64) (at int64, err error) {
	passes := func(to int64) bool {
		same := false
		if err == nil {
			same, err = f.sameRange(ctx, part, at, to)
		}
		if same {
			at = to
		}
		return same
	}
	// What comes here to be hashed comes once: a tool there is told of all of it at once.
	here := comesHere(ctx, f.From) || comesHere(ctx, f.To)
	switch {
	case !here && passes(end):
	case !here && end > gap && passes(end-gap): // what was under way when it was cut short may have left a gap
	default:
		for at < end && passes(min(at+segment, end)) {
		}
		end = min(end, at+segment)
	}
	for end-at > step && err == nil {
		if middle := at + (end-at)/2/step*step; !passes(middle) {
			end = middle
		}
	}
	return at, err
}

// comesHere reports whether the bytes of a machine's files come here to be hashed.
func comesHere(ctx context.Context, m Machine) bool {
	h, ok := m.(selfHashing)
	return ok && !h.Hashes(ctx)
}

// gap is how much can have been under way of a part, in whole steps.
const gap = (underway*block/step + 1) * step

func (f *fileCopy) sameRange(ctx context.Context, part string, from, to int64) (bool, error) {
	var theirs Sum
	var failed error
	var other sync.WaitGroup
	other.Go(func() { theirs, failed = f.To.Sum(ctx, part, from, to) })
	ours, err := f.From.Sum(ctx, f.task.from, from, to)
	other.Wait()
	if errors.Is(failed, fs.ErrPermission) { // what is ours can be read
		failed = foreignPart(f.To.About().Name, part)
	}
	return ours == theirs, errors.Join(err, failed)
}
