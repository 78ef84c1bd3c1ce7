package hosts

import (
	"cmp"
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
	if !strings.Contains(s, "%") {
		return s, nil
	}
	local, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("tokens of %s: %w", brief(s), err)
	}
	values := map[string]string{
		"%%": "%", "%h": t.host, "%k": cmp.Or(t.alias, t.name), "%n": t.name, "%p": strconv.Itoa(cmp.Or(t.port, 22)), "%r": cmp.Or(t.user, local.Username),
		"%u": local.Username, "%i": local.Uid, "%d": local.HomeDir,
	}
	if strings.Contains(strings.ToLower(s), "%l") {
		name, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("tokens of %s: %w", brief(s), err)
		}
		values["%l"] = name
		values["%L"], _, _ = strings.Cut(name, ".")
	}
	unknown := false
	expanded := tokenForm.ReplaceAllStringFunc(s, func(token string) string {
		value, known := values[token]
		unknown = unknown || !known
		return value
	})
	if unknown {
		return "", fmt.Errorf("unknown token in %s: known are %%h %%k %%n %%p %%r %%u %%i %%d %%l %%L %%%%", brief(s))
	}
	return expanded, nil
}
