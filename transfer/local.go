package transfer

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Local is the files of this machine. A relative path begins in the working
// directory, or in Dir if it is set.
type Local struct{ Name, Dir string }

// About implements [Machine].
func (l *Local) About() About { return About{Name: l.Name, Via: viaLocal} }

// Close implements [Machine].
func (l *Local) Close() error { return nil }

func (l *Local) at(path string) string {
	if l.Dir != "" && !filepath.IsAbs(path) {
		return l.Dir + "/" + path
	}
	if path == "" {
		return "."
	}
	return path
}

// absolute returns where a path is, whatever directory it begins in.
func (l *Local) absolute(path string) string {
	if abs, err := filepath.Abs(l.at(path)); err == nil {
		return abs
	}
	return l.at(path)
}

func (l *Local) problem(doing, path string, err error) error {
	return problem(l.Name, doing, path, err)
}

// Stat implements [Tree].
func (l *Local) Stat(_ context.Context, path string, follow bool) (Info, error) {
	stat := os.Lstat
	if follow {
		stat = os.Stat
	}
	info, err := stat(l.at(path))
	if err != nil {
		return Info{}, l.problem("look at", path, err)
	}
	return infoOf(info), nil
}

func infoOf(info fs.FileInfo) Info {
	return Info{Name: info.Name(), Mode: info.Mode(), Size: info.Size(), Accessed: accessed(info), Modified: info.ModTime()}
}

// List implements [Tree].
func (l *Local) List(ctx context.Context, dir string, each func(Info) error) error {
	f, err := os.Open(l.at(dir))
	if err != nil {
		return l.problem("list", dir, err)
	}
	defer f.Close()
	for ctx.Err() == nil {
		entries, err := f.ReadDir(256)
		for _, entry := range entries {
			info, err := entry.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // it has gone meanwhile
			}
			if err != nil {
				return l.problem("look at", Join(dir, entry.Name()), err)
			}
			if err := each(infoOf(info)); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return l.problem("list", dir, err)
		}
	}
	return context.Cause(ctx)
}

// Readlink implements [Tree].
func (l *Local) Readlink(_ context.Context, path string) (string, error) {
	target, err := os.Readlink(l.at(path))
	return target, l.problem("read the symlink", path, err)
}

// Sum implements [Tree].
func (l *Local) Sum(ctx context.Context, path string, from, to int64) (Sum, error) {
	f, err := os.Open(l.at(path))
	if err != nil {
		return Sum{}, l.problem("read", path, err)
	}
	defer f.Close()
	hash := sha256.New()
	if to < 0 {
		to = 1<<63 - 1
	}
	if _, err := io.Copy(hash, &until{ctx, io.NewSectionReader(f, from, to-from)}); err != nil {
		return Sum{}, l.problem("read", path, err)
	}
	return Sum(hash.Sum(nil)), nil
}

// until is a reader that ends with a context.
type until struct {
	ctx context.Context
	r   io.Reader
}

func (u *until) Read(b []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.r.Read(b)
}

// Open implements [Source].
func (l *Local) Open(_ context.Context, path string, _ Info, at int64) (Content, error) {
	// What has become a FIFO since must not block.
	f, err := os.OpenFile(l.at(path), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, l.problem("read", path, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = refuse(codeSpecial, "", "%s is no regular file", printable(path))
	}
	if err == nil && at > 0 {
		_, err = f.Seek(at, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, l.problem("read", path, err)
	}
	return &localContent{File: f, local: l, path: path, info: infoOf(info)}, nil
}

type localContent struct {
	*os.File
	local *Local
	path  string
	info  Info
}

func (c *localContent) Read(b []byte) (int, error) {
	n, err := c.File.Read(b)
	if err != nil && err != io.EOF {
		err = c.local.problem("read", c.path, err)
	}
	return n, err
}

// Opened implements [Content].
func (c *localContent) Opened(context.Context) (Info, error) { return c.info, nil }

// Changed implements [Content].
func (c *localContent) Changed(context.Context) (bool, error) {
	info, err := c.Stat()
	if err != nil {
		return false, c.local.problem("look at", c.path, err)
	}
	return differs(infoOf(info), c.info), nil
}

// Mkdir implements [Target].
func (l *Local) Mkdir(_ context.Context, path string, perm fs.FileMode) error {
	return l.problem("make the directory", path, os.Mkdir(l.at(path), perm))
}

// Symlink implements [Target].
func (l *Local) Symlink(_ context.Context, target, path string) error {
	part := partPath(l.at(path))
	err := os.Symlink(target, part)
	if err == nil {
		if err = os.Rename(part, l.at(path)); err != nil {
			os.Remove(part)
		}
	}
	return l.problem("make the symlink", path, unlink(err))
}

// unlink is the cause of an error about two paths, one of which is nobody's
// business.
func unlink(err error) error {
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}

// Chattr implements [Target].
func (l *Local) Chattr(_ context.Context, path string, attr Attr) error {
	if attr.Perm != nil {
		if err := os.Chmod(l.at(path), *attr.Perm); err != nil {
			return l.problem("change the mode of", path, err)
		}
	}
	if !attr.Modified.IsZero() {
		if err := os.Chtimes(l.at(path), attr.Accessed, attr.Modified); err != nil {
			return l.problem("set the times of", path, err)
		}
	}
	return nil
}

// Create implements [Target].
func (l *Local) Create(_ context.Context, spec Spec) (Part, error) {
	part := partPath(l.at(spec.Path))
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, spec.Perm.Perm()|0o600)
	if err != nil {
		return nil, l.problem("write", spec.Path, err)
	}
	p := &localPart{local: l, file: f, path: part, spec: spec}
	narrow := 0o600 &^ spec.Perm
	if narrow != 0 || spec.Old != "" { // the umask has spoken, and we took more
		if info, err := f.Stat(); err == nil {
			p.perm = new(info.Mode().Perm() &^ narrow)
		}
	}
	if spec.Old != "" {
		if err := p.takeOver(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// takeOver puts the old part in the place of the new one: under a name of one's
// own it is nobody else's to go on with.
func (p *localPart) takeOver() error {
	p.file.Close()
	if err := os.Rename(p.local.at(p.spec.Old), p.path); err != nil {
		os.Remove(p.path)
		return p.local.problem("take over", p.spec.Old, unlink(err))
	}
	f, err := os.OpenFile(p.path, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err == nil {
		p.file = f
		if err = f.Chmod(onlyOwner); err == nil {
			err = f.Truncate(p.spec.At)
		}
		if err == nil {
			_, err = f.Seek(p.spec.At, io.SeekStart)
		}
		if err != nil {
			f.Close()
		}
	}
	return p.local.problem("write", p.spec.Path, err)
}

type localPart struct {
	local *Local
	file  *os.File
	path  string
	spec  Spec
	perm  *fs.FileMode
	holes bool // the last bytes may have been left out
}

// Path implements [Part].
func (p *localPart) Path() string { return p.path }

// Write implements [Part]. Blocks of zeros become holes.
func (p *localPart) Write(b []byte) (int, error) {
	var err error
	if p.holes = hollow(b); p.holes {
		_, err = p.file.Seek(int64(len(b)), io.SeekCurrent)
	} else {
		_, err = p.file.Write(b)
	}
	if err != nil {
		return 0, p.local.problem("write", p.spec.Path, err)
	}
	return len(b), nil
}

// zeros is what a hole reads as.
var zeros = make([]byte, block)

// hollow reports whether a block is better left out.
func hollow(b []byte) bool { return len(b) == block && bytes.Equal(b, zeros) }

// Finish implements [Part]. What this machine has taken needs no second look.
func (p *localPart) Finish(_ context.Context, attr Attr) (bool, error) {
	var err error
	if p.holes {
		var end int64
		if end, err = p.file.Seek(0, io.SeekCurrent); err == nil {
			err = p.file.Truncate(end)
		}
	}
	if attr.Perm == nil {
		attr.Perm = p.perm
	}
	if err == nil && attr.Perm != nil {
		err = p.file.Chmod(*attr.Perm)
	}
	if err == nil && !attr.Modified.IsZero() {
		err = os.Chtimes(p.path, attr.Accessed, attr.Modified)
	}
	if err == nil && (p.spec.Size > Small || p.spec.Sync || !settles) {
		err = p.file.Sync()
	}
	if closed := p.file.Close(); err == nil {
		err = closed
	}
	return true, p.local.problem("write", p.spec.Path, err)
}

// Commit implements [Part].
func (p *localPart) Commit(context.Context) error {
	return p.local.problem("write", p.spec.Path, unlink(os.Rename(p.path, p.local.at(p.spec.Path))))
}

// Abandon implements [Part].
func (p *localPart) Abandon(keep bool) {
	p.file.Close()
	if !keep {
		os.Remove(p.path)
	}
}

const (
	partMark    = ".gateway-"
	partSuffix  = ".part"
	asideSuffix = ".old"
)

// partPath returns a name that nobody else has, in the directory of path.
func partPath(path string) string { return ownPath(path, partSuffix) }

// asidePath is such a name for what is there while a part takes its place. It is
// not that of a part: nothing is to go on with it.
func asidePath(path string) string { return ownPath(path, asideSuffix) }

func ownPath(path, suffix string) string {
	dir, name := split(path)
	return Join(dir, partPrefix(name)+rand.Text()[:10]+suffix)
}

// partPrefix is how the parts of a file are called up to what tells them apart.
// Names have 255 bytes at most, on most systems; long ones may begin alike.
func partPrefix(name string) string {
	if len(name) > 200 {
		name = fmt.Sprintf("%s-%.4x", name[:200], sha256.Sum256([]byte(name)))
	}
	return "." + name + partMark
}

// isPart reports whether a name is that of a part of the file name.
func isPart(entry, name string) bool {
	rest, ok := strings.CutPrefix(entry, partPrefix(name))
	return ok && strings.HasSuffix(rest, partSuffix)
}

// Home implements [Machine].
func (l *Local) Home(context.Context) (string, error) { return l.absolute(""), nil }

// Settle has what was copied into a directory written to the disk.
func (l *Local) Settle(_ context.Context, dir string) error {
	return l.problem(settling, dir, settle(l.at(dir)))
}

var _ Machine = (*Local)(nil)

// orElse returns a time, or another one where it is not known.
func orElse(t, other time.Time) time.Time {
	if t.IsZero() {
		return other
	}
	return t
}
