package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"gateway/transport"
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

// A Copy is what to copy from one machine to another.
type Copy struct {
	From, To Machine
	// Paths are what to copy.
	Paths []string
	// Glob expands *, ? and [] in Paths on the machine.
	Glob bool
	// Into is where to: a directory that is there, or else what the copy of a
	// single path is called.
	Into string
	// Several: Into is a directory, however many Paths there are. MakeInto: it and
	// the one above are made if they are not there.
	Several, MakeInto bool

	Recursive bool
	// Preserve keeps permissions and times. Without it a new file has the
	// permissions of its source less the umask, and a file that is replaced
	// passes its own on.
	Preserve bool
	// Mode, if not nil, is the permissions of every file.
	Mode  *fs.FileMode
	Links Links
	// Exclude are patterns of [Match]: with a slash in them for the path
	// below what was named, else for the name.
	Exclude []string
	// Checksum leaves alone what is the same already.
	Checksum bool
	// Resume goes on with what is there of a copy that was cut short.
	Resume bool
	// DryRun changes nothing.
	DryRun bool
	// Watch is told what happens; nil: nobody.
	Watch Watcher
}

// A Watcher is told what a copy does, concurrently.
type Watcher interface {
	// Found: so much more is to be done.
	Found(bytes int64)
	// Begin tells that a file is being copied, and Moved how it comes along; had
	// are bytes that were there.
	Begin(path string, size, had int64)
	Moved(path string, bytes int)
	// End tells about a file or symlink, once.
	End(e Event)
}

// An Event is what has become of one file.
type Event struct {
	Path, Target string
	Done         Deed
	Bytes, Size  int64
	Duration     time.Duration
	Err          error
}

// A Deed is what was done with a file.
type Deed string

// The deeds.
const (
	Copied    Deed = "copied"
	Linked    Deed = "linked"
	Unchanged Deed = "unchanged"
	Skipped   Deed = "skipped" // a symlink that is left out
	Failed    Deed = "failed"
	Would     Deed = "would_copy" // on a dry run
)

// A Problem is a file that could not be copied.
type Problem struct {
	Path string
	Err  error
}

// maxProblems bounds the problems that a report names.
const maxProblems = 100

// A Report says what a copy has done.
type Report struct {
	From, To About
	// Counts of files, made directories, symlinks, files that were the same
	// already, what was left out, and problems.
	Files, Dirs, Links, Unchanged, Skipped, Failed int64
	// Bytes are those that were moved; Resumed were there already.
	Bytes, Resumed int64
	// Kept are the parts that Resume can go on with.
	Kept int64
	// Unsure are the files, among those that Failed, that may have their names: the
	// link was lost in that moment.
	Unsure int64
	// Checked are the files whose copy was compared with what was sent.
	Checked int64
	// Problems are the first of them.
	Problems []Problem
	// Err is what kept the copy from beginning, or ended it.
	Err      error
	Duration time.Duration
}

// OK reports whether everything was copied.
func (r *Report) OK() bool { return r.Err == nil && r.Failed == 0 }

// Run copies. It returns when nothing of it is under way any more.
func (c *Copy) Run(ctx context.Context) *Report {
	begun := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{Copy: c, cancel: cancel, budget: semaphore.NewWeighted(maxBudget)}
	r.report.From, r.report.To = c.From.About(), c.To.About()
	err := r.all(ctx)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	report := r.report
	report.Files, report.Dirs, report.Links = r.n.files.Load(), r.n.dirs.Load(), r.n.links.Load()
	report.Bytes, report.Resumed = r.n.bytes.Load(), r.n.resumed.Load()
	report.Err, report.Duration = err, time.Since(begun)
	return &report
}

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
	report Report   // guarded by mu
	attrs  []dirEnd // guarded by mu
}

// dirEnd is what a directory gets when everything in it is done.
type dirEnd struct {
	path string
	attr Attr
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
	if h, ok := r.To.(interface{ Hashes(context.Context) bool }); ok && !r.DryRun {
		go h.Hashes(ctx) // so that it is ready when it is needed; ends with the context
	}
	w := newWalk(r)
	named := make(map[string]string) // the sources, by what their copies are called
	for _, source := range paths {
		info, err := r.From.Stat(ctx, source, true)
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
		if name := base(source); into && name != "" {
			t.to = Join(r.Into, name)
			if other, ok := named[name]; ok {
				if other != source { // else two patterns stand for it
					r.failed(ctx, source, t.to, refuse(codeExists, "copy them into different directories",
						"%s is the copy of %s: %s does not take its place", Show(r.To.About().Name, t.to), printable(other), printable(source)))
				}
				continue
			}
			named[name] = source
		}
		t.fresh = !exists && !into
		if err := r.inside(ctx, t); err != nil {
			return err
		}
		if info.Mode.IsRegular() && r.Watch != nil {
			r.Watch.Found(info.Size)
		}
		w.add(t)
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
		all = append(all, found...)
	}
	return all, nil
}

// into reports whether copies go into the directory Into, and whether something
// is there at all.
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
		return true, false, r.makeInto(ctx)
	case several || strings.HasSuffix(r.Into, "/"):
		return false, false, refuse(codeNotFound, "make it first: a directory that is not there is not made by the way", "there is no directory %s", name)
	}
	return false, false, nil
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

// inside refuses to copy a directory into itself, where it would find itself
// without end.
func (r *run) inside(ctx context.Context, t task) error {
	_, here := r.From.(*Local)
	_, too := r.To.(*Local)
	if !t.info.Mode.IsDir() || here != too || !here && r.From.About() != r.To.About() {
		return nil
	}
	from, to := leads(ctx, r.From, t.from), leads(ctx, r.To, t.to)
	if to == from || strings.HasPrefix(to, strings.TrimSuffix(from, "/")+"/") {
		return refuse(codeFailed, "", "%s cannot be copied into itself", Show(r.From.About().Name, t.from))
	}
	return nil
}

// leads returns where a path of a machine leads behind its symlinks, as far as
// that can be looked at.
func leads(ctx context.Context, m Machine, name string) string {
	if !path.IsAbs(name) {
		home, err := m.Home(ctx)
		if err != nil {
			return path.Clean(name)
		}
		name = home + "/" + name
	}
	real, _ := Resolve(ctx, m, name, true) // the rest of the path is as it was written
	return real.Path
}

// failed notes a problem. What concerns all that is left ends the copy.
func (r *run) failed(ctx context.Context, from, to string, err error) {
	if ctx.Err() != nil { // it is not this file's fault
		r.count(&r.report.Failed)
		return
	}
	var fatal *transport.Error
	if errors.Is(err, transport.ErrLost) || errors.Is(err, transport.ErrClosed) || errors.As(err, &fatal) && fatal.Code == codeNoSpace {
		r.cancel(err)
	}
	r.mu.Lock()
	r.report.Failed++
	if len(r.report.Problems) < maxProblems {
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

// finishDirs gives directories what they could not have while they were filled,
// the deepest first: one that nobody may enter must be the last on its way.
func (r *run) finishDirs(ctx context.Context) {
	byDepth := map[int][]dirEnd{}
	deepest := 0
	for _, d := range r.attrs {
		depth := strings.Count(d.path, "/")
		byDepth[depth] = append(byDepth[depth], d)
		deepest = max(deepest, depth)
	}
	for depth := deepest; depth >= 0; depth-- {
		var all sync.WaitGroup
		places := make(chan struct{}, 32)
		for _, d := range byDepth[depth] {
			places <- struct{}{}
			all.Go(func() {
				defer func() { <-places }()
				if err := r.To.Chattr(ctx, d.path, d.attr); err != nil {
					r.failed(ctx, d.path, d.path, err)
				}
			})
		}
		all.Wait()
	}
}
