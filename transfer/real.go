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
	r := Real{Path: "/"}
	todo := strings.Split(name, "/")
	for links := 0; ; {
		looked := lookAhead(ctx, t, r.Path, todo)
		for len(todo) > 0 {
			element := todo[0]
			if element == "" || element == "." {
				todo = todo[1:]
				continue
			}
			if element == ".." {
				r.Path, _ = split(r.Path)
				r.Info = Info{Mode: fs.ModeDir}
				todo = todo[1:]
				break
			}
			if len(looked) == 0 {
				break
			}
			l := looked[0]
			looked = looked[1:]
			if l.err != nil {
				return r.without(todo, l.err)
			}
			rest := todo[1:]
			if l.info.Mode&fs.ModeSymlink != 0 && (follow || !atEnd(rest)) {
				if links++; links > maxLinks {
					return r.without(todo, refuse(codeFailed, "", "%s: more than %d symlinks lead on from one to the next", printable(name), maxLinks))
				}
				link := Join(r.Path, element)
				target, err := t.Readlink(ctx, link)
				if err != nil {
					return r.without(todo, err)
				}
				r.Links = append(r.Links, link)
				if strings.HasPrefix(target, "/") {
					r.Path = "/"
				}
				todo = append(strings.Split(target, "/"), rest...)
				break
			}
			if !l.info.Mode.IsDir() && !atEnd(rest) {
				return r.without(todo, refuse(codeNotDirectory, "", "%s is no directory", printable(Join(r.Path, element))))
			}
			r.Path, r.Info, todo = Join(r.Path, element), l.info, rest
		}
		if len(todo) == 0 {
			break
		}
	}
	if r.Path == "/" {
		info, err := t.Stat(ctx, "/", true)
		r.Info = info
		return r, err
	}
	_, r.Info.Name = split(r.Path)
	if r.Info.Modified.IsZero() { // it was left by a ..
		info, err := t.Stat(ctx, r.Path, false)
		r.Info = info
		return r, err
	}
	return r, nil
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
func (r Real) without(todo []string, err error) (Real, error) {
	missing := errors.Is(err, fs.ErrNotExist)
	for _, element := range todo {
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
func lookAhead(ctx context.Context, t Tree, dir string, todo []string) []look {
	var paths []string
	for _, element := range todo {
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
