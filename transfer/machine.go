// Package transfer copies files between machines: exactly, at one stroke, and
// so that a copy that was cut short can go on.
//
// A file is written under another name in the directory where it belongs. What
// the machine has stored is compared with what was sent, and only then it gets
// its name. So a copy that fails, or whose link is cut, leaves what was there.
package transfer

import (
	"context"
	"crypto/sha256"
	"io"
	"io/fs"
	"time"
)

// A Sum is the sha256 of a file, or of a part of one.
type Sum = [sha256.Size]byte

// Info is what a machine says about a file. Names and paths are bytes; a slash
// separates the elements of a path.
type Info struct {
	Name     string
	Mode     fs.FileMode // type and permissions
	Size     int64
	Accessed time.Time
	Modified time.Time
}

// A Tree is the files of one machine. Its methods may be called concurrently,
// and so may those of [Source] and [Target]. Errors are a *[transport.Error] with
// a code of the family file, or say what became of the link or the context. A
// relative path begins in the home directory.
type Tree interface {
	// Stat returns what is at path; follow: behind the symlinks there.
	Stat(ctx context.Context, path string, follow bool) (Info, error)
	// List calls each with what is in a directory, not following symlinks. No
	// name is empty, "." or "..", has a slash in it or comes twice.
	List(ctx context.Context, dir string, each func(Info) error) error
	// Readlink returns where a symlink points.
	Readlink(ctx context.Context, path string) (string, error)
	// Sum returns the hash of the bytes of a file from an offset, which is a multiple
	// of a MiB, up to another one, or to the end if that is negative.
	// A file that is shorter gives another hash than it should, or an error.
	Sum(ctx context.Context, path string, from, to int64) (Sum, error)
}

// A Source is a machine to copy from.
type Source interface {
	Tree
	// Open begins to read a file, that info is about, at an offset.
	Open(ctx context.Context, path string, info Info, at int64) (Content, error)
}

// A Content is a file that is being read, from its beginning to its end, by one
// goroutine.
type Content interface {
	io.ReadCloser
	// Opened returns what the file was when it was opened. It is called before the
	// first Read, which then goes on up to this size.
	Opened(ctx context.Context) (Info, error)
	// Changed reports whether the file is no longer what it was when it was
	// opened. It is called behind the last Read.
	Changed(ctx context.Context) (bool, error)
}

// differs reports whether a file has been written to between two looks at it.
func differs(a, b Info) bool { return a.Size != b.Size || !a.Modified.Equal(b.Modified) }

// A Target is a machine to copy to.
type Target interface {
	Tree
	// Mkdir makes a directory.
	Mkdir(ctx context.Context, path string, perm fs.FileMode) error
	// Symlink makes a symlink, in place of a file or symlink that is there.
	Symlink(ctx context.Context, target, path string) error
	// Chattr changes the permissions and times of a file that has its name.
	Chattr(ctx context.Context, path string, attr Attr) error
	// Create begins a part.
	Create(ctx context.Context, spec Spec) (Part, error)
	// Settle has what was copied into a directory written to the disk.
	Settle(ctx context.Context, dir string) error
}

// Attr is what a file is to be. The zero value leaves it as it is.
type Attr struct {
	// Perm is exact: no umask applies. nil leaves the permissions.
	Perm *fs.FileMode
	Times
}

// Times are those of a file. They are set if Modified is not zero.
type Times struct{ Accessed, Modified time.Time }

func (a Attr) empty() bool { return a.Perm == nil && a.Modified.IsZero() }

// A Spec says what becomes of a [Part].
type Spec struct {
	// Path is what the file is called in the end.
	Path string
	// Perm is what the file has in the end, less the machine's umask. Final, if not nil,
	// is exactly what it has.
	Perm  fs.FileMode
	Final *fs.FileMode
	// Size is how long it will be, as far as is known.
	Size int64
	// Sync: also a small file is on the disk before it gets its name.
	Sync bool
	// Old is a part that is to go on, behind its first At bytes; empty: none.
	Old string
	At  int64
}

// A Part is a file that has not got its name. One goroutine writes it. After
// the first error there is nothing to do but [Part.Abandon].
type Part interface {
	// Write may return before the machine has the bytes, and its error may be an
	// earlier call's.
	io.Writer
	// Path is where it is meanwhile.
	Path() string
	// Finish writes what was not written, has the machine store it, and closes
	// it. Until it has its name, its owner may read it, whatever the Spec says.
	// checked: what is stored needs no comparison with what was written.
	Finish(ctx context.Context, times Times) (checked bool, err error)
	// Commit gives the file its name, in place of one that is there. The end of
	// the context ends it only a while later, with context.DeadlineExceeded.
	Commit(ctx context.Context) error
	// Abandon closes it and removes it, unless it is to be kept. It works also
	// when the context of the others has ended. left: it may be there still.
	Abandon(keep bool) (left bool)
}

// A Machine is one to copy from and to.
type Machine interface {
	Source
	Target
	io.Closer
	// Home returns the directory in which a relative path begins.
	Home(ctx context.Context) (string, error)
	// About tells about the machine and the way its files are reached.
	About() About
}

// A selfHashing machine may hash its files by itself.
type selfHashing interface {
	// Hashes reports whether it does. It may have to be asked, which takes a while.
	Hashes(ctx context.Context) bool
}

// About says how the files of a machine are reached.
type About struct {
	// Name is the host's; empty for this machine where no host was named.
	Name string
	// Via is local, sftp or shell.
	Via string
}

// The ways to the files of a machine.
const (
	viaLocal = "local"
	viaSFTP  = "sftp"
	viaShell = "shell"
)

// Small is up to where a file goes in one piece.
const Small = 32 << 10

// settling is what fails where a machine has not stored what it was given.
const settling = "write to the disk what is in"

// block is how much the engine moves at once.
const block = 128 << 10
