package transfer

import (
	"context"
	"path"
	"strings"
)

// inside refuses to copy a directory into itself, where it would find itself
// without end, and a file onto itself.
func (r *run) inside(ctx context.Context, t task) error {
	_, here := r.From.(*Local)
	_, too := r.To.(*Local)
	if here != too || !here && r.From.About() != r.To.About() {
		return r.insideUnderAnotherName(ctx, t)
	}
	from, to := leads(ctx, r.From, t.from), leads(ctx, r.To, t.to)
	name := Show(r.From.About().Name, t.from)
	switch {
	case !t.info.Mode.IsDir() && to == from:
		return refuse(codeFailed, "", "%s and %s are the same file", name, printable(t.to))
	case t.info.Mode.IsDir() && within(to, from):
		return refuse(codeFailed, "", "%s cannot be copied into itself", name)
	}
	return nil
}

// insideUnderAnotherName is inside where two names may be those of one machine,
// which only the machine can tell: a part that is made at the target is there at
// the source, too. It is made where the paths would be one in the other.
func (r *run) insideUnderAnotherName(ctx context.Context, t task) error {
	if !t.info.Mode.IsDir() || r.DryRun {
		return nil
	}
	from := leads(ctx, r.From, t.from)
	for dir := leads(ctx, r.To, t.to); within(dir, from); dir = path.Dir(dir) {
		part, err := r.probe(ctx, Join(dir, base(t.from)))
		switch {
		case err != nil && dir == from: // as "/" and ".", it may be its own parent
			return nil
		case err != nil: // it is still to be made
			continue
		}
		defer part.Abandon(false)
		if _, err := r.From.Stat(ctx, part.Path(), false); err != nil {
			return nil
		}
		return refuse(codeFailed, "", "%s cannot be copied into itself: %s is the same machine",
			Show(r.From.About().Name, t.from), r.To.About().Name)
	}
	return nil
}

// probe makes an empty part at the target.
func (r *run) probe(ctx context.Context, name string) (Part, error) {
	part, err := r.To.Create(ctx, Spec{Path: name, Perm: 0o600})
	if err != nil {
		return nil, err
	}
	if _, err := part.Finish(ctx, Times{}); err != nil {
		part.Abandon(false)
		return nil, err
	}
	return part, nil
}

// within reports whether a clean path is another one, or below it.
func within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// leads returns where a path of a machine leads behind its symlinks, as far as
// that can be looked at.
func leads(ctx context.Context, m Machine, name string) string {
	if name = rooted(ctx, m, name); !path.IsAbs(name) {
		return path.Clean(name)
	}
	real, _ := Resolve(ctx, m, name, true) // the rest of the path is as it was written
	return real.Path
}

// rooted returns a path of a machine from its root on, if the machine says where a
// relative one begins.
func rooted(ctx context.Context, m Machine, name string) string {
	if path.IsAbs(name) {
		return name
	}
	home, err := m.Home(ctx)
	if err != nil {
		return name
	}
	return home + "/" + name
}
