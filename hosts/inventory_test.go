package hosts_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/hosts"
	"gateway/internal/sshdtest"
)

func parse(t *testing.T, text string) *hosts.Inventory {
	t.Helper()
	inv, err := hosts.Parse("hosts.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func host(t *testing.T, inv *hosts.Inventory, name string) hosts.Host {
	t.Helper()
	h, err := inv.Host(name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// The inventory of the contract.
const contract = `
defaults: {user: deploy, connect_timeout: 10s}
groups:
  web:     {hosts: ["web[01-03]"], tags: [eu], env: {APP_ENV: staging}}
  staging: {groups: [web], hosts: [db1]}
hosts:
  "web[01-03]": {addr: "{name}.staging.example.com"}
  db1: {addr: 10.0.0.7, port: 2222, user: postgres, identity: [~/.ssh/db], jump: bastion}
  bastion: {addr: bastion.example.com}
`

func TestInventory(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	inv := parse(t, contract)
	if got, want := inv.Names(), []string{"localhost", "web01", "web02", "web03", "db1", "bastion"}; !slices.Equal(got, want) {
		t.Errorf("Names = %v, want %v", got, want)
	}
	web := host(t, inv, "web02")
	if web.Address() != "web02.staging.example.com" || web.User != "deploy" || web.ConnectTimeout != 10*time.Second || web.Transport != "ssh" {
		t.Errorf("web02 = %+v", web)
	}
	if got, want := web.Groups, []string{"staging", "web"}; !slices.Equal(got, want) {
		t.Errorf("web02.Groups = %v, want %v", got, want)
	}
	for key, want := range map[string]string{
		"addr":        "hosts.yaml:7",
		"user":        "hosts.yaml:2 (defaults)",
		"tags.eu":     "hosts.yaml:4 (group web)",
		"env.APP_ENV": "hosts.yaml:4 (group web)",
		"port":        "",
	} {
		if got := web.Origin(key); got != want {
			t.Errorf("Origin(%q) = %q, want %q", key, got, want)
		}
	}
	db := host(t, inv, "db1")
	if db.User != "postgres" || db.Port != 2222 || !slices.Equal(db.Jump, []string{"bastion"}) || !slices.Equal(db.Identity, []string{"/home/me/.ssh/db"}) {
		t.Errorf("db1 = %+v", db)
	}
	local := host(t, inv, "localhost")
	if !local.Local() || local.User != "" {
		t.Errorf("localhost = %+v, want a local host without defaults", local)
	}
	if got, want := inv.Groups(), []string{"web", "staging"}; !slices.Equal(got, want) {
		t.Errorf("Groups = %v, want %v", got, want)
	}
}

func TestPrecedence(t *testing.T) {
	inv := parse(t, `
groups:
  inner:  {hosts: [a], user: inner, env: {X: inner}, tags: [inner]}
  first:  {hosts: [a], port: 1, shell: first}
  second: {hosts: [a], port: 2, user: second}
  outer:  {groups: [inner], user: outer, port: 3, cwd: /outer, env: {X: outer, Y: outer}, tags: [outer]}
  sub:    {hosts: [b], user: sub}
  super:  {groups: [sub], user: super}
hosts:
  a: {shell: own, env: {Z: own}, tags: [own]}
  b: {login: false, shell: busybox ash}
  c: {jump: [], sudo: {user: root}}
  d: {proxy_command: "nc %h %p"}
  e: {transport: local}
  f: {transport: local, user: own}
  localhost: {env: {A: b}}
defaults: {user: defaults, login: true, jump: x.example.com, sudo: {user: app, flags: -H -n}}
`)
	a := host(t, inv, "a")
	if a.User != "second" || a.Port != 2 || a.Shell != "own" || a.Cwd != "/outer" {
		t.Errorf("a = user %s, port %d, shell %s, cwd %s", a.User, a.Port, a.Shell, a.Cwd)
	}
	if want := map[string]string{"X": "inner", "Y": "outer", "Z": "own"}; !reflect.DeepEqual(a.Env, want) {
		t.Errorf("a.Env = %v, want %v", a.Env, want)
	}
	if want := []string{"outer", "inner", "own"}; !slices.Equal(a.Tags, want) {
		t.Errorf("a.Tags = %v, want %v", a.Tags, want)
	}
	b := host(t, inv, "b")
	if b.User != "sub" || b.Shell != "busybox ash" || b.Login || b.Origin("login") != "hosts.yaml:11" {
		t.Errorf("b = user %s, shell %s, login %v (%s)", b.User, b.Shell, b.Login, b.Origin("login"))
	}
	c := host(t, inv, "c")
	if len(c.Jump) != 0 || c.Sudo.User != "root" || !slices.Equal(c.Sudo.Flags, []string{"-H", "-n"}) {
		t.Errorf("c = jump %v, sudo %+v", c.Jump, c.Sudo)
	}
	if d := host(t, inv, "d"); d.ProxyCommand == "" || d.Jump != nil || d.Origin("jump") != "" {
		t.Errorf("d = %q, jump %v: a proxy command drops the defaults' jump", d.ProxyCommand, d.Jump)
	}
	if e, f := host(t, inv, "e"), host(t, inv, "f"); e.User != "" || e.Origin("user") != "" || !e.Login || f.User != "own" {
		t.Errorf("e = user %q (%s), login %v; f = user %q: the defaults' user is no local host's", e.User, e.Origin("user"), e.Login, f.User)
	}
	if h := host(t, inv, "localhost"); h.User != "" || h.Jump != nil || h.Env["A"] != "b" || !h.Local() {
		t.Errorf("localhost = %+v", h)
	}
}

func TestHostBelongsToCaller(t *testing.T) {
	inv := parse(t, contract)
	before := host(t, inv, "web01")
	changed := host(t, inv, "web01")
	changed.Env["APP_ENV"] = "x"
	changed.Tags[0] = "x"
	changed.Groups[0] = "x"
	if after := host(t, inv, "web01"); !reflect.DeepEqual(before, after) {
		t.Errorf("web01 changed: %+v, was %+v", after, before)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := pick(inv, "@staging,&tag:eu", hosts.Lookup{}); err != nil {
				t.Error(err)
			}
			inv.Names()
			inv.Tags()
		})
	}
	wg.Wait()
}

func TestParseErrors(t *testing.T) {
	tests := []struct {
		name, text string
		want       string // the whole error
		hint       string // a part of the hint
	}{
		{"unknown key", "hosts:\n  a: {adr: x}", "h:2: host a: unknown key adr", "did you mean addr?"},
		{"key of others", "hosts: {a: {hostname: x}}", "h:1: host a: unknown key hostname", "did you mean addr?"},
		{"sudo as in other tools", "hosts: {a: {sudo: yes}}", "h:1: host a: sudo: must be a mapping of keys to values, not text", "its keys are flags, password, user"},
		{"group as a list", "groups: {web: [a]}", "h:1: group web: must be a mapping of keys to values, not a list", "a group is {hosts: [NAME, ...]}"},
		{"nested key", "hosts: {a: {sudo: {usr: x}}}", "h:1: host a: sudo: unknown key sudo.usr", "did you mean user?"},
		{"dotted key", "hosts: {a: {sudo.user: x}}", "h:1: host a: unknown key sudo.user", ""},
		{"hosts on a host", "hosts: {a: {hosts: [b]}}", "h:1: host a: unknown key hosts", ""},
		{"key of ssh_config", "hosts: {a: {host_key_alias: x}}", "h:1: host a: unknown key host_key_alias", ""},
		{"section", "host:\n  a: {}", "h:1: unknown key host: an inventory has defaults, groups, hosts", "did you mean hosts?"},
		{"duplicate key", "hosts:\n  a:\n    port: 1\n    port: 2", "h:4: host a: port is already at line 3", ""},
		{"duplicate host", "hosts:\n  a: {}\n  a: {}", "h:3: hosts: a is already at line 2", ""},
		{"host in two ranges", "hosts:\n  a[1-3]: {}\n  a2: {}", "h:3: host a2 is already defined at h:2", "group"},
		{"case", "hosts:\n  Web: {}\n  web: {}", "h:3: host web differs only in case from Web at h:2", ""},
		{"localhost in another case", "hosts: {LocalHost: {}}", "h:1: host LocalHost differs only in case from localhost", ""},
		{"all", "hosts: {all: {}}", "h:1: all is every host: no host can have that name", ""},
		{"host name", "hosts: {-x: {}}", "h:1: hosts: -x is not a host name", "letters"},
		{"glob", "hosts: {web*: {}}", "h:1: hosts: web*: no patterns here", "range"},
		{"large range", "hosts: {'w[1-99999999]': {}}", "h:1: hosts: w[1-99999999]: the range is too large: more than 65536 names", ""},
		{"large product", "hosts: {'w[1-999][1-999]': {}}", "h:1: hosts: w[1-999][1-999]: the range is too large: more than 65536 names", ""},
		{"port", "hosts: {a: {port: 70000}}", "h:1: host a: port: port 70000 is not within 1–65535", ""},
		{"octal port", "hosts: {a: {port: 0x16}}", "h:1: host a: port: 0x16 is not a whole number", ""},
		{"list for text", "hosts: {a: {user: [x]}}", "h:1: host a: user: must be a single value, not a list", ""},
		{"no value", "hosts: {a: {user: }}", "h:1: host a: user: has no value", "leave"},
		{"tagged", "hosts: {a: {user: !vault x}}", "h:1: host a: user: must be a single value, not something tagged !vault", ""},
		{"tagged list", "hosts: {a: {files: {deny: !append [/etc]}}}", "h:1: host a: files: files.deny: must be a list, not something tagged !append", ""},
		{"tagged mapping", "hosts: {a: !vault {user: x}}", "h:1: host a: must be a mapping of keys to values, not something tagged !vault", ""},
		{"yes", "hosts: {a: {login: yes}}", "h:1: host a: login: yes is neither true nor false", ""},
		{"agent: yes", "hosts: {a: {agent: Yes}, b: {agent: 'yes'}}", "h:1: host a: agent: Yes is neither true nor false", ""},
		{"policy", "hosts: {a: {host_key_policy: strickt}}", "h:1: host a: host_key_policy: strickt is none of strict, accept-new, ask", "did you mean strict?"},
		{"policy off", "hosts: {a: {host_key_policy: 'off'}}", "h:1: host a: host_key_policy: off is none of strict, accept-new, ask", ""},
		{"transport", "hosts: {a: {transport: telnet}}", "h:1: host a: transport: telnet is none of ssh, local", ""},
		{"cwd", "hosts: {a: {cwd: srv}}", "h:1: host a: cwd: srv is a relative path", "absolute"},
		{"env name", "hosts: {a: {env: {A-B: x}}}", "h:1: host a: env: A-B is not a variable's name", ""},
		{"env value", "hosts: {a: {env: {A: [x]}}}", "h:1: host a: env: variable A is not a text", ""},
		{"env_pass", "hosts: {a: {env_pass: [1A]}}", "h:1: host a: env_pass: 1A is not a variable's name", ""},
		{"addr with port", "hosts: {a: {addr: 'x:22'}}", "h:1: host a: addr: x:22 is not an address", "port"},
		{"addr with user", "hosts: {a: {addr: me@x}}", "h:1: host a: addr: me@x is not an address", "user"},
		{"addr as option", "hosts: {a: {addr: -oX}}", "h:1: host a: addr: -oX is not an address", ""},
		{"duration", "hosts: {a: {keepalive: 5 s}}", "h:1: host a: keepalive: 5 s is not a duration", "10s"},
		{"negative duration", "hosts: {a: {keepalive: -5}}", "h:1: host a: keepalive: -5 is negative", ""},
		{"no timeout", "hosts: {a: {connect_timeout: 0}}", "h:1: host a: connect_timeout: 0 is not a timeout", ""},
		{"pin", "hosts: {a: {host_key: 'MD5:aa'}}", "h:1: host a: host_key: MD5:aa is not a SHA256 fingerprint", "ssh-keygen"},
		{"control character", "hosts: {a: {user: \"a\\nb\"}}", "h:1: host a: user: has a control character or a line break in it", ""},
		{"two ways", "hosts: {a: {jump: b.c, proxy_command: nc}}", "h:1: host a: jump and proxy_command exclude each other", ""},
		{"unknown member", "hosts: {web1: {}}\ngroups:\n  g: {hosts: [wbe1]}", "h:3: group g: no host wbe1", "did you mean web1?"},
		{"member of ssh_config", "groups: {g: {hosts: [bastion]}}", "h:1: group g: no host bastion", "define it under hosts, if only as `bastion: {}`"},
		{"unknown group", "groups:\n  stage: {}\n  g: {groups: [stages]}", "h:3: group g: no group stages", "did you mean stage?"},
		{"group among hosts", "groups: {b: {}, g: {hosts: [b]}}", "h:1: group g: no host b", "list it under groups"},
		{"group cycle", "groups:\n  a: {groups: [b]}\n  b: {groups: [c]}\n  c: {groups: [b]}", "h:3: groups contain each other: b -> c -> b", ""},
		{"jump loop", "hosts:\n  a: {jump: b}\n  b: {jump: me@a:22}", "h:2: jump leads in a circle: a -> b -> a", ""},
		{"jump to itself", "defaults: {jump: b}\nhosts: {b: {}}", "h:1: jump leads in a circle: b -> b", "jump: []"},
		{"unknown jump", "hosts: {bastion: {}, a: {jump: bastoin}}", "h:1: jump: no host bastoin", "did you mean bastion?"},
		{"jump none", "hosts: {a: {jump: none}}", "h:1: host a: jump: none is not a jump host", "jump: []"},
		{"merge key", "hosts: {a: &a {}, b: {<<: *a}}", "h:1: host b: << is not supported", "groups"},
		{"documents", "hosts: {}\n---\nhosts: {}", "h:2: a second document in the file", ""},
		{"list", "- a", "h:1: must be a mapping of keys to values, not a list", ""},
		{"other user's home", "hosts: {a: {identity: ~bob/key}}", "h:1: host a: identity: ~ with a user's name is not understood", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := hosts.Parse("h", []byte(test.text))
			e, ok := errors.AsType[*hosts.Error](err)
			if !ok {
				t.Fatalf("error = %v, want a *hosts.Error", err)
			}
			if e.Error() != test.want || e.ErrorCode() != "inventory.invalid" || !strings.Contains(e.ErrorHint(), test.hint) {
				t.Errorf("error = %q (%s, hint %q), want %q (hint with %q)", e, e.ErrorCode(), e.ErrorHint(), test.want, test.hint)
			}
		})
	}
}

func TestSyntaxErrorHasLine(t *testing.T) {
	_, err := hosts.Parse("h", []byte("hosts:\n  a: [\n"))
	if e, ok := errors.AsType[*hosts.Error](err); !ok || e.Line == 0 || !strings.Contains(e.Message, "not YAML") {
		t.Errorf("error = %v, want one with a line", err)
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	for _, field := range []string{
		"password: hunter2", "password: *hunter2", "passphrase: 'hunter2: x'", "password: [hunter2]", "sudo: {password: hunter2}",
		"password: !x hunter2", "password: 'env:hunter2 x'", "identity: \"hunter2\\nx\"", "identity: 'env:hunter2 x'",
		"env: {A: [hunter2]}",
	} {
		_, err := hosts.Parse("h", []byte("hosts: {a: {"+field+"}}"))
		e, ok := errors.AsType[*hosts.Error](err)
		if !ok {
			t.Errorf("%s: error = %v, want a *hosts.Error", field, err)
		} else if strings.Contains(e.Error()+e.Hint, "hunter2") {
			t.Errorf("%s: the error shows the secret: %v", field, err)
		}
	}
	inv := parse(t, "hosts: {a: {password: env:SECRET, passphrase: 'file:keys/pass', sudo: {password: 'cmd:pass show x'}}}")
	a := host(t, inv, "a")
	dir, err := filepath.Abs("keys/pass")
	if err != nil {
		t.Fatal(err)
	}
	if a.Password != "env:SECRET" || a.Passphrase != "file:"+dir || a.Sudo.Password != "cmd:pass show x" {
		t.Errorf("references = %q, %q, %q", a.Password, a.Passphrase, a.Sudo.Password)
	}
}

func TestErrorsAreToldTogether(t *testing.T) {
	_, err := hosts.Parse("h", []byte("hosts:\n  a: {prot: 1}\n  b: {port: x}\n"))
	want := "h:2: host a: unknown key prot: did you mean port?\nh:3: host b: port: x is not a whole number"
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
	_, err = hosts.Parse("h", []byte("hosts: {a: {"+strings.Repeat("x: 1, ", 30)+"}}"))
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 11 || lines[10] != "and 20 more" {
		t.Errorf("error = %v, want ten lines and a count", err)
	}
}

func TestEmptyInventories(t *testing.T) {
	for _, text := range []string{"", "\n# nothing\n", "---\n", "hosts:\ngroups:\n", "null"} {
		if got := parse(t, text).Names(); !slices.Equal(got, []string{"localhost"}) {
			t.Errorf("Parse(%q).Names = %v, want localhost", text, got)
		}
	}
	if got := hosts.New().Names(); !slices.Equal(got, []string{"localhost"}) {
		t.Errorf("New().Names = %v, want localhost", got)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a := write("a.yaml", "defaults: {user: a}\nhosts: {one: {identity: keys/id}}")
	b := write("b.yaml", "hosts: {two: {}}\ngroups: {both: {hosts: [one, two]}}")
	inv, err := hosts.Load(a, b)
	if err != nil {
		t.Fatal(err)
	}
	one, two := host(t, inv, "one"), host(t, inv, "two")
	if one.User != "a" || two.User != "" || one.Identity[0] != filepath.Join(dir, "keys/id") {
		t.Errorf("one = %+v, two = %+v: defaults and paths belong to a file", one, two)
	}

	again := write("c.yaml", "hosts:\n  two: {}")
	if _, err := hosts.Load(b, again); err == nil || err.Error() != again+":2: host two is already defined at "+b+":1" {
		t.Errorf("host in two files: %v, want both places", err)
	}
	if _, err := hosts.Load(filepath.Join(dir, "none.yaml")); !errors.Is(err, os.ErrNotExist) || !strings.HasSuffix(err.Error(), "none.yaml: no such file") {
		t.Errorf("missing file: %v", err)
	}
	if _, err := hosts.Load(dir); err == nil {
		t.Error("a directory was loaded")
	}
	large := write("large.yaml", "#"+strings.Repeat("x", 8<<20))
	if _, err := hosts.Load(large); err == nil || !strings.HasSuffix(err.Error(), "larger than 8 MiB") {
		t.Errorf("large file: %v", err)
	}
}

func TestAliases(t *testing.T) {
	inv := parse(t, "hosts:\n  a: {tags: &t [x, y]}\n  b: {tags: *t}")
	if got := host(t, inv, "b").Tags; !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("b.Tags = %v, want the alias's", got)
	}
	var bomb strings.Builder
	bomb.WriteString("defaults: {identity: &i [" + strings.Repeat("x,", 50_000) + "]}\nhosts:\n  h0: &h {identity: *i}\n")
	for i := range 50_000 {
		bomb.WriteString("  g" + strings.Repeat("x", i%3) + string(rune('a'+i%26)) + strings.Repeat("y", i/78%200) + ": *h\n")
	}
	_, err := hosts.Parse("h", []byte(bomb.String()))
	if err == nil || !strings.Contains(err.Error(), "aliases make the file too large") {
		t.Errorf("error = %.200v, want too many aliases", err)
	}
}

// What a small file can ask for stays cheap.
func TestLargeInventories(t *testing.T) {
	var nested strings.Builder
	nested.WriteString("hosts: {'h[1-60000]': {}}\ngroups:\n  g0: {hosts: ['h[1-60000]']}\n")
	for i := range 200 {
		fmt.Fprintf(&nested, "  g%d: {groups: [g%d]}\n", i+1, i)
	}
	tests := []struct{ name, text, want string }{
		{"members that nobody knows", "hosts: {'h[1-60000]': {}}\ngroups: {g: {hosts: ['x[1-60000]']}}", "no host x1"},
		{"the same host again", "hosts: {'h[1-60000]': {}, 'h[001-60000]': {}}", "already defined"},
		{"groups in groups", nested.String(), "groups nest too many hosts"},
		{"too many hosts", "hosts: {'a[1-60000]': {}, 'b[1-60000]': {}}", "more than 65536 hosts"},
		{"jumps", "defaults: {jump: [x1, x2, x3]}\nhosts: {'h[1-60000]': {}}", "no host x1"},
		{"flow depth", strings.Repeat("[", 9000), "not YAML"},
	}
	for _, test := range tests {
		before := sshdtest.ProcessorTime(t)
		_, err := hosts.Parse("h", []byte(test.text))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %.200v, want %q", test.name, err, test.want)
		}
		if took := sshdtest.ProcessorTime(t) - before; took > 20*time.Second {
			t.Errorf("%s: took %v", test.name, took)
		}
	}
}

func TestUnknownHost(t *testing.T) {
	_, err := parse(t, contract).Host("wbe01")
	e, ok := errors.AsType[*hosts.Error](err)
	if !ok || !errors.Is(err, hosts.ErrUnknown) || e.Code != "inventory.unknown_host" {
		t.Fatalf("error = %v, want ErrUnknown", err)
	}
	if want := "did you mean web01?"; e.Hint != want {
		t.Errorf("hint = %q, want %q", e.Hint, want)
	}
}

// Every field of a host is in the example, and only those.
func TestExample(t *testing.T) {
	inv, err := hosts.Load("../hosts.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, name := range inv.Names() {
		h := host(t, inv, name)
		for _, field := range h.Fields() {
			if field.Origin == "" || reflect.ValueOf(field.Value).IsZero() && field.Key != "agent" {
				t.Errorf("%s: %+v", name, field)
			}
			key, _, _ := strings.Cut(field.Key, ".")
			seen[key] = true
		}
	}
	for _, key := range strings.Fields(`addr port user identity passphrase certificate agent password jump proxy_command known_hosts
		host_key host_key_policy shell login env env_pass cwd sudo tags transport connect_timeout keepalive max_sessions files`) {
		if !seen[key] {
			t.Errorf("the example does not use %s", key)
		}
	}
	if got := host(t, inv, "db1").Agent; got != hosts.AgentNone {
		t.Errorf("db1.Agent = %q, want none", got)
	}
}
