package mcpserver

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"gateway/gateway"
	"gateway/hosts"
	"gateway/transfer"
	"gateway/transport"
)

// rules are a host's [hosts.Files], as they are to be understood there.
type rules struct {
	files       hosts.Files
	allow, deny []rule
}

// A rule is one pattern. What stands before its first glob is a directory of the
// host, which may be reached by symlinks: real is where it is.
type rule struct {
	pattern       string   // as written
	written, real string   // absolute
	globs         string   // what follows
	ends          []string // of the ways from / over the symlinks to real
}

// covers reports whether the rule is about a path.
func (r rule) covers(name string) bool {
	return under(r.written, r.globs, name) || under(r.real, r.globs, name)
}

// folded is the rule for names that are folded.
func (r rule) folded() rule {
	return rule{r.pattern, fold(r.written), fold(r.real), fold(r.globs), nil}
}

// fold gives one form to all names that [strings.EqualFold] takes for the same.
// Lower case alone leaves ſ and ς apart from s and σ, whose upper case is theirs.
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// allows reports whether a file that really is at a path is one of the rule's.
func (r rule) allows(real string) bool { return under(r.real, r.globs, real) }

// leadsThrough reports whether one comes through a directory or a symlink on the
// way to the rule's files.
func (r rule) leadsThrough(name string) bool {
	rest, ok := below(r.real, name)
	return ok && hosts.Above(r.globs, rest) || slices.ContainsFunc(r.ends, func(end string) bool { return under(name, "", end) })
}

func under(dir, globs, name string) bool {
	rest, ok := below(dir, name)
	return ok && hosts.Covers(globs, rest)
}

// below returns what follows dir in the path of something there, or of itself.
func below(dir, name string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(name, strings.TrimRight(dir, "/"))
	return rest, ok && (rest == "" || rest[0] == '/')
}

// rulesOn asks a machine where the directories of a host's rules are. What can't
// be reached stays as it was written: nothing behind it can be reached either.
// Any other error may pass, and what the rule is about be there the next moment;
// a loop of symlinks does not, and no file is touched until it is gone.
func rulesOn(ctx context.Context, m *machine, files hosts.Files) (rules, error) {
	r := rules{files: files, allow: make([]rule, len(files.Allow)), deny: make([]rule, len(files.Deny))}
	var all errgroup.Group
	resolve := func(into *rule, pattern string) {
		all.Go(func() error {
			dir, globs := pattern, ""
			if i := strings.IndexAny(dir, `*?[\`); i >= 0 { // those in the home's own name are none
				i = strings.LastIndexByte(dir[:i], '/')
				dir, globs = dir[:i+1], dir[i+1:]
			}
			dir = m.absolute(dir)
			real, err := transfer.Resolve(ctx, m, dir, true)
			switch gateway.Code(err) {
			case "", "file.not_found", "file.permission", "file.not_directory":
			default:
				return fmt.Errorf("file: where the rule %s leads: %w", transfer.Show("", pattern), err)
			}
			*into = rule{pattern, path.Clean(dir), real.Path, globs, append(real.Links, path.Clean(dir), real.Path)}
			return nil
		})
	}
	for i, pattern := range files.Allow {
		resolve(&r.allow[i], pattern)
	}
	for i, pattern := range files.Deny {
		resolve(&r.deny[i], pattern)
	}
	if err := all.Wait(); err != nil {
		return rules{}, err
	}
	return r, nil
}

// denies returns the pattern that forbids a path which was asked for by one of
// these names; the first one is where it really is. Case does not count: a disk may
// have the same file under either. Nor does it whether a copy has its name yet.
func (r rules) denies(names ...string) (pattern string, ok bool) {
	for _, name := range names {
		for _, rule := range r.deny {
			folded := rule.folded()
			if rule.covers(name) || folded.covers(fold(name)) || folded.covers(transfer.Whole(fold(name))) {
				return rule.pattern, true
			}
		}
	}
	return "", false
}

// check returns an error for what must not be touched. asked is how a call names
// it, real where that leads.
func (r rules) check(host, asked, real string) error {
	what := transfer.Show(host, asked)
	if real != path.Clean(asked) {
		what += " leads to " + transfer.Show("", real) + ", which"
	} else {
		what += ":"
	}
	return r.judge(what, func(r rule) bool { return r.allows(real) }, real, path.Clean(asked))
}

// checkWay returns an error for what must not even be gone through. asked is what
// a call names, name what its path comes to.
func (r rules) checkWay(host, asked, name string) error {
	what := transfer.Show(host, asked) + " leads through " + transfer.Show("", name) + ", which"
	return r.judge(what, func(r rule) bool { return r.allows(name) || r.leadsThrough(name) }, name)
}

// judge returns an error for what has one of these names if it is forbidden, or
// if there are rules that allow something, and not this.
func (r rules) judge(what string, allowed func(rule) bool, names ...string) error {
	pattern, denied := r.denies(names...)
	switch {
	case denied:
		what += " the inventory's files.deny forbids (" + pattern + ")"
	case len(r.allow) > 0 && !slices.ContainsFunc(r.allow, allowed):
		what += " nothing in the inventory's files.allow covers"
	default:
		return nil
	}
	hint := "a person sets that in the inventory"
	if len(r.files.Allow) > 0 {
		hint = "allowed is " + strings.Join(r.files.Allow, ", ") + ": " + hint
	}
	return &transport.Error{Code: "file.denied", Message: "file: " + what, Hint: hint}
}
