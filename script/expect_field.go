package script

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"gateway/hosts"
)

var expectFields = []field[Expect]{
	{"exit", "the exit status, or a list of them", either(status, schema{"type": "array", "items": status, "minItems": 1}), (*reader).exit},
	{"stdout", "what has to be in stdout", objectOf(matchFields), func(r *reader, n *yaml.Node, e *Expect) bool { return r.match(n, &e.Stdout) }},
	{"stderr", "what has to be in stderr", objectOf(matchFields), func(r *reader, n *yaml.Node, e *Expect) bool { return r.match(n, &e.Stderr) }},
}

var matchFields = []field[Match]{
	set("contains", "a text that it contains", value, (*reader).wanted, func(m *Match) *string { return &m.Contains }),
	set("matches", "a regular expression (RE2) that matches somewhere in it, without newlines at the end", value, (*reader).pattern, func(m *Match) *string { return &m.Matches }),
	set("equals", "all of it, but for newlines at the end", value, (*reader).equals, func(m *Match) **string { return &m.Equals }),
}

var answerFields = []field[Answer]{
	{"prompt", "a regular expression (RE2) for the prompt, the unfinished last line", oneLine, (*reader).prompt},
	{"send", "what is typed: a text, or secret:NAME", value, (*reader).send},
}

// answerNeeds are the keys that an answer must have.
var answerNeeds = []string{"prompt", "send"}

func (r *reader) exit(n *yaml.Node, e *Expect) bool {
	nodes := []*yaml.Node{n}
	if r.resolve(n).Kind == yaml.SequenceNode {
		nodes, _ = r.sequence(n)
		if len(nodes) == 0 {
			return r.fail(n, "leave the key out", "is empty")
		}
	}
	for _, node := range nodes {
		code, ok := r.whole(node, 0, 255)
		if !ok {
			return false
		}
		e.Exit = append(e.Exit, code)
	}
	return true
}

func (r *reader) match(n *yaml.Node, m *Match) bool {
	if !object(r, n, matchFields, m) {
		return false
	}
	if *m == (Match{}) {
		return r.fail(n, "", "needs one of contains, matches, equals")
	}
	return true
}

func (r *reader) wanted(n *yaml.Node) (string, bool) {
	s, ok := r.scalar(n)
	if ok && s == "" {
		return "", r.fail(n, "leave the key out", "is empty")
	}
	return s, ok && r.mentions(n, s)
}

func (r *reader) equals(n *yaml.Node) (*string, bool) {
	s, ok := r.scalar(n)
	return &s, ok && r.mentions(n, s)
}

// pattern reads a regular expression, in which a variable stands for its text.
func (r *reader) pattern(n *yaml.Node) (string, bool) {
	s, ok := r.wanted(n)
	if !ok {
		return "", false
	}
	if _, err := regexp.Compile(shapeOf(s)); err != nil {
		return "", r.badPattern(n, s, err)
	}
	return s, true
}

func (r *reader) badPattern(n *yaml.Node, s string, err error) bool {
	_, why, _ := strings.Cut(err.Error(), "error parsing regexp: ")
	return r.fail(n, "put the pattern in single quotes, and a backslash before what stands for itself", "%s is not a regular expression: %s", brief(s), why)
}

func (r *reader) answers(n *yaml.Node, s *Step) bool {
	items, all := r.sequence(n)
	for _, item := range items {
		var a Answer
		if !object(r, item, answerFields, &a) {
			all = false
			continue
		}
		all = r.needs(item, answerNeeds, "an answer is {prompt: PATTERN, send: TEXT}") && all
		s.Answers = append(s.Answers, a)
	}
	return all
}

func (r *reader) prompt(n *yaml.Node, a *Answer) bool {
	s, ok := r.text(n)
	if !ok {
		return false
	}
	pattern, err := regexp.Compile(s)
	if err != nil {
		return r.badPattern(n, s, err)
	}
	a.Prompt = pattern
	return true
}

func (r *reader) send(n *yaml.Node, a *Answer) bool {
	s, ok := r.scalar(n)
	if !ok {
		return false
	}
	name, secret := strings.CutPrefix(s, "secret:")
	switch {
	case secret && !r.secrets[name]:
		near := hosts.DidYouMean(name, "", slices.Sorted(maps.Keys(r.secrets)))
		return r.fail(n, cmp.Or(near, "declare it under secrets"), "no secret named %s", brief(name))
	case secret:
		a.Secret = name
		return true
	case strings.ContainsAny(s, "\n\r"):
		return r.fail(n, "the newline at its end is added", "must be one line")
	}
	a.Text = s
	return r.mentions(n, s)
}
