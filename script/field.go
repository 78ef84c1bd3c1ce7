package script

import (
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"gateway/hosts"
	"gateway/internal/document"
)

// A field is one key of a mapping: how it is read, what it is for, and what a
// JSON schema says about it. Tables of them drive reading, suggestions and
// [Schema], so that these agree.
type field[T any] struct {
	key    string
	about  string
	schema schema
	read   func(r *reader, n *yaml.Node, to *T) bool
}

// set makes a field that is read by a method of the reader.
func set[T, V any](key, about string, s schema, read func(*reader, *yaml.Node) (V, bool), at func(*T) *V) field[T] {
	return field[T]{key, about, s, func(r *reader, n *yaml.Node, to *T) bool {
		value, ok := read(r, n)
		if ok {
			*at(to) = value
		}
		return ok
	}}
}

// In the order in which they are read: names are declared before they are used.
var scriptFields = []field[Script]{
	set("name", "what reports call the script", oneLine, (*reader).text, func(s *Script) *string { return &s.Name }),
	{"vars", "shell variables of every session; one without a value has to be given with --var", mapOf(nameForm, schema{"type": []string{"string", "number", "boolean", "null"}}), (*reader).vars},
	{"secrets", "shell variables, never exported, that are masked wherever something is shown: " + hosts.ReferenceForms, mapOf(nameForm, pattern("^("+strings.Join(hosts.ReferenceKinds, "|")+`):.*\S`)), (*reader).readSecrets},
	{"steps", "what runs, in order", listOf(ref("step")), func(r *reader, n *yaml.Node, s *Script) bool { return r.steps(n, &s.Steps, "step") }},
	{"always", "steps that run after the others, also if one failed", listOf(ref("step")), func(r *reader, n *yaml.Node, s *Script) bool { return r.steps(n, &s.Always, "always") }},
}

var stepFields = []field[Step]{
	set("name", "what reports call the step", oneLine, (*reader).template, func(s *Step) *string { return &s.Name }),
	{"run", "text for the shell: the first statement that fails ends the step", text, (*reader).run},
	{"copy", "files that are copied to the host", ref("copy"), func(r *reader, n *yaml.Node, s *Step) bool { return r.copy(n, s, false) }},
	{"fetch", "files that are copied from the host", ref("copy"), func(r *reader, n *yaml.Node, s *Step) bool { return r.copy(n, s, true) }},
	{"when", "a test in the shell: the step is left out unless its status is 0", text, func(r *reader, n *yaml.Node, s *Step) bool { return r.test(n, &s.When, &s.whenAt) }},
	{"until", "a test in the shell: the step is tried again until its status is 0", text, func(r *reader, n *yaml.Node, s *Step) bool { return r.test(n, &s.Until, &s.untilAt) }},
	{"retry", "how often the step is tried again", objectOf(retryFields, "times"), func(r *reader, n *yaml.Node, s *Step) bool { return object(r, n, retryFields, &s.Retry) }},
	set("idempotent", "it may be tried again also after a timeout, or if its outcome is unknown", boolean, (*reader).boolean, func(s *Step) *bool { return &s.Idempotent }),
	set("timeout", "how long it may take: 90s, 5m, or whole seconds", duration, (*reader).positive, func(s *Step) *time.Duration { return &s.Timeout }),
	{"expect", "what it has to leave; without it, exit status 0", objectOf(expectFields), func(r *reader, n *yaml.Node, s *Step) bool { return object(r, n, expectFields, &s.Expect) }},
	{"register", "a variable for its stdout, without the blanks around it", pattern(nameForm.String()), (*reader).register},
	{"on_fail", "whether the script goes on after a failure", words("abort", "continue"), (*reader).onFail},
	set("keep_going", "run the text as a whole: only its last status counts", boolean, (*reader).boolean, func(s *Step) *bool { return &s.KeepGoing }),
	{"answer", "what is typed when a command waits for input", listOf(objectOf(answerFields, answerNeeds...)), (*reader).answers},
	{"sudo", "run it as root, or as the user named", either(boolean, oneLine), (*reader).sudo},
	set("cwd", "the directory that it runs in", oneLine, (*reader).template, func(s *Step) *string { return &s.Cwd }),
	{"env", "environment of this step", mapOf(nameForm, value), (*reader).env},
}

var retryFields = []field[Retry]{
	set("times", "how often, after the first time", schema{"type": "integer", "minimum": 1, "maximum": maxTimes}, (*reader).times, func(t *Retry) *int { return &t.Times }),
	set("delay", "how long to wait before each", duration, (*reader).duration, func(t *Retry) *time.Duration { return &t.Delay }),
}

const maxTimes = 1000

func (r *reader) vars(n *yaml.Node, s *Script) bool {
	entries, all := r.mapping(n, "")
	for _, e := range entries {
		v := Var{Name: e.name, Place: Place{e.key.Line, e.key.Column}}
		ok := true
		if node := r.resolve(e.value); node.ShortTag() == "!!null" {
			v.Wanted = true
		} else if v.Value, ok = r.scalar(e.value); ok {
			ok = r.mentions(e.value, v.Value)
		}
		// Declared behind its value, in which it can't be named.
		all = r.declare(e.key, e.name) && ok && all
		s.Vars = append(s.Vars, v)
	}
	return all
}

// readSecrets never shows what it refuses: it may be the secret.
func (r *reader) readSecrets(n *yaml.Node, s *Script) bool {
	const hint = "write " + hosts.ReferenceForms
	entries, all := r.mapping(n, "")
	for _, e := range entries {
		all = r.declare(e.key, e.name) && all
		r.secrets[e.name] = true
		reference := r.resolve(e.value)
		kind, rest, err := hosts.ParseReference(reference.Value)
		switch {
		case reference.Kind != yaml.ScalarNode || reference.Value == "":
			all = r.fail(e.value, hint, "%s must be a reference", e.name)
		case err != nil:
			all = r.fail(e.value, hint, "%s must be a reference, never the secret itself", e.name)
		case kind == "file":
			rest = local(r.dir, rest)
		}
		s.Secrets = append(s.Secrets, Secret{e.name, kind + ":" + rest, Place{e.value.Line, e.value.Column}})
	}
	return all
}

func (r *reader) run(n *yaml.Node, s *Step) bool {
	text, ok := r.shellText(n)
	if !ok {
		return false
	}
	node := r.resolve(n)
	s.Run, s.RunLine = text, node.Line
	if node.Style&yaml.LiteralStyle != 0 {
		s.RunLine++
	} else {
		s.Folded = true
	}
	return true
}

func (r *reader) times(n *yaml.Node) (int, bool) { return r.whole(n, 1, maxTimes) }

// duration reads a Go duration, or whole seconds.
func (r *reader) duration(n *yaml.Node) (time.Duration, bool) {
	s, ok := r.text(n)
	if !ok {
		return 0, false
	}
	d, err := hosts.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, r.fail(n, "90s, 1m30s, or whole seconds", "%s is not a duration", brief(s))
	}
	return d, true
}

func (r *reader) positive(n *yaml.Node) (time.Duration, bool) {
	d, ok := r.duration(n)
	if ok && d == 0 {
		return 0, r.fail(n, "leave the key out", "must be more than 0")
	}
	return d, ok
}

func (r *reader) register(n *yaml.Node, s *Step) bool {
	name, ok := r.text(n)
	if !ok {
		return false
	}
	s.Register = name
	if r.registered[name] {
		return true // another step may set it anew
	}
	r.registered[name] = true
	return r.declare(n, name)
}

func (r *reader) onFail(n *yaml.Node, s *Step) bool {
	word, ok := r.text(n)
	if ok && word != "abort" && word != "continue" {
		return r.fail(n, hosts.DidYouMean(word, "", []string{"abort", "continue"}), "%s is neither abort nor continue", brief(word))
	}
	s.Continue = word == "continue"
	return ok
}

var userForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

func (r *reader) sudo(n *yaml.Node, s *Step) bool {
	node := r.resolve(n)
	if node.ShortTag() == "!!bool" {
		on, ok := r.boolean(n)
		s.Sudo.On = on
		return ok
	}
	user, ok := r.template(n)
	// In quotes, it is somebody's name all the same.
	if ok && (!userForm.MatchString(shapeOf(user)) || document.Boolean(node)) {
		return r.fail(n, "true, or a user's name", "%s is not a user's name", brief(user))
	}
	s.Sudo = Sudo{On: true, User: user}
	return ok
}

func (r *reader) env(n *yaml.Node, s *Step) bool {
	entries, all := r.mapping(n, "")
	s.Env = make(map[string]string, len(entries))
	for _, e := range entries {
		if !nameForm.MatchString(e.name) {
			all = r.fail(e.key, "letters, digits and _, not a digit first", "%s is not a variable's name", brief(e.name))
			continue
		}
		text, ok := r.scalar(e.value)
		all = ok && r.mentions(e.value, text) && all
		s.Env[e.name] = text
	}
	return all
}
