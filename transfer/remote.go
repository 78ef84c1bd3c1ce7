package transfer

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"gateway/gateway"
	"gateway/internal/sftp"
	"gateway/transport"
)

// Remote is the files of a machine that serves sftp.
type Remote struct {
	name       string
	connection *gateway.Connection
	client     *sftp.Client
	hasher     *hasher
}

// maxEntries bounds a directory: a machine could go on for ever.
const maxEntries = 1 << 20

// errEndless is what a directory is that has more.
var errEndless = errors.New("it has more than a million entries")

// openRemote begins to speak sftp over a pipe of a connection, which it closes
// if that fails.
func openRemote(ctx context.Context, c *gateway.Connection, pipe *transport.Pipe) (*Remote, error) {
	name := c.Host.Name
	go drain(pipe.Stderr) // ends with the pipe
	client, err := sftp.New(ctx, pipe.Stdout, pipe.Stdin, func() { pipe.Close() })
	if err != nil {
		c.Close()
		return nil, &transport.Error{
			Code: "file.no_subsystem", Message: "transfer: " + name + ": " + err.Error(), Err: err,
			Hint: "what a profile writes without being asked breaks sftp",
		}
	}
	return &Remote{name: name, connection: c, client: client, hasher: newHasher(c.Pipe)}, nil
}

// About implements [Machine].
func (r *Remote) About() About { return About{Name: r.name, Via: viaSFTP} }

// Close implements [Machine].
func (r *Remote) Close() error {
	r.client.Close()
	r.hasher.close()
	return r.connection.Close()
}

func (r *Remote) problem(doing, path string, err error) error {
	return problem(r.name, doing, path, err)
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
	call := r.client.Lstat
	if follow {
		call = r.client.Stat
	}
	attr, err := call(at(path)).Attr(ctx)
	if err != nil {
		return Info{}, r.problem("look at", path, err)
	}
	_, name := split(path)
	return remoteInfo(name, attr), nil
}

func remoteInfo(name string, attr sftp.Attr) Info {
	info := Info{Name: name, Mode: attr.Mode(), Size: attr.Size}
	info.Accessed, info.Modified = attr.Times()
	return info
}

// List implements [Tree].
func (r *Remote) List(ctx context.Context, dir string, each func(Info) error) error {
	seen := make(map[string]bool)
	err := r.client.ReadDir(ctx, at(dir), func(e sftp.Entry) error {
		if e.Name == "." || e.Name == ".." {
			return nil
		}
		if err := checkName(r.name, dir, e.Name); err != nil {
			return err
		}
		if seen[e.Name] {
			return refuse(codeUnsafe, "", "%s has two entries called %q", Show(r.name, dir), e.Name)
		}
		if seen[e.Name] = true; len(seen) > maxEntries {
			return errEndless
		}
		return each(remoteInfo(e.Name, e.Attr))
	})
	return r.problem("list", dir, err)
}

// Readlink implements [Tree].
func (r *Remote) Readlink(ctx context.Context, path string) (string, error) {
	target, err := r.client.Readlink(ctx, at(path))
	return target, r.problem("read the symlink", path, err)
}

// Sum implements [Tree]. Where the machine runs no programs for us, the bytes
// come here to be hashed.
func (r *Remote) Sum(ctx context.Context, path string, from, to int64) (Sum, error) {
	sum, err := r.hasher.sum(ctx, at(path), from, to)
	if errors.Is(err, errNoHasher) {
		return sumContent(ctx, r, path, from, to)
	}
	return sum, r.problem("hash", path, err)
}

// Hashes reports whether the machine hashes its files itself.
func (r *Remote) Hashes(ctx context.Context) bool {
	return r.hasher.works(ctx)
}

// Mkdir implements [Target].
func (r *Remote) Mkdir(ctx context.Context, path string, perm fs.FileMode) error {
	err := r.client.Mkdir(at(path), sftp.Attr{}.WithMode(perm)).Done(ctx)
	return r.problem("make the directory", path, r.explain(ctx, path, err))
}

// Symlink implements [Target].
func (r *Remote) Symlink(ctx context.Context, target, path string) error {
	part := partPath(at(path))
	err := r.client.Symlink(target, part).Done(ctx)
	if err == nil {
		if err = r.rename(ctx, part, at(path)); err != nil {
			r.client.Remove(part)
		}
	}
	return r.problem("make the symlink", path, r.explain(ctx, path, err))
}

// rename puts one file in the place of another, at one stroke where the server
// can.
func (r *Remote) rename(ctx context.Context, from, to string) error {
	err := r.client.Rename(from, to).Done(ctx)
	if err == nil || r.client.Has("posix-rename@openssh.com") {
		return err
	}
	info, gone := r.client.Lstat(to).Attr(ctx)
	if gone != nil || info.Mode().IsDir() {
		return err
	}
	if removed := r.client.Remove(to).Done(ctx); removed != nil {
		return err
	}
	return r.client.Rename(from, to).Done(ctx)
}

// Chattr implements [Target].
func (r *Remote) Chattr(ctx context.Context, path string, attr Attr) error {
	err := r.client.Setstat(at(path), wireAttr(attr)).Done(ctx)
	return r.problem("change the attributes of", path, err)
}

func wireAttr(attr Attr) sftp.Attr {
	var wire sftp.Attr
	if attr.Perm != nil {
		wire = wire.WithMode(*attr.Perm)
	}
	if !attr.Modified.IsZero() {
		wire = wire.WithTimes(orElse(attr.Accessed, attr.Modified), attr.Modified)
	}
	return wire
}

// explain finds out what "Failure" stands for, which is all that servers say
// about most causes.
func (r *Remote) explain(ctx context.Context, path string, err error) error {
	status := new(sftp.Status)
	if !errors.As(err, &status) || status.Code != sftp.StatusFailure {
		return err
	}
	dir, _ := split(path)
	if r.client.Has("statvfs@openssh.com") {
		room, failed := r.client.Room(ctx, at(dir))
		switch {
		case failed == nil && room.ReadOnly:
			return syscall.EROFS
		case failed == nil && (room.Bytes < Small || room.Files == 0):
			return syscall.ENOSPC
		}
	}
	if info, failed := r.client.Lstat(path).Attr(ctx); failed == nil && info.Mode().IsDir() {
		return syscall.EISDIR
	}
	return err
}

// Settle has what was copied into a directory written to the disk.
func (r *Remote) Settle(ctx context.Context, dir string) error { return r.hasher.settle(ctx, at(dir)) }

var _ Machine = (*Remote)(nil)
