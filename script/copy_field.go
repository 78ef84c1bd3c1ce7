package script

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"gateway/hosts"
	"gateway/internal/phrase"
	"gateway/transfer"
)

// A Copy is the files that a step copies. In Src, Dst and Exclude, ${{ NAME }}
// stands for a variable.
type Copy struct {
	// Fetch: from the host; otherwise to it.
	Fetch bool
	// Src and Dst are as they are written. On this machine a path begins where
	// the script is; on the host, where the session is.
	Src, Dst string

	Recursive, Preserve, Checksum, Resume bool
	// Mode is the permissions of every file; nil: those of the source.
	Mode *fs.FileMode
	// Links is what becomes of symlinks in directories.
	Links transfer.Links
	// Exclude are patterns, as in [transfer.Copy].
	Exclude []string

	srcAt, dstAt Place
}

// verb is the key of the step.
func (c *Copy) verb() string {
	if c.Fetch {
		return "fetch"
	}
	return "copy"
}

// String names it as it is written.
func (c *Copy) String() string { return c.verb() + " " + c.Src + " -> " + c.Dst }

var copyFields = []field[Copy]{
	{"src", "what is copied: of copy here, beside the script; of fetch on the host, where *, ? and [] may stand for several", oneLine, func(r *reader, n *yaml.Node, c *Copy) bool {
		c.srcAt = Place{n.Line, n.Column}
		return r.copyPath(n, &c.Src)
	}},
	{"dst", "where to, of copy on the host and of fetch here: a directory to copy into, or what the copy is called", oneLine, func(r *reader, n *yaml.Node, c *Copy) bool {
		c.dstAt = Place{n.Line, n.Column}
		return r.copyPath(n, &c.Dst)
	}},
	set("recursive", "copy directories with all that is in them", boolean, (*reader).boolean, func(c *Copy) *bool { return &c.Recursive }),
	set("mode", "the permissions of every file, such as 0644", schema{"type": []string{"string", "integer"}, "pattern": `^(0o)?0*[0-7]{1,3}$`}, (*reader).mode, func(c *Copy) **fs.FileMode { return &c.Mode }),
	set("preserve", "keep permissions and times", boolean, (*reader).boolean, func(c *Copy) *bool { return &c.Preserve }),
	set("links", "what becomes of symlinks in directories", words(transfer.LinkWords...), (*reader).links, func(c *Copy) *transfer.Links { return &c.Links }),
	set("exclude", "patterns of what is left out: of a name, or with a slash of the path below src", schema{"type": "array", "items": oneLine, "minItems": 1}, (*reader).exclude, func(c *Copy) *[]string { return &c.Exclude }),
	set("checksum", "leave alone what is equal already", boolean, (*reader).boolean, func(c *Copy) *bool { return &c.Checksum }),
	set("resume", "go on with large files that were cut short", boolean, (*reader).boolean, func(c *Copy) *bool { return &c.Resume }),
}

// copyNeeds are the keys that a copy must have.
var copyNeeds = []string{"src", "dst"}

// kinds are the keys of which a step has one; withCopy are those that copy and
// fetch may have beside them.
var (
	kinds    = []string{"run", "copy", "fetch"}
	withCopy = []string{"name", "when", "until", "retry", "idempotent", "timeout", "on_fail", "cwd"}
)

// keysOf returns the keys that a step of a kind may have.
func keysOf(kind string) []string {
	if kind != "run" {
		return append([]string{kind}, withCopy...)
	}
	var keys []string
	for _, f := range stepFields {
		if f.key == "run" || !slices.Contains(kinds, f.key) {
			keys = append(keys, f.key)
		}
	}
	return keys
}

func (r *reader) copy(n *yaml.Node, s *Step, fetch bool) bool {
	s.Copy = &Copy{Fetch: fetch}
	return object(r, n, copyFields, s.Copy) && r.needs(n, copyNeeds, s.Copy.verb()+": {src: PATH, dst: PATH}")
}

func (r *reader) copyPath(n *yaml.Node, to *string) (ok bool) {
	*to, ok = r.template(n)
	return ok
}

func (r *reader) mode(n *yaml.Node) (*fs.FileMode, bool) {
	s, ok := r.text(n)
	if !ok {
		return nil, false
	}
	bits, err := strconv.ParseUint(strings.TrimPrefix(s, "0o"), 8, 9)
	if err != nil {
		return nil, r.fail(n, `mode: "0644"`, "%s is no mode such as 0644", brief(s))
	}
	return new(fs.FileMode(bits)), true
}

func (r *reader) links(n *yaml.Node) (transfer.Links, bool) {
	word, ok := r.text(n)
	links, err := transfer.ParseLinks(word)
	if ok && err != nil {
		return links, r.fail(n, hosts.DidYouMean(word, "", transfer.LinkWords), "%v", err)
	}
	return links, ok
}

func (r *reader) exclude(n *yaml.Node) ([]string, bool) {
	items, all := r.sequence(n)
	if all && len(items) == 0 {
		return nil, r.fail(n, "leave the key out", "is empty")
	}
	var patterns []string
	for _, item := range items {
		s, ok := r.template(item)
		if ok {
			shape := shapeOf(s)
			if _, err := phrase.Glob(shape, ""); err != nil || strings.Trim(shape, "/") == "" {
				ok = r.fail(item, `such as .git or "*.tmp"`, "%s is no pattern", brief(s))
			}
		}
		patterns, all = append(patterns, s), all && ok
	}
	return patterns, all
}

// checkKind checks that a step does one thing, and that its keys go with it.
func (r *reader) checkKind(n, node *yaml.Node) bool {
	kind, all := "", true
	for _, key := range kinds {
		at, _ := find(node, key)
		switch {
		case at == nil:
		case kind == "":
			kind = key
		default:
			all = r.fail(at, "make two steps of it", "%s and %s in one step", kind, key)
		}
	}
	switch {
	case kind == "":
		return r.fail(n, "say what it does: run: TEXT, copy: {src: …, dst: …} or fetch: {src: …, dst: …}", "has none of run, copy and fetch")
	case kind == "run" || !all:
		return all
	}
	allowed := keysOf(kind)
	for _, f := range stepFields {
		if at, _ := find(node, f.key); at != nil && !slices.Contains(allowed, f.key) {
			hint := "beside " + kind + " there may be " + strings.Join(withCopy, ", ")
			if f.key == "sudo" {
				hint = "copy it to where the login may write, and move it in a step with run and sudo"
			}
			all = r.fail(at, hint, "%s does not go with %s", f.key, kind)
		}
	}
	return all
}
