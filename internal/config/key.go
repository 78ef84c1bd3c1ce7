package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"gateway/hosts"
)

// A key is one setting: its name in files and, in capitals, in the environment.
type key struct {
	name  string
	kind  kind
	words []string // that one of isWord may be
}

// A kind says what a setting's value is.
type kind int

const (
	isWord kind = iota
	isPath
	isList // of paths
	isTruth
	isNumber // from 1 on
	isTime
)

// table is the keys as config.example.yaml has them.
var table = []key{
	{name: "inventory", kind: isList},
	{name: "ssh_config", kind: isPath},
	{name: "output", words: []string{"text", "json", "jsonl"}},
	{name: "color", words: []string{"auto", "always", "never"}},
	{name: "quiet", kind: isTruth},
	{name: "log_level", words: []string{"debug", "info", "warn", "error"}},
	{name: "log_file", kind: isPath},
	{name: "socket", kind: isPath},
	{name: "no_daemon", kind: isTruth},
	{name: "max_sessions", kind: isNumber},
	{name: "max_sessions_per_host", kind: isNumber},
	{name: "session_ttl", kind: isTime},
}

// keys is the table by name, and names its names in order.
var keys, names = func() (map[string]key, []string) {
	byName, inOrder := make(map[string]key, len(table)), make([]string, 0, len(table))
	for _, k := range table {
		byName[k.name], inOrder = k, append(inOrder, k.name)
	}
	return byName, inOrder
}()

func (k key) variable() string { return Prefix + strings.ToUpper(k.name) }

func (k key) flag() string { return strings.ReplaceAll(k.name, "_", "-") }

// parse reads a value from text. A list is separated as PATH is, as in the
// environment. A relative path starts at dir, unless that is empty.
func (k key) parse(text, dir, home string) (any, error) {
	switch k.kind {
	case isTruth:
		return truth(text)
	case isNumber:
		return number(text)
	case isTime:
		return span(text)
	case isList:
		return expandAll(filepath.SplitList(text), home), nil
	case isPath:
		return k.expand(text, dir, home), nil
	}
	return text, oneOf(text, k.words)
}

// read reads a value from a file whose paths start at dir. The error is about
// the node that it comes with.
func (k key) read(n *yaml.Node, dir, home string) (any, *yaml.Node, error) {
	isText := k.kind == isWord || k.kind == isPath
	switch {
	case k.kind == isList:
		return k.readList(n, dir, home)
	case n.Kind != yaml.ScalarNode:
		return nil, n, fmt.Errorf("must be a single value")
	case isText && n.ShortTag() != "!!str" && n.ShortTag() != "!!null":
		return nil, n, fmt.Errorf("must be text: put %s in quotes", n.Value)
	}
	value, err := k.parse(n.Value, dir, home)
	return value, n, err
}

// readList reads a list of paths. A single one needs no brackets.
func (k key) readList(n *yaml.Node, dir, home string) (any, *yaml.Node, error) {
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		nodes = n.Content
	}
	list := []string{}
	for _, item := range nodes {
		if item.Kind != yaml.ScalarNode || item.ShortTag() != "!!str" || item.Value == "" {
			return nil, item, fmt.Errorf("must be a path or a list of paths")
		}
		list = append(list, expand(item.Value, dir, home))
	}
	return list, n, nil
}

// expand resolves a path, but for the two words that ssh_config may also be.
func (k key) expand(text, dir, home string) string {
	if text == "" || k.name == "ssh_config" && (text == "auto" || text == "off") {
		return text
	}
	return expand(text, dir, home)
}

// expandAll expands paths, but those that are empty.
func expandAll(paths []string, home string) []string {
	var list []string
	for _, path := range paths {
		if path != "" {
			list = append(list, expand(path, "", home))
		}
	}
	return list
}

// expand resolves "~" and makes a relative path start at dir, unless that is
// empty.
func expand(path, dir, home string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && home != "" {
		return filepath.Join(home, rest)
	}
	if dir == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func truth(text string) (any, error) {
	switch text {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return nil, fmt.Errorf("%q is neither true nor false", text)
}

func number(text string) (any, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return nil, fmt.Errorf("%q is no whole number from 1 to 65535", text)
	}
	return int(n), nil
}

func span(text string) (any, error) {
	d, err := hosts.ParseDuration(text)
	if err != nil || d <= 0 {
		return nil, fmt.Errorf("%q is no duration above 0, such as 90s or 1h30m, or whole seconds", text)
	}
	return d, nil
}

func oneOf(text string, words []string) error {
	if slices.Contains(words, text) {
		return nil
	}
	last := len(words) - 1
	return fmt.Errorf("%q is not one of %s or %s", text, strings.Join(words[:last], ", "), words[last])
}
