package script

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"gateway/hosts"
	"gateway/internal/document"
)

// hostVar is the variable that always exists: the host's name.
const hostVar = "host"

var (
	nameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// mention matches ${{ NAME }}, and anything else that begins like it.
	mention = regexp.MustCompile(`\$\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*\}\}|\$\{\{`)
)

// expand replaces each ${{ NAME }} by its value.
func expand(text string, value func(name string) string) string {
	return mention.ReplaceAllStringFunc(text, func(found string) string {
		name := mention.FindStringSubmatch(found)[1]
		if name == "" {
			return found
		}
		return value(name)
	})
}

// shapeOf is a text with a letter for each variable: what form it has, whatever their
// values are.
func shapeOf(text string) string { return expand(text, func(string) string { return "x" }) }

// called returns what a step is called, where expanded is what its name stands for.
func (s *Step) called(expanded func(text string) string) string {
	if s.unnamed {
		return s.Name
	}
	return expanded(s.Name)
}

// template reads a value in which ${{ NAME }} may stand.
func (r *reader) template(n *yaml.Node) (string, bool) {
	s, ok := r.text(n)
	return s, ok && r.mentions(n, s)
}

// mentions checks each ${{ NAME }} of a text.
func (r *reader) mentions(n *yaml.Node, s string) bool {
	all := true
	for _, found := range mention.FindAllStringSubmatch(s, -1) {
		name := found[1]
		_, known := r.names[name]
		at, later := r.later[name]
		switch {
		case name == "":
			all = r.fail(n, "write ${{ NAME }}", "${{ without a variable's name and }}")
		case known || name == hostVar:
		case later:
			all = r.fail(n, "", "variable %s is set by the step at line %d, after this one", name, at.Line)
		default:
			all = r.fail(n, r.suggestName(name), "undefined variable %s", name)
		}
	}
	return all
}

func (r *reader) suggestName(name string) string {
	names := slices.AppendSeq([]string{hostVar}, maps.Keys(r.names))
	slices.Sort(names)
	return cmp.Or(hosts.DidYouMean(name, "", names), "declare it under vars, or register it in an earlier step")
}

// test reads a test, and where it stands.
func (r *reader) test(n *yaml.Node, to *string, at *Place) (ok bool) {
	*at = Place{n.Line, n.Column}
	*to, ok = r.shellText(n)
	// Of these, only true and false are commands that say so.
	if word := *to; ok && document.Boolean(r.resolve(n)) && word != "true" && word != "false" {
		return r.fail(n, "true, false, or a command such as test -e FILE", "%s is neither true nor false", brief(word))
	}
	return ok
}

// shellText reads a text for the shell, in which nothing is expanded.
func (r *reader) shellText(n *yaml.Node) (string, bool) {
	s, ok := r.scalar(n)
	if !ok {
		return "", false
	}
	if strings.TrimSpace(s) == "" {
		return "", r.fail(n, "", "is empty")
	}
	for _, found := range mention.FindAllStringSubmatch(s, -1) {
		if found[1] == hostVar {
			r.warn(n, "%s in shell text is not expanded: declare a variable with that value under vars", found[0])
		} else if _, known := r.names[found[1]]; known {
			r.warn(n, "%s in shell text is not expanded: variables are the shell's own, write \"$%s\"", found[0], found[1])
		}
	}
	return s, true
}

// reserved are variables that the shell or the session itself lives by.
var reserved = []string{
	"HOME", "PATH", "IFS", "PS1", "PS2", "PS3", "PS4", "PWD", "OLDPWD", "ENV", "BASH_ENV", "PROMPT_COMMAND",
	"UID", "EUID", "GID", "EGID", "PPID", "SHELLOPTS", "BASHOPTS", "RANDOM", "SECONDS", "LINENO", "OPTIND", "OPTARG", "USERNAME",
	hostVar,
}

// declare takes a name for a variable.
func (r *reader) declare(n *yaml.Node, name string) bool {
	switch {
	case !nameForm.MatchString(name):
		return r.fail(n, "letters, digits and _, not a digit first", "%s is not a variable's name", brief(name))
	case slices.Contains(reserved, name) || strings.HasPrefix(name, "_gw") || strings.HasPrefix(name, "GATEWAY_"):
		return r.fail(n, "choose another name", "%s has a meaning of its own", name)
	}
	if at, taken := r.names[name]; taken {
		return r.fail(n, "", "%s is already declared at line %d", name, at.Line)
	}
	r.names[name] = Place{n.Line, n.Column}
	return true
}
