package transfer

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sync/semaphore"

	"gateway/gateway"
	"gateway/internal/phrase"
	"gateway/transport"
)

// maxBudget bounds the memory for what is under way of larger files.
const maxBudget = 16 << 20

// run is one call of Run.
type run struct {
	*Copy
	cancel context.CancelCauseFunc
	budget *semaphore.Weighted

	settle atomic.Bool // small files were copied

	mu      sync.Mutex
	report  Report            // guarded by mu
	attrs   map[string]Attr   // what a directory gets when everything in it is done; guarded by mu
	left    perDir[[]Info]    // parts of earlier copies
	taken   map[string]string // the sources of what was copied, by its path, where another tree may have the same; nil: none can; guarded by mu
	spelled map[uint64]string // how the first of what a disk may take for one is written, by [twinKey], where taken is not nil; guarded by mu
}

func (r *run) all(ctx context.Context) error {
	paths, err := r.sources(ctx)
	if err != nil {
		return err
	}
	into, exists, err := r.into(ctx, len(paths))
	if err != nil {
		return err
	}
	defer r.askForHashes(ctx)()
	// What is in several directories may meet in one: there they are copied one
	// after the other, so that the first one is the first.
	if into && len(paths) > 1 && slices.ContainsFunc(paths, func(source string) bool { return base(source) == "" }) {
		r.taken, r.spelled = make(map[string]string), make(map[uint64]string)
	}
	n := &named{walk: newWalk(r), into: into, exists: exists, by: make(map[string]string), names: make(twins)}
	if err := n.each(ctx, phrase.Unique(paths)); err != nil { // two patterns may stand for one file
		return err
	}
	n.work(ctx)
	if ctx.Err() == nil {
		r.finishDirs(ctx)
	}
	if r.settle.Load() && ctx.Err() == nil {
		return r.settled(ctx, into || exists)
	}
	return nil
}

// askForHashes asks the target early whether it hashes, so that it is ready when
// it is needed. The returned function ends that.
func (r *run) askForHashes(ctx context.Context) (end func()) {
	h, ok := r.To.(selfHashing)
	if !ok || r.DryRun {
		return func() {}
	}
	ctx, stop := context.WithCancel(ctx)
	var asking sync.WaitGroup
	asking.Go(func() { h.Hashes(ctx) })
	return func() {
		stop()
		asking.Wait()
	}
}

// settled has the target store what it has of small files. Where nothing was at
// Into, they are beside it.
func (r *run) settled(ctx context.Context, there bool) error {
	dir := r.Into
	if !there {
		dir, _ = split(strings.TrimRight(r.Into, "/"))
	}
	return r.To.Settle(ctx, dir)
}

// atOnce is how many requests go together where there are many to make.
const atOnce = 32

// forAll does something for all items, for some of them at the same time.
func forAll[T any](items []T, do func(i int, item T)) {
	places := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, item := range items {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			do(i, item)
		})
	}
	all.Wait()
}

// into reports whether copies go into the directory Into, and whether something
// is there at all: else it is still to be made.
func (r *run) into(ctx context.Context, paths int) (into, exists bool, err error) {
	plain := strings.TrimRight(r.Into, "/") // with the slash, a file would be as good as nothing
	if plain == "" {
		plain = r.Into
	}
	info, err := r.To.Stat(ctx, plain, true)
	name := Show(r.To.About().Name, r.Into)
	wanted := r.MakeInto || paths > 1 || strings.HasSuffix(r.Into, "/")
	switch {
	case err == nil && info.Mode.IsDir():
		return true, true, nil
	case err == nil && wanted:
		return false, true, refuse(codeNotDirectory, "", "%s is no directory", name)
	case err == nil:
		return false, true, nil
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ELOOP): // which is replaced as any symlink; sftp tells no difference
		return false, false, err
	case r.MakeInto:
		return true, false, nil
	case wanted:
		return false, false, noDirectory(name)
	case r.DryRun: // else it turns out when the file is made
		return false, false, r.above(ctx, plain)
	}
	return false, false, nil
}

// above refuses what is to be made in a directory that is not there.
func (r *run) above(ctx context.Context, target string) error {
	dir, _ := split(target)
	name := Show(r.To.About().Name, dir)
	info, err := r.To.Stat(ctx, dir, true)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return noDirectory(name)
	case err == nil && !info.Mode.IsDir():
		return refuse(codeNotDirectory, "", "%s is no directory", name)
	}
	return err
}

func noDirectory(name string) error {
	return refuse(codeNotFound, "make it first: a directory that is not there is not made by the way", "there is no directory %s", name)
}

func (r *run) makeInto(ctx context.Context) error {
	if r.DryRun {
		return nil
	}
	above, _ := split(strings.TrimRight(r.Into, "/"))
	for _, dir := range []string{above, r.Into} {
		if err := r.To.Mkdir(ctx, dir, 0o777); err != nil {
			if info, failed := r.To.Stat(ctx, dir, true); failed != nil || !info.Mode.IsDir() {
				return err
			}
		}
	}
	return nil
}

// failed notes a problem. What concerns all that is left ends the copy; of what
// was under way then, a file that may have been written is one to name.
func (r *run) failed(ctx context.Context, from, to string, err error) {
	if ctx.Err() != nil && !MayBeDone(err) { // it is not this file's fault
		r.count(&r.report.Failed, 1)
		return
	}
	if errors.Is(err, errGone) || errors.Is(err, transport.ErrLost) || errors.Is(err, transport.ErrClosed) || errors.Is(err, errDouble) || gateway.Code(err) == codeNoSpace {
		r.cancel(err)
	}
	r.mu.Lock()
	r.report.Failed++
	if len(r.report.Problems) < maxProblems || MayBeDone(err) && r.report.Unsure <= maxProblems {
		r.report.Problems = append(r.report.Problems, Problem{from, err})
	}
	r.mu.Unlock()
	r.event(Event{Path: from, Target: to, Done: Failed, Err: err})
}

func (r *run) event(e Event) {
	if r.Watch != nil {
		r.Watch.End(e)
	}
}

// count adds to a number of the report.
func (r *run) count(n *int64, more int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*n += more
}
