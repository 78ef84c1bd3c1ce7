package transfer

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"

	"gateway/transport"
)

// ReadAt returns up to n bytes of a regular file from an offset, fewer only at
// its end. info is about the file.
func ReadAt(ctx context.Context, m Machine, path string, info Info, at int64, n int) ([]byte, error) {
	if info.Size > 0 {
		if at >= info.Size {
			return nil, nil
		}
		info.Size = min(info.Size, at+int64(n)) // what is beyond need not be sent
	}
	content, err := m.Open(ctx, path, info, at)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	b := make([]byte, n)
	got, err := io.ReadFull(&until{ctx, content}, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return b[:got], err
}

// sumContent hashes what a machine gives of a file, up to an offset or to the size that it
// has now.
func sumContent(ctx context.Context, from Source, path string, begin, end int64) (Sum, error) {
	if end < 0 {
		info, err := from.Stat(ctx, path, true)
		if err != nil {
			return Sum{}, err
		}
		end = info.Size
	}
	hash := sha256.New()
	if end > begin {
		content, err := from.Open(ctx, path, Info{Size: end}, begin)
		if err != nil {
			return Sum{}, err
		}
		defer content.Close()
		if _, err := io.Copy(hash, &until{ctx, io.LimitReader(content, end-begin)}); err != nil {
			return Sum{}, err
		}
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
		return 0, transport.Cause(u.ctx)
	}
	return u.r.Read(b)
}

// Write gives a path a file that has this content, or leaves what is there:
// also where several do so at once, and where the link is lost. perm is nil for
// that of the file it replaces, or else of any new file. A symlink in its place
// is replaced. The error's code is link.lost if nobody knows whether it was done.
func Write(ctx context.Context, m Machine, path string, content []byte, perm *fs.FileMode) (err error) {
	old, err := m.Stat(ctx, path, false)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case old.Mode.IsDir():
		return refuse(codeIsDirectory, "", "%s is a directory: no file takes its place", Show(m.About().Name, path))
	case !old.Mode.IsRegular() && old.Mode&fs.ModeSymlink == 0:
		return refuse(codeSpecial, "", "%s is no regular file", Show(m.About().Name, path))
	case perm == nil && old.Mode.IsRegular():
		perm = new(old.Mode.Perm())
	}
	spec := Spec{Path: path, Perm: 0o666, Final: perm, Size: int64(len(content)), Sync: true}
	part, err := m.Create(ctx, spec)
	committed := false
	if part != nil {
		defer func() {
			if err != nil && !committed && part.Abandon(false) {
				err = remains(m.About().Name, part.Path(), err)
			}
		}()
	}
	if err != nil {
		return besides(m.About().Name, path, err)
	}
	if _, err := part.Write(content); err != nil {
		return err
	}
	checked, err := part.Finish(ctx, Times{})
	if err != nil {
		return err
	}
	if !checked {
		sum, err := m.Sum(ctx, part.Path(), 0, -1)
		if err != nil {
			return err
		}
		if sum != sha256.Sum256(content) {
			return mismatch(m.About().Name, path)
		}
	}
	if ctx.Err() != nil {
		return transport.Cause(ctx)
	}
	committed, err = commit(ctx, m, spec, part)
	return err
}
