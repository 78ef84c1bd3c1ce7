package script

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"gateway/gateway"
	"gateway/internal/phrase"
	"gateway/transport"
)

// registered reports whether a text names what only a step sets.
func (h *hostRun) registered(text string) bool {
	found := false
	expand(text, func(name string) string {
		found = found || h.registers[name]
		return ""
	})
	return found
}

// expand puts in the values of variables.
func (h *hostRun) expand(text string) string {
	return expand(text, func(name string) string { return h.values[name] })
}

// present is expand for what must not become empty: it would mean another user,
// or wherever the shell is.
func (h *hostRun) present(key, text string) (string, error) {
	value := h.expand(text)
	if value == "" && text != "" {
		return "", invalid("", "%s: %s is empty", key, text)
	}
	return value, nil
}

// show is expand for what is shown.
func (h *hostRun) show(text string) string { return h.Mask(h.expand(text)) }

// called returns what a step is called on the host.
func (h *hostRun) called(s *Step) string { return h.Mask(s.called(h.expand)) }

// hidden returns a text without secrets. One that shows only once the sequences
// between its characters are taken out, which reports do, takes them along.
func (h *hostRun) hidden(b []byte) []byte {
	b = h.mask().Bytes(b)
	plain := phrase.Plain(b)
	if masked := h.Mask(plain); masked != plain {
		return []byte(masked)
	}
	return b
}

// masked returns an error without secrets.
func (h *hostRun) masked(err error) error {
	if err == nil {
		return nil
	}
	return &transport.Error{Code: gateway.Code(err), Message: string(h.hidden([]byte(err.Error()))), Hint: h.Mask(gateway.Hint(err)), Err: err}
}

func (h *hostRun) answer(a Answer) string {
	if a.Secret != "" {
		return h.Secrets[a.Secret]
	}
	return h.expand(a.Text)
}

// place returns where a step runs in a shell. Under sudo that is where the main
// shell is, and so may be the login's home, which nobody else can enter. There it
// says nothing about the step, unless an earlier one has gone there.
func (h *hostRun) place(s *Step, shell *shell) (place, error) {
	cwd, err := h.present("cwd", s.Cwd)
	if err != nil || !s.Sudo.On || path.IsAbs(cwd) || strings.HasPrefix(cwd, "~") {
		return place{cwd: cwd}, err
	}
	p := place{cwd: path.Join(h.main.cwd, cwd), hint: "a step with sudo begins where the account's own shell is: give it a cwd that begins with / or ~ and that the other user can enter"}
	if cwd == "" && h.main.cwd == h.main.Origin() {
		p.or = shell.Origin()
	}
	return p, nil
}

func (h *hostRun) env(s *Step) map[string]string {
	env := make(map[string]string, len(s.Env))
	for name, value := range s.Env {
		env[name] = h.expand(value)
	}
	return env
}

// register sets the step's variable, in all shells.
func (h *hostRun) register(ctx context.Context, s *Step, stdout []byte, truncated bool) error {
	if s.Register == "" {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // what runs after an interrupt goes by it, too
	value := strings.TrimSpace(string(stdout))
	switch {
	case truncated:
		return invalid("print less: head, tail or grep", "register %s: stdout is too long for a variable", s.Register)
	case strings.ContainsRune(value, 0):
		return invalid("", "register %s: stdout holds a NUL byte, which no shell can keep", s.Register)
	}
	h.values[s.Register] = value
	for _, shell := range append([]*shell{h.main}, slices.Collect(maps.Values(h.others))...) {
		if !shell.ended() {
			if err := shell.set(ctx, map[string]string{s.Register: value}, false); err != nil {
				return err
			}
		}
	}
	return nil
}
