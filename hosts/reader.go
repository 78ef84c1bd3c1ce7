package hosts

import (
	"fmt"
	"iter"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"gateway/internal/document"
)

// A reader turns the YAML nodes of one inventory file into values and notes
// what is wrong with them. It walks the nodes itself, because only they know
// their lines.
type reader struct {
	file     string
	dir      string // where relative paths start
	problems *document.Problems
	layer    string // " (group web)", after a place in an origin
	subject  string // "host web1: port", before a message
	budget   int    // how many nodes may still be looked at
}

// An entry is one key of a mapping with its value.
type entry struct{ key, value *yaml.Node }

// fail notes a problem and returns false, the answer of every method here that
// could not read its value.
func (r *reader) fail(n *yaml.Node, hint, format string, args ...any) bool {
	message := fmt.Sprintf(format, args...)
	if r.subject != "" {
		message = r.subject + ": " + message
	}
	r.problems.Add(&Error{Code: codeInventory, File: r.file, Line: n.Line, Message: message, Hint: hint})
	return false
}

func (r *reader) origin(n *yaml.Node) string {
	return fmt.Sprintf("%s:%d%s", r.file, n.Line, r.layer)
}

// document parses data, one YAML document, and returns its root; nil if it is
// empty, or not one.
func (r *reader) document(data []byte) *yaml.Node {
	root, wrong := document.Parse(codeInventory, r.file, data, maxFile)
	switch {
	case wrong != nil:
		wrong.Column = 0 // as of all that is wrong with an inventory
		r.problems.Add(wrong)
	case root != nil:
		// A value is looked at a few times. Only aliases that multiply each other
		// make it more than that.
		r.budget = 4*maxNames + 8*size(root)
	}
	return root
}

// size counts the nodes that are written in the document.
func size(n *yaml.Node) int {
	total := 1
	for _, child := range n.Content {
		total += size(child)
	}
	return total
}

// resolve returns the node that n is or, as an alias, stands for.
func (r *reader) resolve(n *yaml.Node) *yaml.Node {
	if r.budget--; r.budget == 0 {
		r.fail(n, "", "aliases make the file too large")
	}
	// An alias never stands for another alias.
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// spent reports whether the reader has given up on the file.
func (r *reader) spent() bool { return r.budget <= 0 }

// mapping yields the entries of a mapping. What is not one, and a key that
// comes twice, is a problem; the hint is for the former. The loop's body may change the subject.
func (r *reader) mapping(n *yaml.Node, hint string) iter.Seq2[string, entry] {
	return func(yield func(string, entry) bool) {
		node := r.resolve(n)
		if node.Kind != yaml.MappingNode || !core(node) {
			r.fail(n, hint, "must be a mapping of keys to values%s", but(node))
			return
		}
		subject := r.subject
		defer func() { r.subject = subject }()
		lines := make(map[string]int)
		for pair := range slices.Chunk(node.Content, 2) {
			if r.spent() {
				return
			}
			r.subject = subject
			key := r.resolve(pair[0])
			switch {
			case key.ShortTag() == "!!merge":
				r.fail(pair[0], "share fields through groups or defaults", "<< is not supported")
				continue
			case key.Kind != yaml.ScalarNode || !core(key):
				r.fail(pair[0], "", "a key must be plain text")
				continue
			case lines[key.Value] != 0:
				r.fail(pair[0], "", "%s is already at line %d", brief(key.Value), lines[key.Value])
				continue
			}
			lines[key.Value] = pair[0].Line
			if !yield(key.Value, entry{pair[0], pair[1]}) {
				return
			}
		}
	}
}

// listOf reads a sequence, or a single value as a sequence of one.
func listOf[T any](read func(*reader, *yaml.Node) (T, bool)) func(*reader, *yaml.Node) ([]T, bool) {
	return func(r *reader, n *yaml.Node) ([]T, bool) {
		node := r.resolve(n)
		if node.Kind != yaml.SequenceNode {
			value, ok := read(r, n)
			return []T{value}, ok
		}
		if !core(node) {
			return nil, r.fail(n, "", "must be a list%s", but(node))
		}
		list, all := []T{}, true
		for _, item := range node.Content {
			if r.spent() {
				return nil, false
			}
			value, ok := read(r, item)
			list, all = append(list, value), all && ok
		}
		return list, all
	}
}

// text reads a scalar that is neither empty nor more than one line.
func (r *reader) text(n *yaml.Node) (string, bool) {
	node := r.resolve(n)
	switch {
	case node.Kind != yaml.ScalarNode || !core(node):
		return "", r.fail(n, "", "must be a single value%s", but(node))
	case node.ShortTag() == "!!null":
		return "", r.fail(n, "leave the key out", "has no value")
	case node.Value == "":
		return "", r.fail(n, "leave the key out", "is empty")
	case hasControl(node.Value):
		return "", r.fail(n, "", "has a control character or a line break in it")
	}
	return node.Value, true
}

func (r *reader) integer(n *yaml.Node) (int, bool) {
	s, ok := r.text(n)
	if !ok {
		return 0, false
	}
	number, err := strconv.Atoi(s)
	if err != nil {
		return 0, r.fail(n, "", "%s is not a whole number", brief(s))
	}
	return number, true
}

func (r *reader) boolean(n *yaml.Node) (bool, bool) {
	s, ok := r.text(n)
	if ok && s != "true" && s != "false" {
		return false, r.fail(n, "", "%s is neither true nor false", brief(s))
	}
	return s == "true", ok
}

// core reports whether a node has none but a standard tag; others would be
// read as something else than they claim to be.
func core(n *yaml.Node) bool {
	switch n.ShortTag() {
	case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!map", "!!seq", "!!merge":
		return true
	}
	return false
}

func but(n *yaml.Node) string { return document.Instead(n, brief) }
