package transfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
)

// Open implements [Source].
func (l *Local) Open(_ context.Context, path string, _ Info, at int64) (Content, error) {
	f, err := open(l.at(path))
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

// Create implements [Target].
func (l *Local) Create(_ context.Context, spec Spec) (Part, error) {
	p := &localPart{disk: localDisk{l}, path: partPath(spec.Path), spec: spec}
	var err error
	p.file, p.perms, err = partOn(p.disk, l.Name, p.path, spec)
	if err == nil && spec.At > 0 {
		_, err = p.file.Seek(spec.At, io.SeekStart)
	}
	if err != nil {
		return nil, l.problem("write", spec.Path, err)
	}
	return p, nil
}

type localPart struct {
	disk localDisk
	file *localFile
	path string
	spec Spec
	perms
	holes bool // the last bytes may have been left out
	dirty int  // bytes that the disk was not told about
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
		p.dirty += len(b)
	}
	if err != nil {
		return 0, p.disk.problem("write", p.spec.Path, err)
	}
	if p.dirty >= early {
		writeOut(p.file.File)
		p.dirty = 0
	}
	return len(b), nil
}

// zeros is what a hole reads as.
var zeros = make([]byte, block)

// hollow reports whether a block is better left out.
func hollow(b []byte) bool { return len(b) == block && bytes.Equal(b, zeros) }

// Finish implements [Part]. What this machine has taken needs no second look.
func (p *localPart) Finish(_ context.Context, times Times) (bool, error) {
	err := p.lengthen()
	if err == nil && p.has != p.ends {
		_, err = p.spec.chmod(p.disk.Name, p.file, p.ends)
	}
	if err == nil && !times.Modified.IsZero() {
		err = os.Chtimes(p.disk.at(p.path), times.Accessed, times.Modified)
	}
	if err == nil && (p.spec.Size > Small || p.spec.Sync || !settles) {
		err = p.file.Sync()
	}
	if closed := p.file.Close(); err == nil {
		err = closed
	}
	return true, p.disk.problem("write", p.spec.Path, err)
}

// lengthen makes the zeros at the end that were left out.
func (p *localPart) lengthen() error {
	if !p.holes {
		return nil
	}
	end, err := p.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	return p.file.Truncate(end)
}

// Commit implements [Part].
func (p *localPart) Commit(context.Context) error {
	return p.disk.problem("write", p.spec.Path, p.disk.Rename(p.path, p.spec.Path))
}

// Abandon implements [Part].
func (p *localPart) Abandon(keep bool) (left bool) {
	if keep {
		_ = p.lengthen() // there is nobody left to tell
	}
	p.file.Close()
	if keep {
		return true
	}
	err := p.disk.Remove(p.path)
	return err != nil && !errors.Is(err, fs.ErrNotExist)
}
