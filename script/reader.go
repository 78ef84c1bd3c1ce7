package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"gateway/hosts"
	"gateway/internal/document"
	"gateway/internal/phrase"
)

// maxFile is the largest script, in bytes; maxNodes bounds what aliases make of it.
const (
	maxFile  = 1 << 20
	maxNodes = 1 << 17
)

// A reader turns the YAML nodes of a script into values and notes what is wrong
// with them. It walks the nodes itself, because only they know their places.
type reader struct {
	file     string
	dir      string // where relative paths start
	problems document.Problems
	subject  string // "step 2 (migrate): timeout", before a message
	budget   int    // how many nodes may still be looked at

	names      map[string]Place // variables, secrets, and what the steps so far register
	secrets    map[string]bool
	registered map[string]bool
	later      map[string]Place // what any step registers
	stepNames  map[string]int   // their lines
	warnings   []string
}

// fail notes a problem and returns false, the answer of every method here that
// could not read its value.
func (r *reader) fail(n *yaml.Node, hint, format string, args ...any) bool {
	message := fmt.Sprintf(format, args...)
	if r.subject != "" {
		message = r.subject + ": " + message
	}
	r.problems.Add(&Error{Code: codeInvalid, File: r.file, Line: n.Line, Column: n.Column, Message: message, Hint: hint})
	return false
}

// document parses data, one YAML document, and returns its root; nil if it is
// empty, or not one.
func (r *reader) document(data []byte) *yaml.Node {
	root, wrong := document.Parse(codeInvalid, r.file, data, maxFile)
	if wrong != nil {
		wrong.Line, wrong.Column = max(wrong.Line, 1), max(wrong.Column, 1)
		r.problems.Add(wrong)
		return nil
	}
	r.budget = maxNodes
	return root
}

// resolve returns the node that n is or, as an alias, stands for.
func (r *reader) resolve(n *yaml.Node) *yaml.Node {
	if r.budget--; r.budget == 0 {
		r.fail(n, "", "aliases make the file too large")
	}
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// An entry is one key of a mapping with its value.
type entry struct {
	name       string
	key, value *yaml.Node
}

// mapping returns the entries of a mapping. What is not one, and a key that
// comes twice, is a problem; the hint is for the former.
func (r *reader) mapping(n *yaml.Node, hint string) ([]entry, bool) {
	node := r.resolve(n)
	if node.Kind != yaml.MappingNode {
		return nil, r.fail(n, hint, "must be a mapping of keys to values%s", but(node))
	}
	var entries []entry
	lines := make(map[string]int)
	all := true
	for pair := range slices.Chunk(node.Content, 2) {
		if r.budget <= 0 {
			return nil, false
		}
		key := r.resolve(pair[0])
		switch {
		case key.ShortTag() == "!!merge":
			all = r.fail(pair[0], "write the keys out, or use an alias for a whole value", "<< is not supported")
		case key.Kind != yaml.ScalarNode:
			all = r.fail(pair[0], "", "a key must be plain text")
		case lines[key.Value] != 0:
			all = r.fail(pair[0], "", "%s is already at line %d", brief(key.Value), lines[key.Value])
		default:
			lines[key.Value] = pair[0].Line
			entries = append(entries, entry{key.Value, pair[0], pair[1]})
		}
	}
	return entries, all
}

// sequence returns the items of a list.
func (r *reader) sequence(n *yaml.Node) ([]*yaml.Node, bool) {
	node := r.resolve(n)
	if node.Kind != yaml.SequenceNode {
		return nil, r.fail(n, "put - before each item", "must be a list%s", but(node))
	}
	return node.Content, true
}

// find returns a key of a mapping and its value; nil if it is not there.
func find(n *yaml.Node, key string) (at, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

func has(n *yaml.Node, key string) bool {
	at, _ := find(n, key)
	return at != nil
}

// needs checks that a mapping has some keys.
func (r *reader) needs(n *yaml.Node, keys []string, hint string) bool {
	all := true
	for _, key := range keys {
		if !has(r.resolve(n), key) {
			all = r.fail(n, hint, "has no %s", key)
		}
	}
	return all
}

// object reads a mapping whose keys are fields.
func object[T any](r *reader, n *yaml.Node, fields []field[T], to *T) bool {
	var keys []string
	for _, f := range fields {
		keys = append(keys, f.key)
	}
	entries, all := r.mapping(n, "its keys are "+strings.Join(keys, ", "))
	subject := r.subject
	defer func() { r.subject = subject }()
	byKey := make(map[string]entry, len(entries))
	for _, e := range entries {
		byKey[e.name] = e
		if !slices.Contains(keys, e.name) {
			all = r.fail(e.key, suggest(e.name, keys), "unknown key %s", brief(e.name))
		}
	}
	// In the order of the table: what the file declares may stand behind its use.
	for _, f := range fields {
		if e, ok := byKey[f.key]; ok {
			r.subject = f.key
			if subject != "" {
				r.subject = subject + ": " + f.key
			}
			all = f.read(r, e.value, to) && all
		}
	}
	return all
}

// otherWords are what other tools call our keys.
var otherWords = map[string]string{
	"shell": "run", "command": "run", "cmd": "run", "script": "run", "exec": "run",
	"environment": "env", "become": "sudo", "become_user": "sudo", "user": "sudo",
	"working-directory": "cwd", "workdir": "cwd", "chdir": "cwd", "dir": "cwd",
	"if": "when", "unless": "when", "ignore_errors": "on_fail", "continue-on-error": "on_fail", "allow_failure": "on_fail",
	"retries": "retry", "delay": "retry", "attempts": "retry", "finally": "always", "after": "always", "after_script": "always",
	"upload": "copy", "put": "copy", "download": "fetch", "get": "fetch", "source": "src", "from": "src", "path": "src", "dest": "dst", "destination": "dst", "target": "dst", "to": "dst",
	"permissions": "mode", "ignore": "exclude", "id": "register", "tasks": "steps", "jobs": "steps", "timeout-minutes": "timeout", "variables": "vars",
	"exit_code": "exit", "status": "exit", "rc": "exit", "regex": "matches", "expect": "answer", "responses": "answer",
}

func suggest(name string, keys []string) string {
	if hint := hosts.DidYouMean(name, "", keys); hint != "" {
		return hint
	}
	if other := otherWords[name]; slices.Contains(keys, other) {
		return "did you mean " + other + "?"
	}
	if name == "hosts" || name == "on" {
		return "the hosts are named on the command line: --on SELECTOR"
	}
	return "one of " + strings.Join(keys, ", ")
}

// scalar reads a single value as text, which may be empty or of many lines.
func (r *reader) scalar(n *yaml.Node) (string, bool) {
	node := r.resolve(n)
	switch {
	case node.Kind != yaml.ScalarNode || document.Tagged(node):
		return "", r.fail(n, "", "must be a single value%s", but(node))
	case node.ShortTag() == "!!null":
		return "", r.fail(n, `write "" for an empty text`, "has no value")
	case strings.ContainsRune(node.Value, 0):
		return "", r.fail(n, "", "holds a NUL byte, which no shell can read")
	}
	return node.Value, true
}

// text reads a scalar that is neither empty nor more than one line.
func (r *reader) text(n *yaml.Node) (string, bool) {
	s, ok := r.scalar(n)
	switch {
	case !ok:
		return "", false
	case strings.TrimSpace(s) == "":
		return "", r.fail(n, "leave the key out", "is empty")
	case strings.ContainsAny(s, "\n\r"):
		return "", r.fail(n, "", "must be one line")
	}
	return s, true
}

func (r *reader) boolean(n *yaml.Node) (bool, bool) {
	s, ok := r.text(n)
	if ok && s != "true" && s != "false" {
		return false, r.fail(n, "", "%s is neither true nor false", brief(s))
	}
	return s == "true", ok
}

// whole reads a whole number within bounds.
func (r *reader) whole(n *yaml.Node, low, high int) (int, bool) {
	s, ok := r.text(n)
	if !ok {
		return 0, false
	}
	number, err := strconv.Atoi(s)
	if err != nil || number < low || number > high {
		return 0, r.fail(n, "", "%s is not a whole number within %d–%d", brief(s), low, high)
	}
	return number, true
}

func but(n *yaml.Node) string { return document.Instead(n, brief) }

// brief quotes a text for a message, cut where it is long.
func brief(s string) string {
	return strconv.Quote(phrase.Brief(s, 40))
}
