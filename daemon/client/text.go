package client

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gateway/daemon/api"
	"gateway/transport"
)

// JSON puts U+FFFD where a text is not UTF-8, without a word: the host would get
// something else than the caller meant.

func checkRun(r api.Run) error {
	if err := checkText("the command", "write such bytes as printf does: \"$(printf 'caf\\351')\"", r.Text); err != nil {
		return err
	}
	return checkPlace(r.Cwd, r.Env)
}

func checkPlace(cwd string, env map[string]string) error {
	words := []string{cwd}
	for name, value := range env {
		words = append(words, name, value)
	}
	return checkText("the directory or the environment", "set it with a command", words...)
}

func checkText(what, hint string, words ...string) error {
	if slices.ContainsFunc(words, func(word string) bool { return !utf8.ValidString(word) }) {
		return &transport.Error{Code: "usage", Message: fmt.Sprintf("%s is not valid UTF-8", what), Hint: hint}
	}
	return nil
}

// checkPath refuses a request whose name nothing can have. A server would clean the
// path of such a name, and do something else or with another session.
func checkPath(path string) error {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")[2:] // behind the version
	for _, name := range parts[1:] {
		switch name {
		case "":
			return &transport.Error{Code: "usage", Message: "client: the name is empty", Hint: "name a session, or the id of a command"}
		case ".", "..":
			return &transport.Error{Code: "session.not_found", Message: fmt.Sprintf("client: there is no session %q", name), Hint: "no session can have that name"}
		}
	}
	return nil
}
