package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gateway/hosts"
	"gateway/mcpserver"
)

// The scope of a token's sessions is shown and kept: what a command says in its
// reference is not in it. It is the same with every start, and no other token's.
func TestTokenScope(t *testing.T) {
	const secret = "hunter2hunter2hunter2"
	t.Setenv("TOKEN_A", secret)
	references := []string{"env:TOKEN_A", "cmd:echo " + secret, "cmd:printf %s " + secret}
	read := func() []mcpserver.Token {
		tokens, err := readTokens(t.Context(), references)
		if err != nil || len(tokens) != len(references) {
			t.Fatalf("readTokens = %v, %v", tokens, err)
		}
		return tokens
	}
	tokens, again := read(), read()
	scopes := map[string]bool{}
	for i, token := range tokens {
		scopes[token.Scope] = true
		if token.Secret != secret || token.Scope != again[i].Scope {
			t.Errorf("%s: scope %q, and then %q", references[i], token.Scope, again[i].Scope)
		}
		if strings.Contains(token.Scope, "hunter2") || strings.Contains(token.Name, "hunter2") {
			t.Errorf("%s: the secret is in scope %q or name %q", references[i], token.Scope, token.Name)
		}
	}
	if len(scopes) != len(references) || !strings.HasPrefix(tokens[0].Scope, "mcp:env:TOKEN_A:") {
		t.Errorf("scopes %v", scopes)
	}
	t.Setenv("TOKEN_A", "another-"+secret) // as where a second server has been started
	if other, err := readTokens(t.Context(), references[:1]); err != nil || other[0].Scope == tokens[0].Scope {
		t.Errorf("readTokens = %v, %v: another token has the same scope", other, err)
	}
}

// Hosts that are reached by settings of an ssh_config are told of where it is not read.
func TestLeftToSSHConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	write(t, file, "Host web? !web9\n  User deploy\nHost *\n  Port 22\n")
	allowed := []hosts.Host{{Name: "localhost", Transport: "local"}, {Name: "web1"}, {Name: "db1"}, {Name: "web9"}}
	if got := leftTo(hosts.NewSSHConfig(file, ""), allowed); !slices.Equal(got, []string{"web1"}) {
		t.Errorf("got %q, want web1 alone", got)
	}
	if got := leftTo(nil, allowed); got != nil {
		t.Errorf("got %q without an ssh_config", got)
	}
}
