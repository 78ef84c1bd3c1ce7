package transfer

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

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

	n      struct{ files, dirs, links, bytes, resumed atomic.Int64 }
	settle atomic.Bool // small files were copied

	mu     sync.Mutex
	report Report            // guarded by mu
	attrs  map[string]Attr   // what a directory gets when everything in it is done; guarded by mu
	left   leftovers         // of earlier copies
	taken  map[string]string // the sources of what was copied, by its path, where another tree may have the same; nil: none can; guarded by mu
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
	if h, ok := r.To.(selfHashing); ok && !r.DryRun {
		early, stop := context.WithCancel(ctx)
		var asking sync.WaitGroup
		asking.Go(func() { h.Hashes(early) }) // so that it is ready when it is needed
		defer asking.Wait()
		defer stop()
	}
	w := newWalk(r)
	// What is in several directories may meet in one: there they are copied one
	// after the other, so that the first one is the first.
	if into && len(paths) > 1 && slices.ContainsFunc(paths, func(source string) bool { return base(source) == "" }) {
		r.taken = make(map[string]string)
	}
	named := make(map[string]string) // the sources, by what their copies are called
	names := make(twins)
	paths = phrase.Unique(paths) // two patterns may stand for one file
	for i, found := range lookAt(ctx, r.From, paths, true) {
		source, info, err := paths[i], found.info, found.err
		if err != nil {
			if len(paths) == 1 {
				return err
			}
			r.failed(ctx, source, "", err)
			continue
		}
		if info.Mode.IsDir() && !r.Recursive {
			err := refuse(codeIsDirectory, "-r copies directories", "%s is a directory", Show(r.From.About().Name, source))
			if len(paths) == 1 {
				return err
			}
			r.failed(ctx, source, "", err)
			continue
		}
		t := task{from: source, to: r.Into, info: info}
		twin := false
		if name := base(source); into && name != "" {
			t.to = Join(r.Into, name)
			if other, ok := named[name]; ok {
				r.failed(ctx, source, t.to, r.isTaken(t, other))
				continue
			}
			named[name] = source
			twin = names.add(name) > 1
		}
		t.fresh = !exists && !into
		if err := r.inside(ctx, t); err != nil {
			if len(paths) == 1 || info.Mode.IsDir() {
				return err
			}
			r.failed(ctx, source, t.to, err)
			continue
		}
		if into && !exists { // only now: for sources that are not there it would stay, and be empty
			if err := r.makeInto(ctx); err != nil {
				return err
			}
			exists = true
		}
		if info.Mode.IsRegular() && r.Watch != nil {
			r.Watch.Found(info.Size)
		}
		if twin {
			w.hold(t)
		} else {
			w.add(t)
		}
		if r.taken != nil {
			w.work(ctx)
		}
	}
	w.work(ctx)
	if ctx.Err() == nil {
		r.finishDirs(ctx)
	}
	if s, ok := r.To.(interface {
		Settle(context.Context, string) error
	}); ok && r.settle.Load() && ctx.Err() == nil {
		dir := r.Into
		if !into && !exists {
			dir, _ = split(strings.TrimRight(r.Into, "/"))
		}
		if err := s.Settle(ctx, dir); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// take notes what the source of a file or symlink is, and refuses another one
// that would be called the same.
func (r *run) take(t task) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken == nil {
		return nil
	}
	if other, ok := r.taken[t.to]; ok {
		return r.isTaken(t, other)
	}
	r.taken[t.to] = t.from
	return nil
}

func (r *run) isTaken(t task, other string) error {
	return refuse(codeExists, "copy them into different directories",
		"%s is the copy of %s: %s does not take its place", Show(r.To.About().Name, t.to), printable(other), printable(t.from))
}

// base returns what a copy of path is called: nothing for a path that has no
// name of its own.
func base(source string) string {
	_, name := split(strings.TrimRight(source, "/"))
	if name == "." || name == ".." {
		return ""
	}
	return name
}

// sources returns the paths, with patterns expanded.
func (r *run) sources(ctx context.Context) ([]string, error) {
	var all []string
	for _, p := range r.Paths {
		if !r.Glob || !strings.ContainsAny(p, "*?[") {
			all = append(all, p)
			continue
		}
		found, err := expand(ctx, r.From, p)
		if err != nil {
			return nil, err
		}
		for _, source := range found {
			if name := base(source); r.excluded(name, name) {
				r.count(&r.report.Skipped)
				continue
			}
			all = append(all, source)
		}
	}
	return all, nil
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
	several := r.Several || paths > 1
	switch {
	case err == nil && info.Mode.IsDir():
		return true, true, nil
	case err == nil && (several || strings.HasSuffix(r.Into, "/")):
		return false, true, refuse(codeNotDirectory, "", "%s is no directory", name)
	case err == nil:
		return false, true, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, false, err
	case r.MakeInto:
		return true, false, nil
	case several || strings.HasSuffix(r.Into, "/"):
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
		r.count(&r.report.Failed)
		return
	}
	var fatal *transport.Error
	if errors.Is(err, errGone) || errors.Is(err, transport.ErrLost) || errors.Is(err, transport.ErrClosed) || errors.As(err, &fatal) && fatal.Code == codeNoSpace {
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
func (r *run) count(n *int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*n++
}
