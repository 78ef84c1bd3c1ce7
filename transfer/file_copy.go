package transfer

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"syscall"

	"gateway/gateway"
	"gateway/transport"
)

// A fileCopy is one file under way.
type fileCopy struct {
	*walk
	task
	keep   *fs.FileMode // the permissions of the file that is replaced
	at     int64        // what was there already
	others []string     // parts that are not gone on with
	stale  bool         // the source has been written to since that was compared with it
}

// copy copies the file and returns how many bytes it has moved.
func (f *fileCopy) copy(ctx context.Context) (n int64, err error) {
	old, before, err := f.resumed(ctx)
	if err != nil {
		return 0, err
	}
	content, err := f.From.Open(ctx, f.from, f.info, f.at)
	if err != nil {
		return 0, err
	}
	defer content.Close()
	if err := f.opened(ctx, content, before); err != nil {
		return 0, err
	}
	spec := Spec{Path: f.to, Perm: f.info.Mode.Perm(), Final: f.final(), Size: f.info.Size, Old: old, At: f.at}
	part, err := f.To.Create(ctx, spec)
	committed := false
	if part != nil {
		defer func() {
			if err != nil && !committed {
				err = f.abandon(part, n, err)
			}
		}()
	}
	if err != nil {
		return 0, besides(f.To.About().Name, f.to, err)
	}
	if f.Watch != nil {
		f.Watch.Begin(f.from, f.info.Size, f.at)
	}
	f.count(&f.report.Resumed, f.at)
	c := newChecker(ctx, f, part.Path())
	defer c.close()
	if n, err = f.stream(ctx, content, part, c); err != nil {
		return n, err
	}
	checked, err := part.Finish(ctx, f.times())
	if err == nil {
		err = c.source(content, n)
	}
	if err == nil && !checked {
		err = f.checkTarget(ctx, c, part.Path())
	}
	if err != nil {
		return n, err
	}
	committed, err = commit(ctx, f.To, spec, part)
	if MayBeDone(err) {
		f.count(&f.report.Unsure, 1)
	} else if committed {
		f.sweep(ctx)
	}
	return n, err
}

// resumed looks for a part to go on with: where that is asked for, and worth it. In a
// directory that was just made there is none. before is the source as it was then.
func (f *fileCopy) resumed(ctx context.Context) (old string, before Info, err error) {
	if !f.Resume || f.fresh && f.rel != "" || f.info.Size < step {
		return "", f.info, nil
	}
	if before, err = f.From.Stat(ctx, f.from, true); err == nil {
		old, f.at, err = f.oldPart(ctx)
	}
	return old, before, err
}

// checkTarget reads back what was not checked while it was written.
func (f *fileCopy) checkTarget(ctx context.Context, c *checker, part string) error {
	err := c.target()
	if err == nil && f.Preserve { // it was read for that
		err = f.To.Chattr(ctx, part, Attr{Times: f.times()})
	}
	return err
}

// abandon gives up a part of which n bytes have come now, and keeps one that can be gone on
// with.
func (f *fileCopy) abandon(part Part, n int64, err error) error {
	keep := f.at+n >= worthKeeping && !errors.Is(err, syscall.EFBIG)
	switch gateway.Code(err) {
	case codeMismatch, codeChanged, codePermission: // it is no beginning of what it should be, or not cut short
		keep = false
	case codeNoSpace:
		keep = keep && f.Resume
	}
	left := part.Abandon(keep)
	if left && f.at+n >= step {
		f.count(&f.report.Kept, 1)
	}
	if left && !keep {
		return remains(f.To.About().Name, part.Path(), err)
	}
	return err
}

// opened takes the file for what it is now: another one may have its name since
// it was found.
func (f *fileCopy) opened(ctx context.Context, content Content, before Info) error {
	info, err := content.Opened(ctx)
	if err != nil {
		return err
	}
	if info.Size < f.at || info.Size == 0 && f.info.Size > 0 {
		return f.hasChanged()
	}
	info.Name = f.info.Name
	f.info, f.stale = info, differs(info, before)
	return nil
}

// worthKeeping is from where on a part of a file is kept for another time.
const worthKeeping = 8 << 20

// final returns the permissions that the file gets whatever the umask is; nil: there are
// none.
func (f *fileCopy) final() *fs.FileMode {
	switch {
	case f.Mode != nil:
		return f.Mode
	case f.Preserve:
		return new(f.info.Mode.Perm())
	}
	return f.keep
}

func (f *fileCopy) times() Times {
	if f.Preserve {
		return Times{f.info.Accessed, f.info.Modified}
	}
	return Times{}
}

// stream moves the bytes.
func (f *fileCopy) stream(ctx context.Context, content Content, part Part, c *checker) (n int64, err error) {
	source, lends := content.(lender)
	if !lends {
		pool := &largeBuffers
		if f.info.Size <= Small {
			pool = &smallBuffers
		}
		own := newBlocks(content, pool)
		defer own.close()
		source = own
	}
	defer c.wait()
	for ctx.Err() == nil {
		most := int64(math.MaxInt64)
		if f.info.Size > 0 { // no more than it had; what comes later is not looked at
			most = f.info.Size - f.at - n
		}
		if most == 0 {
			return n, nil
		}
		b, err := source.lend(most)
		if len(b) > 0 {
			c.write(b, source.free)
			if _, err := part.Write(b); err != nil {
				return n, err
			}
			n += int64(len(b))
			f.count(&f.report.Bytes, int64(len(b)))
			if f.Watch != nil {
				f.Watch.Moved(f.from, len(b))
			}
		}
		switch {
		case err == io.EOF:
			if f.at+n < f.info.Size {
				return n, f.hasChanged()
			}
			return n, nil
		case err != nil:
			return n, err
		}
	}
	return n, transport.Cause(ctx)
}

func (f *fileCopy) hasChanged() error {
	return refuse(codeChanged, "copy it again when nobody writes to it; a file that the kernel makes up may never have the size it shows", "%s changed while it was read", Show(f.From.About().Name, f.task.from))
}
