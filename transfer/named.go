package transfer

import (
	"context"
	"strings"
)

// named is what a copy was told to copy, on its way into the walk.
type named struct {
	*walk
	into   bool              // the copies go into the directory Into
	exists bool              // something is at Into
	by     map[string]string // the sources, by what their copies are called
	names  twins
}

// each hands what is at the paths to the walk. An error ends the copy: one of a
// single path, or one that concerns them all.
func (n *named) each(ctx context.Context, paths []string) error {
	for i, found := range lookAt(ctx, n.From, paths, true) {
		t, twin, err := n.task(paths[i], found)
		fatal := len(paths) == 1
		if err == nil {
			err = n.inside(ctx, t)
			fatal = fatal || t.info.Mode.IsDir()
		}
		switch {
		case err != nil && fatal:
			return err
		case err != nil:
			n.failed(ctx, t.from, t.to, err)
			continue
		}
		if err := n.start(ctx, t, twin); err != nil {
			return err
		}
	}
	return nil
}

// task says what is to be done with a source, and whether the name of its copy
// has a twin.
func (n *named) task(source string, found look) (t task, twin bool, err error) {
	t = task{from: source, info: found.info}
	switch {
	case found.err != nil:
		return t, false, found.err
	case t.info.Mode.IsDir() && !n.Recursive:
		return t, false, refuse(codeIsDirectory, "-r copies directories", "%s is a directory", Show(n.From.About().Name, source))
	}
	t.to, t.fresh = n.Into, !n.exists && !n.into
	name := base(source)
	if !n.into || name == "" {
		return t, false, nil
	}
	t.to = Join(n.Into, name)
	if other, ok := n.by[name]; ok {
		return t, false, n.isTaken(t, other)
	}
	n.by[name] = source
	return t, n.names.add(name) > 1, nil
}

// start hands a task to the walk. Into is made only now: for sources that are not
// there it would stay, and be empty.
func (n *named) start(ctx context.Context, t task, twin bool) error {
	if n.into && !n.exists {
		if err := n.makeInto(ctx); err != nil {
			return err
		}
		n.exists = true
	}
	if t.info.Mode.IsRegular() && n.Watch != nil {
		n.Watch.Found(t.info.Size)
	}
	if twin {
		n.hold(t)
	} else {
		n.add(t)
	}
	if n.taken != nil {
		n.work(ctx)
	}
	return nil
}

// take notes what the source of a file or symlink is, and refuses another one
// that would be called the same.
func (r *run) take(t task) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken == nil {
		return nil
	}
	if other, ok := r.taken[t.to]; ok {
		return r.isTaken(t, other)
	}
	r.taken[t.to] = t.from
	return nil
}

func (r *run) isTaken(t task, other string) error {
	return refuse(codeExists, "copy them into different directories",
		"%s is the copy of %s: %s does not take its place", Show(r.To.About().Name, t.to), printable(other), printable(t.from))
}

// base returns what a copy of path is called: nothing for a path that has no
// name of its own.
func base(source string) string {
	_, name := split(strings.TrimRight(source, "/"))
	if name == "." || name == ".." {
		return ""
	}
	return name
}

// sources returns the paths, with patterns expanded.
func (r *run) sources(ctx context.Context) ([]string, error) {
	var all []string
	for _, p := range r.Paths {
		if !r.Glob || !strings.ContainsAny(p, "*?[") {
			all = append(all, p)
			continue
		}
		found, err := expand(ctx, r.From, p)
		if err != nil {
			return nil, err
		}
		for _, source := range found {
			if name := base(source); r.excluded(name, name) {
				r.count(&r.report.Skipped, 1)
				continue
			}
			all = append(all, source)
		}
	}
	return all, nil
}
