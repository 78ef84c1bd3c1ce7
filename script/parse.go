package script

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"gateway/hosts"
	"gateway/internal/document"
	"gateway/internal/phrase"
)

// Load reads a script from a file. The error is an *[Error].
func Load(file string) (*Script, error) {
	data, err := document.Read(file, maxFile)
	if err != nil {
		return nil, document.Unreadable(codeInvalid, file, err)
	}
	return Parse(file, data)
}

// Parse reads a script. The name stands in messages, and relative paths start
// where it is. The error is an *[Error], of up to ten places.
func Parse(file string, data []byte) (*Script, error) {
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, &Error{Code: codeInvalid, File: file, Message: err.Error(), Err: err}
	}
	r := &reader{
		file: file, dir: dir,
		names: map[string]Place{}, secrets: map[string]bool{}, registered: map[string]bool{}, later: map[string]Place{},
	}
	s := &Script{File: file, dir: dir}
	if root := r.document(data); root != nil {
		r.findRegisters(root)
		object(r, root, scriptFields, s)
	}
	if r.problems.Len() == 0 && len(s.Steps) == 0 {
		r.fail(&yaml.Node{Line: 1, Column: 1}, "steps: [{run: …}]", "no steps")
	}
	if err := r.problems.Err(); err != nil {
		return nil, err
	}
	s.Warnings = r.warnings
	return s, nil
}

// findRegisters notes what steps will set, for the messages about its use
// before that.
func (r *reader) findRegisters(root *yaml.Node) {
	for _, block := range []string{"steps", "always"} {
		_, steps := find(root, block)
		if steps == nil {
			continue
		}
		for _, step := range steps.Content {
			if _, name := find(step, "register"); name != nil && r.later[name.Value] == (Place{}) {
				r.later[name.Value] = Place{step.Line, step.Column}
			}
		}
	}
}

// steps reads a list of steps.
func (r *reader) steps(n *yaml.Node, to *[]Step, what string) bool {
	items, all := r.sequence(n)
	defer func() { r.subject = "" }()
	for i, item := range items {
		if r.budget <= 0 {
			return false
		}
		node := r.resolve(item)
		s := Step{Place: Place{item.Line, item.Column}}
		r.subject = fmt.Sprintf("%s %d", what, i+1)
		if _, name := find(node, "name"); name != nil && name.Value != "" {
			r.subject += " (" + strings.ReplaceAll(name.Value, "\n", " ") + ")"
		}
		ok := object(r, item, stepFields, &s)
		all = all && ok
		if node.Kind == yaml.MappingNode {
			all = r.checkStep(item, node, &s) && all
		}
		*to = append(*to, s)
	}
	return all
}

// checkStep checks what takes more than one key, and gives the step its name.
func (r *reader) checkStep(n, node *yaml.Node, s *Step) bool {
	all := r.checkKind(n, node)
	if has(node, "until") && !has(node, "retry") {
		all = r.fail(n, "retry: {times: 30, delay: 2s}", "until needs retry, which says how often")
	}
	if has(node, "retry") && s.Retry.Times == 0 && r.problems.Len() == 0 {
		all = r.fail(n, "retry: {times: 3, delay: 2s}", "retry has no times")
	}
	if s.Name == "" {
		line, _, _ := strings.Cut(strings.TrimSpace(s.Run), "\n")
		s.unnamed = s.Copy == nil
		if s.Copy != nil {
			line = s.Copy.verb() + " " + s.Copy.Src
		}
		s.Name = cmp.Or(phrase.Brief(line, 60), "step")
		return all
	}
	if at, taken := r.stepNames[s.Name]; taken {
		return r.fail(n, "each name may stand once: --start-at and reports go by it", "a step at line %d has the same name", at)
	}
	if r.stepNames == nil {
		r.stepNames = map[string]int{}
	}
	r.stepNames[s.Name] = s.Line
	return all
}

// warn notes what is allowed and hardly meant.
func (r *reader) warn(n *yaml.Node, format string, args ...any) {
	message := fmt.Sprintf("%s:%d:%d: ", r.file, n.Line, n.Column)
	if r.subject != "" {
		message += r.subject + ": "
	}
	r.warnings = append(r.warnings, message+fmt.Sprintf(format, args...))
}

// maxValues is how many bytes the values of all variables may have. A session takes no
// more, and each of them can double the one before it.
const maxValues = 4 << 20

// Given checks values for the script's variables: each must be declared, each
// that has no value must be among them, and what others make of them must not be too
// large. The error is an *[Error].
func (s *Script) Given(values map[string]string) error {
	var problems document.Problems
	var names []string
	for _, v := range s.Vars {
		names = append(names, v.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(names, name) {
			problems.Add(s.wrong(Place{}, cmp.Or(hosts.DidYouMean(name, "", names), "its vars: "+cmp.Or(strings.Join(names, ", "), "none")), "--var %s: the script declares no such variable", name))
		}
	}
	if problems.Len() > 0 { // they may mean one that has no value
		return problems.Err()
	}
	sizes, total := map[string]int{}, 0
	for _, v := range s.Vars {
		value, given := values[v.Name]
		if v.Wanted && !given {
			problems.Add(s.wrong(v.Place, "give it one: --var "+v.Name+"=VALUE", "variable %s has no value", v.Name))
		}
		size := 0
		if !given {
			value = expand(v.Value, func(name string) string { size += sizes[name]; return "" })
		}
		size += len(value)
		if total += size; total > maxValues {
			problems.Add(s.wrong(v.Place, "", "with variable %s, the values of all are larger than %d MiB", v.Name, maxValues>>20))
			break
		}
		sizes[v.Name] = size
	}
	return problems.Err()
}

// values returns the variables of a host, where given ones replace the script's
// own.
func (s *Script) values(host string, given map[string]string) map[string]string {
	values := map[string]string{hostVar: host}
	for _, v := range s.Vars {
		value, ok := given[v.Name]
		if !ok {
			value = expand(v.Value, func(name string) string { return values[name] })
		}
		values[v.Name] = value
	}
	return values
}
