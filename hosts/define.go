package hosts

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"gateway/internal/document"
)

// fromDefaults ends the origin of what the defaults of a file say.
const fromDefaults = " (defaults)"

// A place is where something was defined.
type place struct {
	file string
	line int
}

// at says where, for the end of a message.
func (p place) at() string {
	if p.file == "" {
		return ""
	}
	return fmt.Sprintf(" at %s:%d", p.file, p.line)
}

// A block is the fields that a host, a group or the defaults of a file set.
type block struct {
	Host
	file  string
	lines map[string]int
}

// A definition is a host as an inventory file defines it.
type definition struct {
	place
	name     string
	block    *block // shared by the names of a range
	defaults *block // may be nil
}

// A groupDefinition is a group as an inventory file defines it.
type groupDefinition struct {
	place
	name          string
	block         *block
	hosts, groups []reference
}

// A reference names a host or a group.
type reference struct {
	place
	name string
}

// A builder gathers the definitions of all files.
type builder struct {
	problems   document.Problems
	hosts      []*definition // localhost first
	groups     []*groupDefinition
	hostNames  map[string]*definition // by name in lower case
	groupNames map[string]*groupDefinition
}

func newBuilder() *builder {
	here := &definition{name: localhost}
	return &builder{
		hosts:      []*definition{here},
		hostNames:  map[string]*definition{localhost: here},
		groupNames: make(map[string]*groupDefinition),
	}
}

// file reads one file's definitions.
func (b *builder) file(name string, data []byte) {
	dir := filepath.Dir(name)
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	r := &reader{file: name, dir: dir, problems: &b.problems}
	root := r.document(data)
	if root == nil || root.ShortTag() == "!!null" {
		return
	}
	// The defaults may stand below the hosts that they are for.
	defaults := &block{file: name}
	for key, section := range r.mapping(root, "") {
		switch key {
		case "defaults":
			*defaults = *b.block(r, section.value, "defaults", fromDefaults, nil)
		case "groups":
			b.groupSection(r, section.value)
		case "hosts":
			b.hostSection(r, section.value, defaults)
		default:
			words := []string{"defaults", "groups", "hosts"}
			r.fail(section.key, DidYouMean(key, "", words), "unknown key %s: an inventory has %s", brief(key), strings.Join(words, ", "))
		}
	}
}

func (b *builder) hostSection(r *reader, n *yaml.Node, defaults *block) {
	if r.null(n) {
		return
	}
	r.subject = "hosts"
	for key, e := range r.mapping(n, "") {
		names, ok := r.names(e.key, key)
		if !ok {
			continue
		}
		fields := b.block(r, e.value, "host "+brief(key), "", nil)
		for _, name := range names {
			b.host(r, &definition{place{r.file, e.key.Line}, name, fields, defaults}, e.key)
		}
	}
}

func (b *builder) host(r *reader, d *definition, at *yaml.Node) {
	r.subject = ""
	before := b.hostNames[strings.ToLower(d.name)]
	switch {
	case d.name == "all":
		r.fail(at, "", "all is every host: no host can have that name")
	case before == nil && len(b.hosts) > maxNames:
		r.fail(at, "", "more than %d hosts", maxNames)
	case before == nil:
		b.hostNames[strings.ToLower(d.name)] = d
		b.hosts = append(b.hosts, d)
	case before.name != d.name:
		r.fail(at, "", "host %s differs only in case from %s%s", d.name, before.name, before.at())
	case before.block != nil:
		r.fail(at, "fields that hosts share go into a group", "host %s is already defined%s", d.name, before.at())
	default: // localhost, refined
		// The defaults are about reaching other machines, as another user.
		before.place, before.block = d.place, d.block
	}
}

func (b *builder) groupSection(r *reader, n *yaml.Node) {
	if r.null(n) {
		return
	}
	r.subject = "groups"
	for key, e := range r.mapping(n, "") {
		if key == "all" || !nameForm.MatchString(key) {
			r.fail(e.key, "", "%s is not a name for a group", brief(key))
			continue
		}
		g := &groupDefinition{place: place{r.file, e.key.Line}, name: key}
		g.block = b.block(r, e.value, "group "+key, " (group "+key+")", map[string]func(entry){
			"hosts":  func(e entry) { g.hosts = r.references(e.value, g.hosts) },
			"groups": func(e entry) { g.groups = r.references(e.value, g.groups) },
		})
		r.subject = ""
		before := b.groupNames[strings.ToLower(key)]
		switch {
		case before == nil:
			b.groupNames[strings.ToLower(key)] = g
			b.groups = append(b.groups, g)
		case before.name != key:
			r.fail(e.key, "", "group %s differs only in case from %s%s", key, before.name, before.at())
		default:
			r.fail(e.key, "", "group %s is already defined%s", key, before.at())
		}
	}
}

// references reads the members of a group, with ranges spelled out.
func (r *reader) references(n *yaml.Node, list []reference) []reference {
	lines, _ := listOf(func(r *reader, n *yaml.Node) ([]reference, bool) {
		s, ok := r.text(n)
		if !ok {
			return nil, false
		}
		names, ok := r.names(n, s)
		var members []reference
		for _, name := range names {
			members = append(members, reference{place{r.file, n.Line}, name})
		}
		return members, ok
	})(r, n)
	for _, members := range lines {
		// Every name of all files is a host or group that exists, or an error:
		// a longer list repeats itself.
		if list = append(list, members...); len(list) > 2*maxNames {
			r.fail(n, "", "more than %d members", 2*maxNames)
			return nil
		}
	}
	return list
}

// names spells out a name that may hold ranges.
func (r *reader) names(n *yaml.Node, word string) ([]string, bool) {
	pattern, err := parseRange(word)
	if err != nil {
		return nil, r.fail(n, "", "%s: %v", brief(word), err)
	}
	for _, literal := range pattern.literals {
		if strings.ContainsAny(literal, "*?") {
			return nil, r.fail(n, "write a range such as web[01-20]", "%s: no patterns here", brief(word))
		}
	}
	if r.budget -= pattern.count(); r.spent() {
		return nil, r.fail(n, "", "%s: more than %d names in the file", brief(word), maxNames)
	}
	var names []string
	for name := range pattern.names() {
		if !nameForm.MatchString(name) {
			return nil, r.fail(n, "letters, digits and . _ -, starting with a letter or digit", "%s is not a host name", brief(name))
		}
		names = append(names, name)
	}
	return names, true
}

// null reports whether a key stands there without a value.
func (r *reader) null(n *yaml.Node) bool {
	node := r.resolve(n)
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

// block reads the fields of a host, a group or the defaults. Keys of extra are
// handed to its functions instead.
func (b *builder) block(r *reader, n *yaml.Node, subject, layer string, extra map[string]func(entry)) *block {
	into := &block{file: r.file, lines: make(map[string]int)}
	r.subject, r.layer = subject, layer
	if !r.null(n) {
		r.fields(n, into, "", extra)
	}
	r.subject = subject
	if into.has("jump") && into.has("proxy_command") && len(into.Jump) > 0 {
		r.fail(&yaml.Node{Line: into.lines["proxy_command"]}, "", "jump and proxy_command exclude each other")
	}
	r.subject, r.layer = "", ""
	return into
}

// fields reads a mapping whose keys, after prefix, are those of [fields].
func (r *reader) fields(n *yaml.Node, into *block, prefix string, extra map[string]func(entry)) {
	subject := r.subject
	hint := ""
	switch keys := keysOf(prefix, extra); {
	case extra["hosts"] != nil:
		hint = "a group is {hosts: [NAME, ...]}"
	case prefix != "":
		hint = "its keys are " + strings.Join(keys, ", ")
	}
	for word, e := range r.mapping(n, hint) {
		key := prefix + word
		r.subject = subject + ": " + key
		f, known := fieldsByKey[key]
		switch {
		case prefix == "" && extra[word] != nil:
			extra[word](e)
		case known && f.read != nil && strings.Count(key, ".") == strings.Count(prefix, "."):
			if f.read(r, e.value, &into.Host) {
				into.set(key, r.origin(e.key))
				into.lines[key] = e.key.Line
			}
		case prefix == "" && slices.Contains(sections, word):
			r.fields(e.value, into, word+".", nil)
		default:
			r.subject = subject
			r.fail(e.key, suggestKey(word, prefix, extra), "unknown key %s", brief(key))
		}
	}
}

// sections are the keys of a host that hold a mapping of further keys.
var sections = []string{"sudo", "files"}

// keysOf returns the keys that a mapping may have.
func keysOf(prefix string, extra map[string]func(entry)) []string {
	var keys []string
	if prefix == "" {
		keys = append(keys, sections...)
	}
	for _, f := range fields {
		if rest, ok := strings.CutPrefix(f.key, prefix); ok && f.read != nil && !strings.Contains(rest, ".") {
			keys = append(keys, rest)
		}
	}
	keys = slices.AppendSeq(keys, maps.Keys(extra))
	slices.Sort(keys)
	return keys
}

// suggestKey names the keys that are near an unknown one.
func suggestKey(word, prefix string, extra map[string]func(entry)) string {
	lower := strings.ToLower(word)
	if key, ok := otherWords[lower]; ok && prefix == "" {
		return "did you mean " + key + "?"
	}
	return DidYouMean(word, "", keysOf(prefix, extra))
}
