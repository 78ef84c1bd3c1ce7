package gateway_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/sshdtest"
)

// withSSH returns a gateway for an inventory and an ssh_config, in a home of its
// own.
func withSSH(t *testing.T, inventory, sshConfig string, edit func(*gateway.Config)) (g *gateway.Gateway, home string) {
	t.Helper()
	home = t.TempDir()
	t.Setenv("HOME", home)
	file := filepath.Join(home, "ssh_config")
	must(t, os.WriteFile(file, []byte(sshConfig), 0o600))
	return with(t, inventory, func(c *gateway.Config) {
		c.SSHConfig = hosts.NewSSHConfig(file, "")
		if edit != nil {
			edit(c)
		}
	}), home
}

// target returns how a host is reached.
func target(t *testing.T, g *gateway.Gateway, name string) gateway.Target {
	t.Helper()
	host, err := g.Resolve(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	target, err := g.Target(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// What is set to none is not what is left out.
func TestKnownHostsFiles(t *testing.T) {
	const global, global2 = "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"
	for _, test := range []struct {
		name, inventory, config string
		files                   []string // "~" and "~2" are the user's own
		write                   string
	}{
		{"left out", "{}", "", []string{"~", "~2", global, global2}, "~"},
		{"inventory", "{known_hosts: /kh}", "", []string{"/kh"}, "/kh"},
		{"inventory: none", "{known_hosts: []}", "", nil, "none"},
		{"user's", "{}", "UserKnownHostsFile /kh /kh2\n", []string{"/kh", "/kh2", global, global2}, "/kh"},
		{"no user's", "{}", "UserKnownHostsFile none\n", []string{global, global2}, "none"},
		{"global", "{}", "GlobalKnownHostsFile /g /g2\n", []string{"~", "~2", "/g", "/g2"}, "~"},
		{"no global", "{}", "GlobalKnownHostsFile none\n", []string{"~", "~2"}, "~"},
		{"none at all", "{}", "GlobalKnownHostsFile none\nUserKnownHostsFile none\n", nil, "none"},
		{"inventory goes before both", "{known_hosts: /kh}", "UserKnownHostsFile /u\nGlobalKnownHostsFile /g\n", []string{"/kh"}, "/kh"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, home := withSSH(t, "hosts: {web1: "+test.inventory+"}", test.config, nil)
			own := func(path string) string {
				if rest, ok := strings.CutPrefix(path, "~"); ok {
					return filepath.Join(home, ".ssh/known_hosts"+rest)
				}
				return path
			}
			var want []string
			for _, file := range test.files {
				want = append(want, own(file))
			}
			if rule := target(t, g, "web1").HostKeys; !slices.Equal(rule.Files, want) || rule.Write != own(test.write) {
				t.Errorf("files = %q, written to %q, want %q, %q", rule.Files, rule.Write, want, own(test.write))
			}
		})
	}
}

// A service may have no HOME, or one that depends on where it is. Its account has a home all the same.
func TestNoHome(t *testing.T) {
	account, err := user.Current()
	if err != nil {
		sshdtest.Skip(t, "%v", err)
	}
	g, _ := withSSH(t, "hosts: {web1: {}}", "", nil)
	for _, home := range []string{"", "clone"} {
		t.Setenv("HOME", home)
		got := target(t, g, "web1")
		if want := filepath.Join(account.HomeDir, ".ssh/known_hosts"); got.HostKeys.Write != want {
			t.Errorf("HOME=%s: host keys are written to %q, want %q", home, got.HostKeys.Write, want)
		}
		if want := filepath.Join(account.HomeDir, ".ssh/id_ed25519"); got.Identities[0].Key != want {
			t.Errorf("HOME=%s: the first key is %q, want %q", home, got.Identities[0].Key, want)
		}
	}
}

func TestIdentitiesSetToNone(t *testing.T) {
	for name, test := range map[string]struct{ inventory, config string }{
		"inventory":  {"{identity: []}", ""},
		"ssh_config": {"{}", "IdentityFile none\n"},
	} {
		g, _ := withSSH(t, "hosts: {web1: "+test.inventory+"}", test.config, nil)
		if list := target(t, g, "web1").Identities; len(list) != 0 {
			t.Errorf("%s: identities = %v, want none", name, list)
		}
	}
	g, home := withSSH(t, "hosts: {web1: {}}", "", nil)
	if list := target(t, g, "web1").Identities; len(list) == 0 || list[0] != (gateway.Identity{Key: filepath.Join(home, ".ssh/id_ed25519"), Optional: true}) {
		t.Errorf("left out: identities = %v, want the usual files", list)
	}
}

func TestHostOfSSHConfigAlone(t *testing.T) {
	var warned []string
	g, _ := withSSH(t, "hosts: {web1: {}}", "Host db1\n  User one\nHost *\n  Port 9\n  StrictHostKeyChecking no\n", func(c *gateway.Config) {
		c.Warn = func(message string) { warned = append(warned, message) }
	})
	for range 2 {
		h, err := g.Resolve(t.Context(), "db1")
		if err != nil || h.User != "one" || h.Port != 9 || h.Transport != "ssh" || h.Origin("user") != hosts.SSHConfigOrigin {
			t.Errorf("Resolve = %+v, %v", h, err)
		}
	}
	if len(warned) != 1 || !strings.HasPrefix(warned[0], "StrictHostKeyChecking no ") {
		t.Errorf("warnings = %q, want one about StrictHostKeyChecking", warned)
	}
	if _, err := g.Resolve(t.Context(), "wbe1"); gateway.Code(err) != "inventory.unknown_host" || gateway.Hint(err) != "did you mean web1?" {
		t.Errorf("Resolve = %v, hint %q, want unknown with a hint", err, gateway.Hint(err))
	}
	if _, err := g.Resolve(t.Context(), "bd1"); gateway.Hint(err) != "did you mean db1?" {
		t.Errorf("Resolve = %v, hint %q, want the name that ssh_config has", err, gateway.Hint(err))
	}
}

// What ssh_config says about every host, it says about a bastion too.
func TestBastionOfHostStar(t *testing.T) {
	const config = `
Host web1
  ProxyJump b.corp.com
Host web2
  ProxyJump me@[2001:db8::1]:2200
Host web3
  ProxyJump 10.9.9.9
Host loop
  ProxyJump a.corp.com
Host *.corp.com !b.corp.com
  ProxyJump a.corp.com
Host *
  User deploy
  IdentityFile /keys/corp
`
	for _, program := range programs(t) {
		g, _ := withSSH(t, "", config, func(c *gateway.Config) {
			c.SSHConfig = hosts.NewSSHConfig(filepath.Join(os.Getenv("HOME"), "ssh_config"), program)
		})
		want := []gateway.Identity{{Key: "/keys/corp"}}
		if hop := target(t, g, "web1").Jump; hop == nil || hop.Addr != "b.corp.com" || hop.User != "deploy" || !slices.Equal(hop.Identities, want) {
			t.Errorf("bastion = %+v, want it entered as deploy with %v", hop, want)
		}
		if hop := target(t, g, "web2").Jump; hop == nil || hop.Addr != "2001:db8::1" || hop.User != "me" || hop.Port != 2200 || !slices.Equal(hop.Identities, want) {
			t.Errorf("bastion = %+v, want the address, entered with %v", hop, want)
		}
		if hop := target(t, g, "web3").Jump; hop == nil || hop.Addr != "10.9.9.9" || hop.User != "deploy" {
			t.Errorf("bastion = %+v, want the address, entered as deploy", hop)
		}
		host, err := g.Resolve(t.Context(), "loop")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Target(t.Context(), host); err == nil || program == "" && gateway.Code(err) != "proxy.failed" { // ssh refuses it itself
			t.Errorf("loop: Target = %v, want proxy.failed", err)
		}
	}
}

// programs are ssh, and none: both ways to read ssh_config.
func programs(t *testing.T) []string {
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		sshdtest.Skip(t, "no ssh to compare with: install the package openssh-client")
	}
	return []string{ssh, ""}
}

// A port of this machine may be the end of a tunnel to a bastion. This machine itself is none.
func TestBastionOverTunnel(t *testing.T) {
	g, _ := withSSH(t, "hosts: {web1: {addr: 192.0.2.1, jump: 'me@localhost:2222'}, web2: {addr: 192.0.2.1, jump: localhost}}", "", nil)
	if jump := target(t, g, "web1").Jump; jump == nil || jump.Local || jump.Addr != "localhost" || jump.Port != 2222 || jump.User != "me" {
		t.Errorf("jump = %+v, want me@localhost:2222", jump)
	}
	host, err := g.Resolve(t.Context(), "web2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Target(t.Context(), host); gateway.Code(err) != "inventory.invalid" || !strings.Contains(gateway.Hint(err), "tunnel") {
		t.Errorf("over localhost: %v", err)
	}
}

// Match lines and tokens are about the account and the address that a host is
// reached by, wherever these come from.
func TestMatchOfSSHConfig(t *testing.T) {
	const config = `
Match user postgres
  Port 5022
Match originalhost bast user bob
  Port 5601
Match host 127.0.0.1
  Port 5602
Host web1 web2
  ProxyJump bob@bast
Host web2
  User someone
  Port 5099
Host *
  IdentityFile /keys/%r-%h-%p
`
	const inventory = `
hosts:
  web1: {}
  pg: {user: postgres}
  here: {addr: 127.0.0.1}
  far: {port: 5098, jump: [pg, "bob@bast:5603"]}
`
	local, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range programs(t) {
		g, _ := withSSH(t, inventory, config, func(c *gateway.Config) {
			c.SSHConfig = hosts.NewSSHConfig(filepath.Join(os.Getenv("HOME"), "ssh_config"), program)
		})
		for _, test := range []struct {
			host, user string
			want       []string // the machines on the way, the last one first
		}{
			{"web1", "", []string{"ME-web1-22", "bob-bast-5601"}},
			{"web1", "postgres", []string{"postgres-web1-5022", "bob-bast-5601"}},
			{"web2", "", []string{"someone-web2-5099", "bob-bast-5601"}},
			{"web2", "postgres", []string{"postgres-web2-5022", "bob-bast-5601"}},
			{"web2", local.Username, []string{"ME-web2-5099", "bob-bast-5601"}},
			{"pg", "", []string{"postgres-pg-5022"}},
			{"pg", "bob", []string{"bob-pg-22"}},
			{"here", "", []string{"ME-127.0.0.1-5602"}},
			{"far", "", []string{"ME-far-5098", "bob-bast-5603", "postgres-pg-5022"}},
		} {
			host, err := g.ResolveAs(t.Context(), test.host, test.user)
			if err != nil {
				t.Fatal(err)
			}
			to, err := g.Target(t.Context(), host)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for hop := &to; hop != nil; hop = hop.Jump {
				way := fmt.Sprintf("%s-%s-%d", hop.User, hop.Addr, cmp.Or(hop.Port, gateway.DefaultPort))
				if key := hop.Identities[0].Key; key != "/keys/"+way {
					t.Errorf("ssh %q, %s as %q: key %s of %s", program, test.host, test.user, key, way)
				}
				if rest, ok := strings.CutPrefix(way, local.Username+"-"); ok {
					way = "ME-" + rest
				}
				got = append(got, way)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("ssh %q, %s as %q: %q, want %q", program, test.host, test.user, got, test.want)
			}
		}
	}
}

// A path that cannot be expanded says nothing about which files there are.
func TestPathsOfSSHConfig(t *testing.T) {
	t.Setenv("GWTEST_UNSET", "")
	os.Unsetenv("GWTEST_UNSET")
	for _, tt := range []struct{ config, file, identity string }{
		{"UserKnownHostsFile /k/%k", "/k/farm", "HOME/.ssh/id_ed25519"},
		{"UserKnownHostsFile ~/%Z\n  IdentityFile ${GWTEST_UNSET}/key", "HOME/.ssh/known_hosts", "HOME/.ssh/id_ed25519"},
		{"UserKnownHostsFile ~/%Z /kh\n  IdentityFile ~/%Z\n  IdentityFile /k/%k", "/kh", "/k/farm"},
		{"UserKnownHostsFile none\n  IdentityFile none", "none", ""},
	} {
		g, home := withSSH(t, "hosts: {web1: {}}", "Host web1\n  HostKeyAlias farm\n  "+tt.config+"\n", nil)
		got := target(t, g, "web1")
		identity := ""
		if len(got.Identities) > 0 {
			identity = got.Identities[0].Key
		}
		inHome := strings.NewReplacer("HOME", home)
		if got.HostKeys.Write != inHome.Replace(tt.file) || identity != inHome.Replace(tt.identity) {
			t.Errorf("%q: %s and %q, want %s and %q", tt.config, got.HostKeys.Write, identity, tt.file, tt.identity)
		}
	}
}

func TestRevokedHostKeysOfSSHConfig(t *testing.T) {
	t.Setenv("GWTEST_UNSET", "")
	os.Unsetenv("GWTEST_UNSET")
	for file, want := range map[string]string{"/etc/revoked": "/etc/revoked", "none": "", "${GWTEST_UNSET}/revoked": "${GWTEST_UNSET}/revoked"} {
		g, _ := withSSH(t, "hosts: {web1: {known_hosts: /kh}}", "RevokedHostKeys "+file+"\n", nil)
		if got := target(t, g, "web1").HostKeys.Revoked; got != want {
			t.Errorf("RevokedHostKeys %s: %q, want %q", file, got, want)
		}
	}
}
