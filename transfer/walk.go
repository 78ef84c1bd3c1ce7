package transfer

import (
	"context"
	"io/fs"
	"strings"
	"sync"

	"gateway/internal/phrase"
	"gateway/transport"
)

// maxDepth bounds a tree that a machine makes up as it is walked.
const maxDepth = 256

// A task is something to copy.
type task struct {
	from, to string
	rel      string // below what was named
	info     Info
	fresh    bool // nothing can be at to
	depth    int
	followed []string // where the symlinks are by which it was found, without symlinks
}

// A walk finds what is to be copied and has it copied, a tree's directories
// before what is in them.
type walk struct {
	*run
	workers, listers int

	mu      sync.Mutex
	changed sync.Cond
	dirs    []task // to be listed, the last one first: so few are waiting; guarded by mu
	files   []task // guarded by mu
	waiting []task // for their twins; guarded by mu
	open    int    // tasks that are waiting or under way; guarded by mu
}

// maxWaiting is how many files may wait until listing waits for them.
const maxWaiting = 4096

func newWalk(r *run) *walk {
	w := &walk{run: r, workers: 96, listers: 8}
	for _, about := range []About{r.From.About(), r.To.About()} {
		if about.Via == viaShell {
			w.workers, w.listers = 64, 2
		}
	}
	if r.From.About().Via == viaLocal && r.To.About().Via == viaLocal {
		w.workers = 8
	}
	w.changed.L = &w.mu
	return w
}

func (w *walk) add(t task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open++
	if t.info.Mode.IsDir() {
		w.dirs = append(w.dirs, t)
	} else {
		w.files = append(w.files, t)
	}
	w.changed.Broadcast()
}

func (w *walk) done() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open--
	if w.open == 0 {
		w.changed.Broadcast()
	}
}

// next takes a task of one kind, or none when all is done.
func (w *walk) next(ctx context.Context, from *[]task, last bool) (task, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(*from) == 0 && w.open > 0 && ctx.Err() == nil {
		w.changed.Wait()
	}
	list := *from
	if len(list) == 0 || ctx.Err() != nil {
		return task{}, false
	}
	var t task
	if last {
		t, *from = list[len(list)-1], list[:len(list)-1]
	} else {
		t, *from = list[0], list[1:]
		if len(w.files) == maxWaiting {
			w.changed.Broadcast()
		}
	}
	return t, true
}

// work returns when all that was added, and what was found in it, is done.
func (w *walk) work(ctx context.Context) {
	for more := true; more; more = ctx.Err() == nil && w.release(ctx) {
		w.round(ctx)
	}
}

func (w *walk) round(ctx context.Context) {
	defer context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.changed.Broadcast()
	})()
	var all sync.WaitGroup
	each := func(from *[]task, last bool, do func(context.Context, task)) {
		for t, ok := w.next(ctx, from, last); ok; t, ok = w.next(ctx, from, last) {
			do(ctx, t)
			w.done()
		}
	}
	for range w.listers {
		all.Go(func() { each(&w.dirs, true, w.dir) })
	}
	for range w.workers {
		all.Go(func() { each(&w.files, false, w.entry) })
	}
	all.Wait()
}

// dir makes a directory and finds what is in it.
func (w *walk) dir(ctx context.Context, t task) {
	if t.depth > maxDepth {
		w.failed(ctx, t.from, t.to, refuse(codeFailed, "", "%s: more than %d directories one in another", Show(w.From.About().Name, t.from), maxDepth))
		return
	}
	if err := w.meets(ctx, t); err != nil {
		w.failed(ctx, t.from, t.to, err)
		return
	}
	fresh, err := w.mkdir(ctx, t)
	if err != nil {
		w.failed(ctx, t.from, t.to, err)
		return
	}
	names := make(twins)
	err = w.From.List(ctx, t.from, func(info Info) error {
		rel := Join(t.rel, info.Name)
		if t.rel == "" {
			rel = info.Name
		}
		if w.excluded(rel, info.Name) {
			w.count(&w.report.Skipped, 1)
			return nil
		}
		sub := task{
			from: Join(t.from, info.Name), to: Join(t.to, info.Name), rel: rel, info: info,
			fresh: fresh, depth: t.depth + 1, followed: t.followed,
		}
		if info.Mode.IsRegular() && w.Watch != nil {
			w.Watch.Found(info.Size)
		}
		if names.add(info.Name) > 1 {
			w.hold(sub)
			return nil
		}
		w.add(sub)
		return w.drained(ctx)
	})
	if err != nil && ctx.Err() == nil {
		w.failed(ctx, t.from, t.to, err)
	}
}

// drained waits while too many files wait.
func (w *walk) drained(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.files) > maxWaiting && ctx.Err() == nil {
		w.changed.Wait()
	}
	return transport.Cause(ctx)
}

// excluded reports whether a pattern leaves an entry out.
func (r *run) excluded(rel, name string) bool {
	for _, pattern := range r.Exclude {
		subject := name
		if strings.Contains(strings.TrimSuffix(pattern, "/"), "/") {
			subject = rel
		}
		if ok, _ := phrase.Glob(strings.Trim(pattern, "/"), subject); ok { // checked when it was parsed
			return true
		}
	}
	return false
}

// entry copies what is no directory.
func (w *walk) entry(ctx context.Context, t task) {
	if t.info.Mode&fs.ModeSymlink != 0 {
		switch w.Links {
		case SkipLinks:
			w.count(&w.report.Skipped, 1)
			w.event(Event{Path: t.from, Target: t.to, Done: Skipped})
			return
		case KeepLinks:
			w.link(ctx, t)
			return
		}
		if !w.follow(ctx, &t) {
			return
		}
	}
	if !t.info.Mode.IsRegular() {
		hint := "leave it out with --exclude"
		if t.rel == "" { // it was named
			hint = ""
		}
		w.failed(ctx, t.from, t.to, refuse(codeSpecial, hint, "%s is no regular file (%s): it is not copied", Show(w.From.About().Name, t.from), kindOf(t.info.Mode)))
		return
	}
	w.file(ctx, t)
}

// kindOf says in a word what a special file is.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return mode.Type().String()
}
