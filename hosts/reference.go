package hosts

import (
	"errors"
	"slices"
	"strings"
)

// ReferenceKinds are what a reference to a secret may begin with.
var ReferenceKinds = []string{"env", "file", "cmd"}

// ReferenceForms are the forms of these kinds, for messages.
const ReferenceForms = "env:NAME, file:PATH or cmd:COMMAND"

var errReference = errors.New("not a reference: " + ReferenceForms)

// ParseReference takes a reference to a secret apart: kind is one of
// [ReferenceKinds], rest the variable's name, the path or the command. The error
// does not repeat the text, which may be the secret.
func ParseReference(s string) (kind, rest string, err error) {
	kind, rest, _ = strings.Cut(s, ":")
	rest = strings.TrimSpace(rest)
	if !slices.Contains(ReferenceKinds, kind) || rest == "" || kind == "env" && !envNameForm.MatchString(rest) || strings.ContainsAny(rest, "\x00\r\n") {
		return "", "", errReference
	}
	return kind, rest, nil
}

// IsKeyReference reports whether an entry of [Host.Identity] is a reference, and
// not a file.
func IsKeyReference(identity string) bool {
	return strings.HasPrefix(identity, "env:") || strings.HasPrefix(identity, "cmd:")
}

// ShowReference is a reference in a message: a command may hold a secret.
func ShowReference(reference string) string {
	if strings.HasPrefix(reference, "cmd:") {
		return "cmd:…"
	}
	return reference
}
