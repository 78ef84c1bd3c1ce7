package hosts

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/user"
	"regexp"
	"strconv"
	"strings"
)

// tokens are the values of the % tokens in ssh_config. Those of a proxy command
// are left to whoever runs it.
type tokens struct {
	name  string // %n: as it was given
	host  string // %h: the address
	alias string // %k: the name if empty
	port  int    // %p: 22 if zero
	user  string // %r: the local user if empty
}

// tokenForm is a token, known or not.
var tokenForm = regexp.MustCompile(`(?s)%.?`)

// expand replaces %h, %k, %n, %p, %r, %u (the local user), %i (its number), %d
// (its home), %l (this machine's name), %L (its first part) and %%. Other tokens
// are an error, also %C: what it hashes is not the same in all versions of ssh.
func (t tokens) expand(s string) (string, error) {
	var failed error
	expanded := tokenForm.ReplaceAllStringFunc(s, func(token string) string {
		value, err := t.value(token)
		if err != nil {
			failed = err
		}
		return value
	})
	switch {
	case errors.Is(failed, errToken):
		return "", fmt.Errorf("unknown token in %s: known are %%h %%k %%n %%p %%r %%u %%i %%d %%l %%L %%%%", brief(s))
	case failed != nil:
		return "", fmt.Errorf("tokens of %s: %w", brief(s), failed)
	}
	return expanded, nil
}

var errToken = errors.New("unknown token")

// value asks the system for nothing but what the token stands for: in a container the
// account may have no name.
func (t tokens) value(token string) (string, error) {
	switch token {
	case "%%":
		return "%", nil
	case "%h":
		return t.host, nil
	case "%k":
		return cmp.Or(t.alias, t.name), nil
	case "%n":
		return t.name, nil
	case "%p":
		return strconv.Itoa(cmp.Or(t.port, 22)), nil
	case "%r", "%u":
		if token == "%r" && t.user != "" {
			return t.user, nil
		}
		local, err := user.Current()
		if err != nil {
			return "", errors.New("the account here has no name")
		}
		return local.Username, nil
	case "%i":
		return strconv.Itoa(os.Getuid()), nil
	case "%d":
		return sshHome(), nil
	case "%l", "%L":
		name, err := os.Hostname()
		if token == "%L" {
			name, _, _ = strings.Cut(name, ".")
		}
		return name, err
	}
	return "", errToken
}
