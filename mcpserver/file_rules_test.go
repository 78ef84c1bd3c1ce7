package mcpserver

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"unicode"

	"gateway/gateway"
	"gateway/hosts"
	"gateway/transfer"
	"gateway/transport"
)

// shy is a machine with directories, one of which cannot be looked at.
type shy struct {
	transfer.Machine
	path string
	why  error
}

func (s shy) Stat(_ context.Context, path string, _ bool) (transfer.Info, error) {
	if path == s.path {
		return transfer.Info{}, s.why
	}
	return transfer.Info{Mode: fs.ModeDir | 0o755}, nil
}

// Where it is not known what the rules stand for, nothing is done; but a
// directory that nobody reaches needs no rule.
func TestRulesThatCannotBeFollowed(t *testing.T) {
	files := hosts.Files{Deny: []string{"/srv/secret", "/etc/*.key"}}
	coded := func(code string) error {
		return &transport.Error{Code: code, Message: "transfer: " + code, Err: errors.New(code)}
	}
	for _, test := range []struct {
		why  error
		code string
	}{
		{coded("file.permission"), ""},
		{coded("file.not_directory"), ""},
		{&transport.Error{Code: "file.not_found", Err: fs.ErrNotExist}, ""},
		{coded("file.failed"), "file.failed"},
		{coded("ssh.channel"), "ssh.channel"},
		{coded("link.lost"), "link.lost"},
		{errors.New("anything"), "internal"},
	} {
		m := &machine{Machine: shy{path: "/srv/secret", why: test.why}, home: "/root"}
		r, err := rulesOn(t.Context(), m, files)
		if got := gateway.Code(err); got != test.code {
			t.Errorf("%v: %v, want %q", test.why, err, test.code)
		}
		if err != nil && (!errors.Is(err, test.why) || !strings.Contains(err.Error(), "/srv/secret")) {
			t.Errorf("%v: %v does not say which rule", test.why, err)
		}
		if denied := r.check("web1", "/srv/secret/x", "/srv/secret/x"); err == nil && gateway.Code(denied) != "file.denied" {
			t.Errorf("%v: %v, want file.denied", test.why, denied)
		}
		// What is asked for has not been followed then: the rules say nothing of it.
		if denied := r.check("web1", "/srv/x", ""); err != nil && denied != nil {
			t.Errorf("%v: %v", test.why, denied)
		}
	}
}

// A home directory's name is its own, and no pattern.
func TestRulesOfAnOddHome(t *testing.T) {
	m := &machine{Machine: shy{}, home: "/home/[ci]*"}
	r, err := rulesOn(t.Context(), m, hosts.Files{Allow: []string{"~/"}, Deny: []string{"~/.ssh", "*.key", "~/sub/*.pem"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"/home/[ci]*/a": "", "/home/c/a": "file.denied", "/home/[ci]*/.ssh/id": "file.denied",
		"/home/[ci]*/a.key": "file.denied", "/home/[ci]*/sub/a.pem": "file.denied", "/home/[ci]*/a.pem": "",
	} {
		if err := r.check("web1", name, name); gateway.Code(err) != want {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// A disk may ignore case: what is forbidden is so in any, what is allowed is not.
func TestRulesFoldCase(t *testing.T) {
	dir := func(pattern, globs string) rule { return rule{pattern, pattern, pattern, globs, nil} }
	r := rules{allow: []rule{dir("/srv", "")}, deny: []rule{dir("/srv/Secrets", ""), dir("/srv", "*.PEM")}}
	for name, want := range map[string]string{
		"/srv/a": "", "/Srv/a": "file.denied",
		"/srv/Secrets/x": "file.denied", "/srv/secrets": "file.denied", "/SRV/SECRETS/x": "file.denied",
		"/srv/key.pem": "file.denied", "/srv/key.Pem/x": "file.denied", "/srv/key.pem2": "",
		"/srv/ſecretſ/x": "file.denied", "/\u017frv/secrets": "file.denied", "/srv/\u212aey.pem": "file.denied",
	} {
		if err := r.check("web1", name, name); gateway.Code(err) != want {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// What a copy is called until it has its name, and what it takes the place of, is
// forbidden with that.
func TestRulesCoverParts(t *testing.T) {
	dir := func(pattern, globs string) rule { return rule{pattern, pattern, pattern, globs, nil} }
	r := rules{deny: []rule{dir("/srv/Key", ""), dir("/srv", "*.pem")}}
	for name, want := range map[string]string{
		"/srv/.Key.gateway-ABCDEFGHI2.part": "file.denied", "/srv/.a.pem.gateway-ABCDEFGHI2.old": "file.denied", "/SRV/.A.PEM.GATEWAY-abcdefghi2.PART": "file.denied",
		"/srv/.a.gateway-ABCDEFGHI2.part": "", "/srv/.Key.part": "", "/srv/Key.gateway-ABCDEFGHI2.part": "", "/x/.Key.gateway-ABCDEFGHI2.part": "", "/srv/ABCDEFGHI2.part": "",
	} {
		if err := r.check("web1", name, name); gateway.Code(err) != want {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// Every letter that is another one's upper or lower case in any way is denied with it.
func TestRulesFoldEveryLetter(t *testing.T) {
	for letter := rune(1); letter <= unicode.MaxRune; letter++ {
		other := unicode.SimpleFold(letter)
		if other == letter {
			continue
		}
		name := "/srv/" + string(letter)
		r := rules{deny: []rule{{pattern: name, written: name, real: name}}}
		if _, ok := r.denies("/srv/" + string(other) + "/x"); !ok {
			t.Errorf("%U is denied, and %U is not", letter, other)
		}
	}
}
