package transfer

import (
	"context"
	"errors"
	"io/fs"
	"strings"
)

// A Real is where a path leads.
type Real struct {
	// Path has no symlink in it, as far as it is there, and no "." or "..".
	Path string
	// Info is about what is there, unless Missing.
	Info    Info
	Missing bool
	// Links are the symlinks that were followed, each with the path of its own.
	Links []string
}

// maxLinks is how many symlinks lead on from one to the next, as in Linux.
const maxLinks = 40

// Resolve follows the symlinks of an absolute path, and if follow is set also
// one at its end. It asks for each element, since not every server's own way to
// do it looks at symlinks. Of what could not be looked at, the path has what was
// asked for, also beside an error; where nothing is, that is none.
func Resolve(ctx context.Context, t Tree, name string, follow bool) (Real, error) {
	r := &resolver{Real: Real{Path: "/"}, tree: t, name: name, follow: follow, ahead: strings.Split(name, "/")}
	for len(r.ahead) > 0 {
		if err := r.stretch(ctx); err != nil {
			return r.without(r.ahead, err)
		}
	}
	_, r.Info.Name = split(r.Path)
	var err error
	// The root was not looked at, nor was it noted of what a .. leads to.
	if r.Path == "/" || r.Info.Modified.IsZero() {
		r.Info, err = t.Stat(ctx, r.Path, r.Path == "/")
	}
	return r.Real, err
}

// A resolver is a path on its way to where it leads.
type resolver struct {
	Real
	tree   Tree
	name   string // what was asked for
	follow bool
	ahead  []string // the elements behind Path
}

// stretch goes over the elements that can be looked at together: to what turns off
// the way, a ".." or a symlink. An element that can't be gone over stays ahead.
func (r *resolver) stretch(ctx context.Context) error {
	looked := lookAhead(ctx, r.tree, r.Path, r.ahead)
	for len(r.ahead) > 0 {
		element, rest := r.ahead[0], r.ahead[1:]
		switch {
		case element == "" || element == ".":
			r.ahead = rest
			continue
		case element == "..":
			r.Path, _ = split(r.Path)
			r.Info, r.ahead = Info{Mode: fs.ModeDir}, rest
			return nil
		case len(looked) == 0:
			return nil
		}
		l := looked[0]
		looked = looked[1:]
		path := Join(r.Path, element)
		last := atEnd(rest)
		switch {
		case l.err != nil:
			return l.err
		case l.info.Mode&fs.ModeSymlink != 0 && (r.follow || !last):
			return r.link(ctx, path)
		case !l.info.Mode.IsDir() && !last:
			return refuse(codeNotDirectory, "", "%s is no directory", printable(path))
		}
		r.Path, r.Info, r.ahead = path, l.info, rest
	}
	return nil
}

// link goes where the symlink points to that is to do.
func (r *resolver) link(ctx context.Context, link string) error {
	if len(r.Links) == maxLinks {
		return refuse(codeFailed, "", "%s: more than %d symlinks lead on from one to the next", printable(r.name), maxLinks)
	}
	target, err := r.tree.Readlink(ctx, link)
	if err != nil {
		return err
	}
	r.Links = append(r.Links, link)
	if strings.HasPrefix(target, "/") {
		r.Path = "/"
	}
	r.ahead = append(strings.Split(target, "/"), r.ahead[1:]...)
	return nil
}

// atEnd reports whether nothing follows but slashes. What a slash stands behind
// is a directory: that is for others to find out.
func atEnd(rest []string) bool {
	for _, element := range rest {
		if element != "" && element != "." {
			return false
		}
	}
	return true
}

// without returns what is known where an element could not be looked at.
func (r Real) without(elements []string, err error) (Real, error) {
	missing := errors.Is(err, fs.ErrNotExist)
	for _, element := range elements {
		switch element {
		case "", ".":
		case "..":
			r.Path, _ = split(r.Path)
			missing = false // .. of what is not there is nowhere
		default:
			r.Path = Join(r.Path, element)
		}
	}
	if r.Missing = missing; missing {
		err = nil
	}
	return r, err
}

type look struct {
	info Info
	err  error
}

// lookAhead looks at the elements up to the next "..", as if none were a symlink:
// most paths have none, and need one round trip.
func lookAhead(ctx context.Context, t Tree, dir string, elements []string) []look {
	var paths []string
	for _, element := range elements {
		if element == ".." || len(paths) == atOnce {
			break
		}
		if element != "" && element != "." {
			dir = Join(dir, element)
			paths = append(paths, dir)
		}
	}
	return lookAt(ctx, t, paths, false)
}

// lookAt returns what is at paths, in their order.
func lookAt(ctx context.Context, t Tree, paths []string, follow bool) []look {
	looked := make([]look, len(paths))
	forAll(paths, func(i int, path string) { looked[i].info, looked[i].err = t.Stat(ctx, path, follow) })
	return looked
}
