package transfer

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"gateway/internal/phrase"
	"gateway/transport"
)

// maxMatches bounds what a pattern stands for.
const maxMatches = 100_000

// expand returns what a pattern stands for on a machine, in order. As in a shell, only a
// dot matches a dot at the beginning of a name, and what matches nothing stands for itself.
func expand(ctx context.Context, on Tree, pattern string) ([]string, error) {
	_, bad := phrase.Glob(pattern, "")
	if bad == nil {
		if found, err := matches(ctx, on, pattern); err != nil || len(found) > 0 {
			return found, err
		}
	}
	_, err := on.Stat(ctx, pattern, false)
	switch {
	case err == nil:
		return []string{pattern}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case bad != nil:
		return nil, refuse(codeNotFound, "a [ wants its ], and a class is written as in [0-9]", "%s: nothing has that name, and it is no pattern", printable(pattern))
	}
	return nil, &transport.Error{Code: codeNotFound, Message: "transfer: nothing there is called " + printable(pattern), Err: fs.ErrNotExist}
}

func matches(ctx context.Context, on Tree, pattern string) (found []string, err error) {
	found = []string{""}
	rest := strings.TrimRight(pattern, "/")
	if strings.HasPrefix(rest, "/") {
		found, rest = []string{"/"}, strings.TrimLeft(rest, "/")
	}
	for element := range strings.SplitSeq(rest, "/") {
		if element == "" {
			continue
		}
		if found, err = expandElement(ctx, on, found, element); err != nil {
			return nil, err
		}
	}
	if strings.HasSuffix(pattern, "/") {
		return present(ctx, on, found, true)
	}
	return found, nil
}

func expandElement(ctx context.Context, on Tree, dirs []string, element string) ([]string, error) {
	var found []string
	if !strings.ContainsAny(element, `*?[\`) {
		for _, dir := range dirs {
			found = append(found, Join(dir, element))
		}
		return present(ctx, on, found, false)
	}
	for _, dir := range dirs {
		begin := len(found)
		err := on.List(ctx, dir, func(info Info) error {
			if strings.HasPrefix(info.Name, ".") && !strings.HasPrefix(element, ".") {
				return nil
			}
			if ok, _ := phrase.Glob(element, info.Name); ok { // the pattern is a good one
				found = append(found, Join(dir, info.Name))
			}
			if len(found) > maxMatches {
				return refuse(codeFailed, "", "%s stands for more than %d files", printable(element), maxMatches)
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			if info, failed := on.Stat(ctx, dir, true); failed != nil || info.Mode.IsDir() {
				return nil, err
			}
		}
		slices.Sort(found[begin:])
	}
	return found, nil
}

// present returns those of the paths at which something can be seen; directories: at which
// one is, or what leads to one.
func present(ctx context.Context, on Tree, paths []string, directories bool) ([]string, error) {
	var found []string
	for i, look := range lookAt(ctx, on, paths, directories) {
		switch {
		case look.err == nil && (!directories || look.info.Mode.IsDir()):
			found = append(found, paths[i])
		case Lost(look.err):
			return nil, look.err
		}
	}
	return found, nil
}
