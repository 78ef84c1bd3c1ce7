package transfer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Create implements [Target].
func (s *Shell) Create(ctx context.Context, spec Spec) (Part, error) {
	p := &shellPart{shell: s, spec: spec, path: partPath(spec.Path), ends: spec.ends(spec.Perm &^ s.umask)}
	var err error
	if p.begin, err = s.begin(ctx, p.path); err != nil {
		return nil, s.problem("write", spec.Path, s.explain(ctx, spec.Path, err))
	}
	script := "umask 077; set -C; " + p.begin + "exec cat " + p.into()
	if spec.Old != "" {
		if err := p.takeOver(ctx); err != nil {
			return nil, s.problem("take over", spec.Old, err)
		}
		script = "exec cat >>" + word(p.path)
	}
	p.grow = func() (*feed, error) { return s.launch(ctx, script, true) }
	if spec.Old == "" && spec.Size <= Small { // it goes with the first request
		return p, nil
	}
	if p.feed, err = p.grow(); err == nil {
		return p, nil
	}
	err = s.problem("write", spec.Path, err)
	if p.begun = ctx.Err() != nil; p.begun { // it may be there, and is the caller's to abandon
		return p, err
	}
	return nil, err
}

// takeOver puts the old part in the place of the new one: under a name of one's own it is
// nobody else's to go on with. -O looks behind a symlink.
func (p *shellPart) takeOver(ctx context.Context) error {
	old, path := word(p.spec.Old), word(p.path)
	take := fmt.Sprintf("mv -f %s %s && %s && dd bs=%d seek=%d count=0 of=%[2]s", old, path, private(path), step, p.spec.At/step)
	out, err := p.shell.run(ctx, "if [ -L "+old+" ] || [ ! -O "+old+" ]; then echo foreign; else { "+take+"; } 2>&1; fi")
	if string(out) == "foreign\n" {
		err = foreignPart(p.shell.name, p.spec.Old)
	}
	return err
}

// private is a command that closes a file to others. Where that can't be done, it is seen
// in the end whether it has to be.
func private(word string) string { return "{ chmod 600 " + word + " 2>/dev/null || :; }" }

type shellPart struct {
	shell *Shell
	spec  Spec
	path  string
	ends  fs.FileMode           // the permissions that it is to have
	begin string                // makes the file, where the umask alone does not do
	feed  *feed                 // nil: a small file
	small bytes.Buffer          // what it has
	grow  func() (*feed, error) // for one that turns out to be large
	begun bool                  // the file may be there
}

// into is where what is written goes.
func (p *shellPart) into() string {
	if p.begin != "" {
		return ">>" + word(p.path)
	}
	return ">" + word(p.path)
}

// Path implements [Part].
func (p *shellPart) Path() string { return p.path }

// Write implements [Part].
func (p *shellPart) Write(b []byte) (int, error) {
	if p.feed == nil && p.small.Len()+len(b) <= Small {
		return p.small.Write(b)
	}
	if p.feed == nil { // a file in /proc has no size before it is read
		if err := p.enlarge(); err != nil {
			return 0, err
		}
	}
	n, err := p.feed.pipe.Stdin.Write(b)
	if err != nil {
		if failed := p.feed.ended(); failed != nil {
			err = failed
		}
		err = p.problem(err)
	}
	return n, err
}

// problem is the error of a part that could not be made or written to: which of both, only
// the program knows.
func (p *shellPart) problem(err error) error {
	return besides(p.shell.name, p.spec.Path, p.shell.problem("write", p.spec.Path, err))
}

// enlarge has a program write what is there of a small file, and what comes.
func (p *shellPart) enlarge() (err error) {
	p.begun = true
	if p.feed, err = p.grow(); err != nil {
		return p.problem(err)
	}
	_, err = p.Write(p.small.Bytes())
	p.small = bytes.Buffer{}
	return err
}

// maxText is how long the text of a small file may be. Where printf is a program, as
// in mksh, Linux takes no argument of 128 KiB (execve(2), MAX_ARG_STRLEN).
const maxText = 100 << 10

// Finish implements [Part].
func (p *shellPart) Finish(ctx context.Context, times Times) (bool, error) {
	attr := Attr{&p.ends, times}
	if p.feed == nil {
		text := escape(p.small.Bytes())
		if len(text) <= maxText {
			return false, p.problem(p.print(ctx, text, attr))
		}
		if err := p.enlarge(); err != nil {
			return false, err
		}
	}
	err := p.feed.ended()
	p.feed.close()
	if err != nil {
		return false, p.problem(p.shell.explain(ctx, p.spec.Path, err))
	}
	return false, p.shell.problem("write", p.spec.Path, p.store(ctx, chattr(p.path, attr), attr))
}

// print has the shell itself make a small file and write it: a process for a file takes
// longer than the file.
func (p *shellPart) print(ctx context.Context, text string, attr Attr) error {
	p.begun = true
	printed := p.ends & 0o666
	script := fmt.Sprintf("umask %03o; set -C; %sprintf '%s' %s", 0o777&^printed, p.begin, text, p.into())
	if printed == p.ends && p.begin == "" {
		attr.Perm = nil
	}
	if !attr.empty() {
		script += " && " + chattr(p.path, attr)
	}
	return p.store(ctx, script, attr)
}

// store runs a script that makes the file what it is to be, and has it written to the disk.
// Where the file can't have other permissions than it has, the rest is done all the same.
// Linux says yes to a chmod on FAT: where the umask does nothing, that is looked at.
func (p *shellPart) store(ctx context.Context, script string, attr Attr) error {
	_, err := p.shell.run(ctx, "{ "+script+p.sync()+"; } 2>&1")
	refused := errors.Is(err, fs.ErrPermission)
	if attr.Perm == nil || !refused && (err != nil || p.begin == "") {
		return p.shell.explain(ctx, p.spec.Path, err)
	}
	info, failed := p.shell.Stat(ctx, p.path, false)
	if failed != nil {
		return cmp.Or(err, failed)
	}
	if has := info.Mode.Perm(); has != *attr.Perm {
		if err := p.spec.kept(p.shell.name, has, cmp.Or(err, fs.ErrPermission)); err != nil {
			return err
		}
	}
	if !refused {
		return nil
	}
	attr.Perm = nil
	return p.store(ctx, chattr(p.path, attr), attr)
}

// sync is the rest of a script that has the file written to the disk, if it is
// to be. Not every sync takes a file.
func (p *shellPart) sync() string {
	if p.feed == nil && !p.spec.Sync {
		return ""
	}
	return " && { sync " + word(p.path) + " 2>/dev/null || sync; }"
}

// escape writes bytes as the format of printf, within single quotes.
func escape(b []byte) string {
	var s strings.Builder
	for i, c := range b {
		switch {
		case c == '\'' || c == '-' && i == 0: // an option
			fmt.Fprintf(&s, `\%03o`, c)
		case c == '%':
			s.WriteString("%%")
		case c == '\\':
			s.WriteString(`\\`)
		case c == '\n' || c >= ' ' && c < 0x7f:
			s.WriteByte(c)
		default:
			fmt.Fprintf(&s, `\%03o`, c)
		}
	}
	return s.String()
}

// Commit implements [Part].
func (p *shellPart) Commit(ctx context.Context) error {
	ctx, stop := outlast(ctx, Committing-finishing) // which run adds
	defer stop()
	_, err := p.shell.run(ctx, "{ "+place(p.path, p.spec.Path)+"; } 2>&1")
	return p.shell.problem("write", p.spec.Path, p.shell.explain(ctx, p.spec.Path, err))
}

// Abandon implements [Part].
func (p *shellPart) Abandon(keep bool) (left bool) {
	ctx, cancel := context.WithTimeout(context.Background(), Committing-2*finishing) // once before, and once behind, in run
	defer cancel()
	switch {
	case p.feed == nil:
	case keep:
		p.feed.close()
	default:
		p.feed.finish()
	}
	if keep || p.feed == nil && !p.begun {
		return keep
	}
	_, err := p.shell.run(ctx, "rm -f "+word(p.path))
	return err != nil
}
