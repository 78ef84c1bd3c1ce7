package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strings"
	"syscall"
	"time"

	"github.com/pkg/sftp"

	"gateway/gateway"
	"gateway/transport"
)

// Remote is the files of a machine that serves sftp.
type Remote struct {
	name       string
	connection *gateway.Connection
	link       *link
	second     secondLink
	hasher     *hasher
	umasks     umasks
	order      linkOrder
}

// openRemote begins to speak sftp over a connection. A server may accept to serve it, and
// have no program for that.
func openRemote(ctx context.Context, c *gateway.Connection) (*Remote, error) {
	pipe, err := c.Subsystem(ctx, "sftp")
	if err != nil {
		return nil, err
	}
	name := c.Host.Name
	go drain(pipe.Stderr) // ends with the pipe
	link, err := newLink(ctx, pipe)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, transport.ErrLost) { // which says nothing about the server
			return nil, err
		}
		return nil, &transport.Error{
			Code: "file.no_subsystem", Message: "transfer: " + name + ": sftp: " + strings.TrimPrefix(err.Error(), "sftp: "), Err: err,
			Hint: "look at Subsystem in sshd_config; what a profile writes without being asked breaks sftp too",
		}
	}
	r := &Remote{name: name, connection: c, link: link, hasher: newHasher(nudged(c.Pipe))}
	r.hasher.patience = hashless
	return r, nil
}

// hashless is how long a shell may take to say its first word where the server speaks
// sftp: without a shell, what it would hash is read back.
const hashless = 5 * time.Second

// nudged has a server of sftp that a ForceCommand starts in the place of every program end at
// once, as it can't read that. It would be as silent as a shell that is slow.
func nudged(start starter) starter {
	return func(ctx context.Context, command string) (*transport.Pipe, error) {
		pipe, err := start(ctx, command)
		if err == nil {
			_, _ = io.WriteString(pipe.Stdin, ":\n:\n:\n") // its error comes again
		}
		return pipe, err
	}
}

// About implements [Machine].
func (r *Remote) About() About { return About{Name: r.name, Via: viaSFTP} }

// Close implements [Machine].
func (r *Remote) Close() error {
	r.second.close()
	r.link.close()
	r.hasher.close()
	return r.connection.Close()
}

func (r *Remote) problem(doing, path string, err error) error {
	return problem(r.name, doing, path, tooLong(path, err))
}

// maxName is how long a name is at most on nearly all disks.
const maxName = 255

// tooLong finds out whether a bad message is what OpenSSH calls a name that is too long.
func tooLong(path string, err error) error {
	status, ok := errors.AsType[*sftp.StatusError](err)
	if !ok || status.FxCode() != sftp.ErrSSHFxBadMessage {
		return err
	}
	for name := range strings.SplitSeq(path, "/") {
		if len(name) > maxName {
			return syscall.ENAMETOOLONG
		}
	}
	return err
}

// at returns a path as the server knows it: it has no words for the home
// directory but its own working directory.
func at(path string) string {
	if path == "" {
		return "."
	}
	return path
}

// Stat implements [Tree].
func (r *Remote) Stat(ctx context.Context, path string, follow bool) (Info, error) {
	call := r.link.Lstat
	if follow {
		call = r.link.Stat
	}
	info, err := get(ctx, r.link, func() (fs.FileInfo, error) { return call(at(path)) })
	if err != nil {
		return Info{}, r.problem("look at", path, err)
	}
	_, name := split(path)
	return remoteInfo(name, info), nil
}

func remoteInfo(name string, stat fs.FileInfo) Info {
	info := Info{Name: name, Mode: stat.Mode(), Size: stat.Size(), Modified: stat.ModTime()}
	if all, ok := stat.Sys().(*sftp.FileStat); ok {
		info.Accessed = time.Unix(int64(all.Atime), 0)
	}
	return info
}

// List implements [Tree].
func (r *Remote) List(ctx context.Context, dir string, each func(Info) error) error {
	found, err := r.link.list(ctx, at(dir))
	if err != nil {
		return r.problem("list", dir, err)
	}
	each = once(r.name, dir, each)
	for _, entry := range found {
		if err := each(remoteInfo(entry.Name(), entry)); err != nil {
			return err
		}
	}
	return nil
}

// Readlink implements [Tree].
func (r *Remote) Readlink(ctx context.Context, path string) (string, error) {
	target, err := get(ctx, r.link, func() (string, error) { return r.link.ReadLink(at(path)) })
	return target, r.problem("read the symlink", path, err)
}

// Sum implements [Tree]. Where the machine runs no programs for us, or they see
// other files than the server, the bytes come here to be hashed.
func (r *Remote) Sum(ctx context.Context, path string, from, to int64) (Sum, error) {
	absolute := at(path)
	if !strings.HasPrefix(absolute, "/") { // programs may begin elsewhere
		home, err := r.Home(ctx)
		if err != nil {
			return Sum{}, err
		}
		absolute = Join(home, absolute)
	}
	sum, err := r.hasher.sum(ctx, absolute, from, to)
	if err == nil || ctx.Err() != nil || errors.Is(err, transport.ErrLost) || errors.Is(err, transport.ErrClosed) {
		return sum, err
	}
	return sumContent(ctx, r, path, from, to)
}

// Hashes reports whether the machine hashes its files itself.
func (r *Remote) Hashes(ctx context.Context) bool {
	return r.hasher.works(ctx)
}

// Mkdir implements [Target].
func (r *Remote) Mkdir(ctx context.Context, path string, perm fs.FileMode) error {
	err := r.link.do(ctx, func() error {
		if err := r.link.Mkdir(at(path)); err != nil {
			return err
		}
		made, err := r.link.Lstat(at(path))
		if err != nil {
			return err
		}
		if perm &= made.Mode().Perm(); perm == made.Mode().Perm() {
			return nil
		}
		return r.link.Chmod(at(path), perm|made.Mode()&fs.ModeSetgid) // of a group's directory
	})
	return r.problem("make the directory", path, r.explain(ctx, path, err))
}

// rename puts one file in the place of another, at one stroke where the server
// can. Elsewhere it must not end half way.
func (r *Remote) rename(ctx context.Context, from, to string) error {
	ctx, stop := outlast(ctx, Committing)
	defer stop()
	return r.link.do(ctx, func() error {
		if r.link.has("posix-rename@openssh.com") {
			return r.link.PosixRename(from, to)
		}
		err := r.link.Rename(from, to)
		if !mayBeInTheWay(err) {
			return err
		}
		if info, gone := r.link.Lstat(to); gone != nil || info.IsDir() {
			return err
		}
		return r.replace(from, to)
	})
}

// fileExists is SSH_FX_FILE_ALREADY_EXISTS, which the library has no name for;
// draft-ietf-secsh-filexfer-13, section 9.1.
const fileExists = 11

// mayBeInTheWay reports whether a rename may have failed for the file that is
// there already. Most servers have no word for that.
func mayBeInTheWay(err error) bool {
	status, ok := errors.AsType[*sftp.StatusError](err)
	return ok && (status.FxCode() == sftp.ErrSSHFxFailure || status.Code == fileExists)
}

// replace is rename for a server that renames only to what is not there. The
// file that is there has another name meanwhile, and gets its own one back where
// the new one does not get it.
func (r *Remote) replace(from, to string) error {
	aside := asidePath(to)
	if err := r.link.Rename(to, aside); err != nil {
		return err
	}
	err := r.link.Rename(from, to)
	if err == nil {
		_ = r.link.Remove(aside) // a server that refuses it has the new file all the same
		return nil
	}
	if !answered(err) { // it may have been done
		return fmt.Errorf("%w; what was there is called %s", r.link.in.explain(err), Show(r.name, aside))
	}
	if failed := r.link.Rename(aside, to); failed != nil {
		return refuse(codeFailed, "rename it there", "%s is now called %s, and does not get its name back: %s",
			Show(r.name, to), Show(r.name, aside), told(failed))
	}
	return err
}

// Chattr implements [Target].
func (r *Remote) Chattr(ctx context.Context, path string, attr Attr) error {
	err := r.link.do(ctx, func() error {
		if attr.Perm != nil {
			if err := r.link.Chmod(at(path), *attr.Perm); err != nil {
				return err
			}
		}
		return r.link.chtimes(at(path), attr.Times)
	})
	return r.problem("change the attributes of", path, err)
}

func (l *link) chtimes(path string, times Times) error {
	if times.Modified.IsZero() {
		return nil
	}
	return l.Chtimes(path, inRange(cmp.Or(times.Accessed, times.Modified)), inRange(times.Modified))
}

// inRange returns a time that the protocol can say, or the nearest one: seconds since
// 1970 in 32 bits; draft-ietf-secsh-filexfer-02, section 5.
func inRange(t time.Time) time.Time {
	return time.Unix(min(max(t.Unix(), 0), math.MaxUint32), 0)
}

// statvfs asks about a disk, and readOnly is SSH_FXE_STATVFS_ST_RDONLY; PROTOCOL of OpenSSH,
// section 4.3.
const (
	statvfs  = "statvfs@openssh.com"
	readOnly = 1
)

// explain finds out what "Failure" stands for, which is all that servers say
// about most causes.
func (r *Remote) explain(ctx context.Context, path string, err error) error {
	if status, ok := errors.AsType[*sftp.StatusError](err); !ok || status.FxCode() != sftp.ErrSSHFxFailure {
		return err
	}
	dir, _ := split(path)
	if r.link.has(statvfs) {
		free, failed := get(ctx, r.link, func() (*sftp.StatVFS, error) { return r.link.StatVFS(at(dir)) })
		switch {
		case failed == nil && free.Flag&readOnly != 0:
			return syscall.EROFS
		case failed == nil && free.Blocks > 0 && // FUSE may know nothing of it
			(free.Bavail*free.Frsize < Small || free.Favail == 0 && free.Files > 0):
			return syscall.ENOSPC
		}
	}
	info, failed := get(ctx, r.link, func() (fs.FileInfo, error) { return r.link.Lstat(at(path)) })
	if failed == nil && info.IsDir() {
		return syscall.EISDIR
	}
	return err
}

// Home implements [Machine].
func (r *Remote) Home(ctx context.Context) (string, error) {
	if err := r.link.home.wait(ctx); err != nil {
		return "", r.problem("find", "", err)
	}
	return r.link.where, nil
}

// Settle implements [Target].
func (r *Remote) Settle(ctx context.Context, dir string) error {
	return r.problem(settling, dir, r.hasher.settle(ctx, at(dir)))
}

var _ Machine = (*Remote)(nil)
