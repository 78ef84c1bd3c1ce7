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
	name string
	// words are what its value may be; nil means any text.
	words []string
	// Its value is a path, a list of paths, or true or false, and not a word.
	path, list, truth bool
	// Or it is a number from 1 on, or a time.
	number, duration bool
}

// order is the keys as config.example.yaml has them.
var order = []string{"inventory", "ssh_config", "output", "color", "quiet", "log_level", "log_file", "socket", "no_daemon", "max_sessions", "max_sessions_per_host", "session_ttl"}

var keys = map[string]key{
	"inventory":             {name: "inventory", list: true},
	"ssh_config":            {name: "ssh_config", path: true},
	"output":                {name: "output", words: []string{"text", "json", "jsonl"}},
	"color":                 {name: "color", words: []string{"auto", "always", "never"}},
	"quiet":                 {name: "quiet", truth: true},
	"log_level":             {name: "log_level", words: []string{"debug", "info", "warn", "error"}},
	"log_file":              {name: "log_file", path: true},
	"socket":                {name: "socket", path: true},
	"no_daemon":             {name: "no_daemon", truth: true},
	"max_sessions":          {name: "max_sessions", number: true},
	"max_sessions_per_host": {name: "max_sessions_per_host", number: true},
	"session_ttl":           {name: "session_ttl", duration: true},
}

func (k key) variable() string { return Prefix + strings.ToUpper(k.name) }

func (k key) flag() string { return strings.ReplaceAll(k.name, "_", "-") }

// parse reads a value from text as the environment has it. A list is separated
// as PATH is.
func (k key) parse(text, home string) (any, error) {
	switch {
	case k.truth:
		return truth(text)
	case k.number:
		return number(text)
	case k.duration:
		return span(text)
	case k.list:
		return expandAll(filepath.SplitList(text), home), nil
	case k.path:
		return k.expand(text, "", home), nil
	}
	return text, oneOf(text, k.words)
}

// read reads a value from a file whose paths start at dir. The error is about
// the node that it comes with.
func (k key) read(n *yaml.Node, dir, home string) (any, *yaml.Node, error) {
	switch {
	case k.list:
		return k.readList(n, dir, home)
	case n.Kind != yaml.ScalarNode:
		return nil, n, fmt.Errorf("must be a single value")
	case k.truth:
		value, err := truth(n.Value)
		return value, n, err
	case k.number:
		value, err := number(n.Value)
		return value, n, err
	case k.duration:
		value, err := span(n.Value)
		return value, n, err
	case n.ShortTag() != "!!str" && n.ShortTag() != "!!null":
		return nil, n, fmt.Errorf("must be text: put %s in quotes", n.Value)
	case k.path:
		return k.expand(n.Value, dir, home), n, nil
	}
	return n.Value, n, oneOf(n.Value, k.words)
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
