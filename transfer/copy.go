package transfer

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sync/semaphore"

	"gateway/transport"
)

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
	// MakeInto: Into is a directory, however many Paths there are. It and the one
	// above are made if they are not there.
	MakeInto bool

	Recursive bool
	// Preserve keeps permissions and times. Without it a new file has the
	// permissions of its source less the umask, and a file that is replaced
	// passes its own on.
	Preserve bool
	// Mode, if not nil, is the permissions of every file.
	Mode  *fs.FileMode
	Links Links
	// Exclude are patterns as of [path.Match], where [!a] is [^a] and [[:digit:]] is
	// none: with a slash in them for the path below what was named, else for the name.
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

// maxProblems bounds the problems that a report names, and once more the files
// among them that may have been written. No more than that are under way.
const maxProblems = 100

// A Report says what a copy has done.
type Report struct {
	From, To About
	// Counts of files, made directories, symlinks, files and symlinks that were the
	// same already, what was left out, and problems.
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
	// Problems are the first of those that Failed, and all that are Unsure.
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
	caller := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{Copy: c, cancel: cancel, budget: semaphore.NewWeighted(maxBudget), attrs: make(map[string]Attr)}
	r.report.From, r.report.To = c.From.About(), c.To.About()
	err := r.all(ctx)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if caller.Err() != nil && errors.Is(err, context.Cause(caller)) { // and not what ended the copy before
		err = transport.Cause(caller)
	}
	report := r.report
	report.Err, report.Duration = err, time.Since(begun)
	return &report
}
