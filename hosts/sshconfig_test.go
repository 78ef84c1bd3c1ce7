package hosts_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/hosts"
	"gateway/internal/sshdtest"
)

// sshPath returns the ssh program. Where there is none the test is skipped,
// unless GWTEST_REQUIRE_SSHD=1 says that it must run.
func sshPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("ssh")
	if err != nil {
		sshdtest.Skip(t, "no ssh to compare with: install the package openssh-client")
	}
	return path
}

func writeFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { // it may be a program
		t.Fatal(err)
	}
	return path
}

// The parser says what ssh -G says.
func TestSSHConfigLikeSSH(t *testing.T) {
	ssh := sshPath(t)
	dir := t.TempDir()
	t.Setenv("GWTEST_KEYS", "/keys")
	t.Setenv("GWTEST_BLANK", "/b l")
	writeFile(t, filepath.Join(dir, "sub", "1.conf"), "Port 1001\nHost inc*\n  User included\n  Port 1002\n")
	writeFile(t, filepath.Join(dir, "sub", "2.conf"), "Host inc2 plain\n  User second\n")
	writeFile(t, filepath.Join(dir, "sub", ".4.conf.swp"), "Host hidden\n User \"cut\n")
	writeFile(t, filepath.Join(dir, "sub", ".5.conf"), "Host hidden\n User five\n")
	writeFile(t, filepath.Join(dir, "sub", "3.conf", "old"), "Host *\n User not.included\n")
	tests := []struct{ name, config, hosts string }{
		{"nothing", "", "a"},
		{"first value wins", "Host a\n User one\nHost a b\n User two\n Port 7\nHost *\n Port 8\n User three\n", "a b c"},
		{"before any host", "User top\nHost a\n User one\n Port 9\n", "a b"},
		{"patterns", "Host w?b* !web9* x\n User one\nHost *.example.com\n User two\n", "web1 web91 wb x host.example.com example.com"},
		{"negation comes first", "Host !a *\n User one\nHost * !b\n Port 9\n", "a b c"},
		{"only negation", "Host !a\n User one\n", "a b"},
		{"spellings", "HOST=a\n\tUSER = one\n PORT=\"7\"\nHost\tb\n User \"two\" # who\nHost \"c\" 'd'\n User x#y\n", "a b c d"},
		{"comments", "# x\n  # y\n\nHost a # b\n User one\n", "a b #"},
		{"crlf", "Host a\r\n User one\r\n Port 7\r\n", "a"},
		{"escapes", "Host a\n IdentityFile \"/a \\\"b\\\" c\"\n IdentityFile /d\\ e\n IdentityFile '/f g'\n IdentityFile /h\\i\n", "a"},
		{"host name", "Host a\n HostName %h.Example.COM\nHost b\n HostName x%%y\nHost C\n HostName c\n", "a b C c A"},
		{"case", "Host Db\n User one\nHost db\n User two\n", "Db db DB"},
		{"keys add up", "Host a\n IdentityFile ~/x\n IdentityFile /y\n IdentityFile ~/x\n CertificateFile ~/x-cert.pub\nHost *\n IdentityFile /z\n IdentitiesOnly yes\n", "a b"},
		{"no keys", "Host a\n IdentityFile none\nHost b\n CertificateFile none\n", "a b"},
		{"tokens", "Host a\n HostName h.x\n Port 77\n User me\n IdentityFile ~/%h-%n-%p-%r-%%-%d\n CertificateFile ${GWTEST_KEYS}/%r\nHost b\n IdentityFile /%u/%h\n", "a b"},
		{"more tokens", "Host a\n HostName h.x\n UserKnownHostsFile /%k /%i/%L/%l\n IdentityFile /%k\nHost b\n HostKeyAlias farm\n UserKnownHostsFile /%k\n", "a b"},
		{"agent", "Host a\n IdentityAgent none\nHost b\n IdentityAgent SSH_AUTH_SOCK\nHost c\n IdentityAgent ~/s\nHost d\n IdentityAgent $GWTEST_KEYS\n", "a b c d"},
		{"jump", "Host a\n ProxyJump me@b1:2200,b2\nHost b\n ProxyJump none\n ProxyJump x\nHost c\n ProxyJump [::1]:22\nHost *\n ProxyJump last\n", "a b c d"},
		{"jump or command", "Host a\n ProxyJump j\n ProxyCommand nc %h %p\nHost b\n ProxyCommand nc  \"%h\" %p # x\n ProxyJump j\nHost c\n ProxyCommand none\n ProxyJump j\nHost d\n ProxyJump none\n ProxyCommand nc\n", "a b c d"},
		{"host keys", "Host a\n UserKnownHostsFile ~/k1 /k2\n GlobalKnownHostsFile /g1 /g2\n HostKeyAlias alias\n HashKnownHosts yes\n StrictHostKeyChecking accept-new\nHost b\n UserKnownHostsFile none\n StrictHostKeyChecking no\nHost c\n StrictHostKeyChecking yes\nHost d\n StrictHostKeyChecking ask\n", "a b c d"},
		{"paths with blanks", "Host a\n UserKnownHostsFile \"/x y/k 1\" '/z' ~/\"k  2\"\n GlobalKnownHostsFile /g\\ y/k\nHost b c\n UserKnownHostsFile \"%d/x %n\" ~/k\nHost c\n UserKnownHostsFile /x y/k\n GlobalKnownHostsFile \"${GWTEST_BLANK}/g\" /h\nHost d\n UserKnownHostsFile \"/with blank\"\nHost *\n UserKnownHostsFile /k1 /k2\n", "a b c d e"},
		{"paths with a percent", "Host a\n UserKnownHostsFile /100%%/k\nHost b\n UserKnownHostsFile /%%h ~/%n\nHost c\n UserKnownHostsFile \"/x y\" /%%k\nHost *\n UserKnownHostsFile \"/a b\"\n", "a b c d"},
		{"files with a percent", "Host a\n IdentityAgent /%%h/%n\n RevokedHostKeys /%%h/%n\nHost b\n IdentityAgent ~/%%s\n RevokedHostKeys ~/%%\nHost c\n IdentityAgent \"/x y/${GWTEST_KEYS}%%\"\n", "a b c"},
		{"alias", "Host a\n HostKeyAlias Farm\n UserKnownHostsFile /%k\n", "a"},
		{"revoked host keys", "Host a\n RevokedHostKeys ~/revoked\nHost b\n RevokedHostKeys none\n", "a b c"},
		{"times", "Host a\n ConnectTimeout 90\n ServerAliveInterval 1m30s\nHost b\n ConnectTimeout 1h1m\n ServerAliveInterval 0\nHost c\n ConnectTimeout none\nHost d\n ConnectTimeout 2147483647\n ServerAliveInterval 3550w\n", "a b c d"},
		{"match all", "Match all\n User one\nHost a\n Port 7\nMatch all # x\n Port 8\n", "a b"},
		{"match host", "Host a\n HostName Target.example\nMatch host target.*,b\n User one\nMatch host a\n Port 7\nMatch originalhost a,c\n Port 8\nMatch host *,!b\n ConnectTimeout 3\n", "a b c d"},
		{"match negated", "Match !host a\n User one\nMatch host a !user root\n Port 7\nMatch !originalhost b,c user *\n Port 9\n", "a b c"},
		{"match user", "Host a\n User bob\nMatch user bob,al*\n Port 7\nMatch user root\n Port 8\nMatch localuser root user=bob\n ConnectTimeout 4\n", "a b"},
		{"match quoted", "Match host \"a\" user \"*\"\n User one\nMatch host=b\n Port 7\n", "a b"},
		{"match final", "Match final host *.example\n User one\nMatch final all\n Port 7\n IdentityFile /last\nHost a\n HostName a.example\n IdentityFile /first\nMatch !final host b\n User two\n", "a b"},
		{"match canonical", "Match canonical all\n Port 7\nMatch !canonical host a\n User one\n", "a b"},
		{"match host in the final pass", "Match final\n Port 9\nHost a\n HostName %h.Example\nMatch host a.example\n User one\n", "a b"},
		{"host in the final pass", "Match final\n Port 9\nHost a.example\n User one\nHost a\n HostName %h.Example\n ConnectTimeout 3\nHost !a.example *\n ConnectTimeout 4\n IdentityFile /last\n", "a b"},
		{"jump with a comment", "Host a\n ProxyJump b,c # by way of both\nHost b\n ProxyJump c#d\n", "a b"},
		{"include", "Include " + dir + "/sub/*.conf\nHost plain\n User late\n", "inc1 inc2 plain other"},
		{"include in a host", "Host inc1\n Include " + dir + "/sub/*.conf\n ConnectTimeout 5\nHost *\n Port 9\n", "inc1 inc2 plain"},
		{"include several", "Include " + dir + "/none/*.conf \"" + dir + "/sub/2.conf\" " + dir + "/sub/1.conf\n", "inc1 inc2 plain"},
		{"include of what is hidden", "Include " + dir + "/sub/.[!4]*\nInclude " + dir + "/[!t]ub/[!2]*.conf\n", "hidden inc1 inc2"},
		{"include of a class with ^", "Include " + dir + "/sub/[^1].conf\nInclude " + dir + "/[^s]ub/2.conf\n", "inc1 inc2 plain"},
		{"include of other classes", "Include " + dir + "/sub/[]2].conf\nInclude " + dir + "/[[:alpha:]]ub/[![:upper:]2]*.conf\nInclude " + dir + "/[!]]u[[]b/1.conf\n", "inc1 inc2 plain"},
		{"include in a match", "Match host inc2\n Include " + dir + "/sub/*\n", "inc1 inc2 plain"},
		{"include below files", "Include " + dir + "/sub/*/old\n", "inc1 plain"},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := writeFile(t, filepath.Join(dir, "config"+strings.Repeat("x", i)), test.config)
			theirs, ours := hosts.NewSSHConfig(file, ssh), hosts.NewSSHConfig(file, "")
			for name := range strings.FieldsSeq(test.hosts) {
				if name == "#" {
					continue
				}
				want, err := theirs.Resolve(t.Context(), name, hosts.Given{})
				if err != nil {
					t.Fatalf("ssh -G: %v", err)
				}
				got, err := ours.Resolve(t.Context(), name, hosts.Given{})
				if err != nil {
					t.Fatalf("parser: %v", err)
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s = %+v\nssh -G: %+v", name, got, want)
				}
			}
		})
	}
}

// What is given goes before the files, and their Match lines and tokens are about
// it, as for ssh.
func TestSSHConfigGiven(t *testing.T) {
	ssh := sshPath(t)
	dir := t.TempDir()
	const config = `
Match user postgres
  Port 5022
Match host 127.0.0.1
  User loop
Match host *.x.com originalhost web1
  ConnectTimeout 7
Match host fe80::1%lo
  ConnectTimeout 9
Match !user bob,postgres
  Port 5023
Host web1
  HostName web1.example
  User someone
  IdentityFile /keys/%r-%h-%p
`
	file := writeFile(t, filepath.Join(dir, "config"), config)
	local, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		given    hosts.Given
		user     string
		port     int
		host     string
		identity string
		timeout  time.Duration
	}{
		{hosts.Given{}, "someone", 5023, "web1.example", "/keys/someone-web1.example-5023", 0},
		{hosts.Given{User: "postgres"}, "postgres", 5022, "web1.example", "/keys/postgres-web1.example-5022", 0},
		{hosts.Given{User: "bob"}, "bob", 0, "web1.example", "/keys/bob-web1.example-22", 0},
		{hosts.Given{User: `CORP\bob`, Port: 22}, `CORP\bob`, 0, "web1.example", `/keys/CORP\bob-web1.example-22`, 0},
		{hosts.Given{User: local.Username, Port: 4}, "", 4, "web1.example", "/keys/" + local.Username + "-web1.example-4", 0},
		{hosts.Given{HostName: "127.0.0.1"}, "loop", 5023, "127.0.0.1", "/keys/loop-127.0.0.1-5023", 0},
		{hosts.Given{HostName: "a.X.com", User: "bob", Port: 7}, "bob", 7, "a.x.com", "/keys/bob-a.x.com-7", 7 * time.Second},
		{hosts.Given{HostName: "fe80::1%lo", User: "bob"}, "bob", 0, "fe80::1%lo", "/keys/bob-fe80::1%lo-22", 9 * time.Second},
		{hosts.Given{HostName: "web1"}, "someone", 5023, "", "/keys/someone-web1-5023", 0},
	} {
		for _, program := range []string{ssh, ""} {
			s, err := hosts.NewSSHConfig(file, program).Resolve(t.Context(), "web1", test.given)
			if err != nil || s.User != test.user || s.Port != test.port || s.Addr != test.host ||
				!slices.Equal(s.Identity, []string{test.identity}) || s.ConnectTimeout != test.timeout {
				t.Errorf("ssh %q, %+v: %+v, %v", program, test.given, s, err)
			}
		}
	}
	// ssh takes neither of these.
	odd := hosts.Given{User: "a;b", HostName: "a b"}
	if s, err := hosts.NewSSHConfig(file, ssh).Resolve(t.Context(), "web1", odd); err != nil || s.ConnectTimeout != 0 {
		t.Errorf("%+v: %+v, %v", odd, s, err)
	}
}

// What ssh refuses, the parser refuses too.
func TestSSHConfigErrors(t *testing.T) {
	ssh := sshPath(t)
	dir := t.TempDir()
	loop := filepath.Join(dir, "loop")
	tests := []struct{ name, path, config string }{
		{"port", "port", "Port 0\n"},
		{"quote", "quote", "Host \"a\n"},
		{"match without argument", "argument", "Match host\n"},
		{"match all with others", "all", "Match all host a\n"},
		{"match nothing", "nothing", "Match\n"},
		{"include loop", "loop", "Include " + loop + "\n"},
	}
	for _, test := range tests {
		file := writeFile(t, filepath.Join(dir, test.path), test.config)
		for _, program := range []string{ssh, ""} {
			_, err := hosts.NewSSHConfig(file, program).Resolve(t.Context(), "a", hosts.Given{})
			if e, ok := errors.AsType[*hosts.Error](err); !ok || e.Code != "inventory.invalid" {
				t.Errorf("%s, ssh %q: %v, want an inventory.invalid", test.name, program, err)
			}
		}
	}
	for _, program := range []string{ssh, ""} {
		if _, err := hosts.NewSSHConfig(filepath.Join(dir, "none"), program).Resolve(t.Context(), "a", hosts.Given{}); err == nil {
			t.Errorf("ssh %q: a file that does not exist was read", program)
		}
	}
}

// A time that ssh does not take is none.
func TestSSHConfigBadTimes(t *testing.T) {
	for _, text := range []string{"30000w", "3551w", "2147483648", "1w2147483647", "99999999999999999999", "-1", "5x", "1.5", "5w-1"} {
		file := writeFile(t, filepath.Join(t.TempDir(), "config"), "ConnectTimeout "+text+"\n")
		s, err := hosts.NewSSHConfig(file, "").Resolve(t.Context(), "a", hosts.Given{})
		if err != nil || s.ConnectTimeout != 0 || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], text+" is not a time") {
			t.Errorf("%s: %v, %q, %v", text, s.ConnectTimeout, s.Warnings, err)
		}
	}
}

func TestSSHConfigKnows(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "more"), "Host inner\n User x\nHost deep-*\n")
	file := writeFile(t, filepath.Join(dir, "config"), `
Host db1 db2 !db3 *.corp
  User one
Host web* !web9
Host * ?* other
  Port 9
Match host matched
  User two
Host gate
  Include `+dir+`/more
Host -oProxyCommand=x a/b
`)
	c := hosts.NewSSHConfig(file, "")
	for name, want := range map[string]bool{
		"db1": true, "db3": false, "x.corp": true, "web1": true, "web9": false, "other": true,
		"anything": false, "matched": false, "inner": false, "deep-1": false, "gate": true,
		"-oProxyCommand=x": false, "a/b": false, "": false,
	} {
		if got, err := c.Knows(name); got != want || err != nil {
			t.Errorf("Knows(%q) = %v, %v, want %v", name, got, err, want)
		}
	}
	aliases, err := c.Aliases()
	if want := []string{"db1", "db2", "other", "gate", "inner"}; err != nil || !slices.Equal(aliases, want) {
		t.Errorf("Aliases = %v, %v, want %v", aliases, err, want)
	}
}

// Only ssh can tell whether some lines apply. The names below them are known.
func TestSSHConfigKnowsWhatMayApply(t *testing.T) {
	ssh := sshPath(t)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "more"), "Host inner\n User x\nHost deep-*\n User x\n Include "+dir+"/deeper\n")
	writeFile(t, filepath.Join(dir, "deeper"), "Host deep-1 else\n Port 7\n")
	for _, test := range []struct {
		match string
		known bool
	}{
		{"exec true", true},
		{"!exec false", true},
		{"originalhost inner,deep-* exec \"exit 0\"", true},
		{"originalhost other exec true", false},
		{"exec true originalhost other", false},
		{"localnetwork 127.0.0.0/8", true},
		{"tagged vpn", true},
	} {
		file := writeFile(t, filepath.Join(dir, "config"), "Match "+test.match+"\n Include "+dir+"/more\n")
		c := hosts.NewSSHConfig(file, ssh)
		for name, want := range map[string]bool{"inner": test.known, "deep-1": test.known, "else": false, "x": false} {
			if got, err := c.Knows(name); got != want || err != nil {
				t.Errorf("Match %s: Knows(%q) = %v, %v, want %v", test.match, name, got, err, want)
			}
			if !strings.Contains(test.match, "exec") {
				continue // not in all versions of ssh
			}
			s, err := c.Resolve(t.Context(), name, hosts.Given{})
			if applies := s.User == "x"; applies != want || err != nil {
				t.Errorf("Match %s: ssh -G %s: user %q, %v; it is known: %v", test.match, name, s.User, err, want)
			}
		}
	}
	file := writeFile(t, filepath.Join(dir, "config"), "Match exec true\n Include "+dir+"/more\n Port 9\nHost *\n Port 8\n")
	if s, err := hosts.NewSSHConfig(file, "").Resolve(t.Context(), "inner", hosts.Given{}); err != nil || s.User != "" || s.Port != 8 {
		t.Errorf("without ssh: %+v, %v; want nothing of what may apply", s, err)
	}
}

// A name costs one ssh, and the first one another for what ssh does by default. A
// name that was asked for before is no default.
func TestSSHConfigAsksOnce(t *testing.T) {
	dir := t.TempDir()
	asked := filepath.Join(dir, "asked")
	program := writeFile(t, filepath.Join(dir, "ssh"), "#!/bin/sh\necho >>"+asked+"\nexec "+sshPath(t)+" \"$@\"\n")
	c := hosts.NewSSHConfig(writeFile(t, filepath.Join(dir, "config"), "Host b\n HostName a\nHost c\n Port 7\n"), program)
	for _, test := range []struct {
		name string
		want hosts.Settings
	}{{"a", hosts.Settings{}}, {"b", hosts.Settings{Host: hosts.Host{Addr: "a"}}}, {"c", hosts.Settings{Host: hosts.Host{Port: 7}}}} {
		if got, err := c.Resolve(t.Context(), test.name, hosts.Given{}); err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s = %+v, %v, want %+v", test.name, got, err, test.want)
		}
	}
	if lines, err := os.ReadFile(asked); err != nil || len(lines) != 4 {
		t.Errorf("ssh was started %d times, %v, want 4", len(lines), err)
	}
}

// A name is never an option, a user or a second word for ssh.
func TestSSHConfigRefusesOptions(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "ran")
	program := writeFile(t, filepath.Join(t.TempDir(), "ssh"), "#!/bin/sh\n: >"+marker+"\n")
	for _, name := range []string{"", "-oProxyCommand=x", "--", "a b", "me@a", "a/b", "ssh://a", "a\n"} {
		if _, err := hosts.NewSSHConfig("", program).Resolve(t.Context(), name, hosts.Given{}); !errors.Is(err, hosts.ErrUnknown) {
			t.Errorf("Resolve(%q): %v, want ErrUnknown", name, err)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("ssh was started")
	}
}

func TestSSHConfigEndsWithItsContext(t *testing.T) {
	program := writeFile(t, filepath.Join(t.TempDir(), "ssh"), "#!/bin/sh\nexec sleep 60\n")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := hosts.NewSSHConfig("", program).Resolve(ctx, "a", hosts.Given{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Resolve: %v, want the deadline", err)
	}
}

// Whoever gives up is told that, by the reason he had, and not that ssh_config is wrong.
func TestSSHConfigGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("a signal")
	cancel(cause)
	_, err := hosts.NewSSHConfig("", sshPath(t)).Resolve(ctx, "a", hosts.Given{})
	if e, ok := errors.AsType[*hosts.Error](err); !ok || e.Code != "cmd.interrupted" || !errors.Is(err, context.Canceled) || !errors.Is(err, cause) || err.Error() != "ssh -G a: a signal" {
		t.Errorf("Resolve: %v, want %v", err, cause)
	}
}

// What keeps ssh waiting is told where it can be told, as a FIFO that nobody writes.
func TestSSHConfigSaysWhyItTakesLong(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	file := writeFile(t, filepath.Join(dir, "config"), "Include "+fifo+"\n")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := hosts.NewSSHConfig(file, sshPath(t)).Resolve(ctx, "a", hosts.Given{}); err == nil || !strings.Contains(err.Error(), fifo+": a FIFO") {
		t.Errorf("Resolve: %v, want that it is a FIFO", err)
	}
}

// TestSSHConfigLeavesAChild: what a Match exec has started may hold on to the output.
func TestSSHConfigLeavesAChild(t *testing.T) {
	ssh := sshPath(t)
	file := writeFile(t, filepath.Join(t.TempDir(), "config"), "Match exec \"sleep 4 & exit 0\"\n User one\n")
	began := time.Now()
	s, err := hosts.NewSSHConfig(file, ssh).Resolve(t.Context(), "a", hosts.Given{})
	if err != nil || s.User != "one" || time.Since(began) > 3*time.Second {
		t.Errorf("after %v: user %q, %v", time.Since(began), s.User, err)
	}
}

// Of what ssh -G prints without quotes, the files say where a path ends, also by
// lines that the parser does not follow. What they leave open is no answer.
func TestSSHConfigListOfFiles(t *testing.T) {
	ssh := sshPath(t)
	for _, test := range []struct {
		name, config string
		want         []string // nil: an error
	}{
		{"behind Match exec", "Match exec true\n UserKnownHostsFile \"/x y/k\" /z\n", []string{"/x y/k", "/z"}},
		{"another line", "Match exec true\n UserKnownHostsFile /x y/k\nMatch exec false\n UserKnownHostsFile \"/a b\"\n", []string{"/x", "y/k"}},
		{"two lines alike", "Match exec true\n UserKnownHostsFile \"/x y\"\nHost a\n UserKnownHostsFile \"/x y\"\n", []string{"/x y"}},
		{"two lines that look alike", "Match exec true\n UserKnownHostsFile /x /y\nHost a\n UserKnownHostsFile \"/x /y\"\n", nil},
		{"a token that is not known here, and blanks", "Host a\n UserKnownHostsFile /%C \"/x y\"\n", nil},
		{"one word", "Match exec true\n UserKnownHostsFile /x\nHost a\n UserKnownHostsFile \"/x y\"\n", []string{"/x"}},
	} {
		file := writeFile(t, filepath.Join(t.TempDir(), "config"), test.config)
		s, err := hosts.NewSSHConfig(file, ssh).Resolve(t.Context(), "a", hosts.Given{})
		e, ok := errors.AsType[*hosts.Error](err)
		if !slices.Equal(s.KnownHosts, test.want) || (err != nil) != (test.want == nil) || err != nil && (!ok || e.Code != "inventory.invalid" || e.Hint == "") {
			t.Errorf("%s: %q, %v, want %q", test.name, s.KnownHosts, err, test.want)
		}
	}
	file := writeFile(t, filepath.Join(t.TempDir(), "config"), "Host a\n UserKnownHostsFile /%C /z\n")
	if s, err := hosts.NewSSHConfig(file, ssh).Resolve(t.Context(), "a", hosts.Given{}); err != nil || len(s.KnownHosts) != 2 || s.KnownHosts[1] != "/z" {
		t.Errorf("a token that is not known here: %q, %v", s.KnownHosts, err)
	}
}

func TestSSHConfigWithoutSSH(t *testing.T) {
	dir := t.TempDir()
	file := writeFile(t, filepath.Join(dir, "config"), "Match exec true host a\n User no\nMatch host b exec true\n User no\nHost *\n User yes\n")
	s, err := hosts.NewSSHConfig(file, filepath.Join(dir, "no-ssh")).Resolve(t.Context(), "a", hosts.Given{})
	if err != nil || s.User != "yes" {
		t.Errorf("Resolve = %+v, %v, want the parser's answer", s, err)
	}
	if want := []string{"Match exec is taken as not matching without ssh"}; !slices.Equal(s.Warnings, want) {
		t.Errorf("Warnings = %q, want %q", s.Warnings, want)
	}
}

// For an account that is in no database, as in a container, ssh does nothing.
func TestSSHConfigWithoutAccount(t *testing.T) {
	dir := t.TempDir()
	program := writeFile(t, filepath.Join(dir, "ssh"), "#!/bin/sh\necho 'No user exists for uid 1000640000' >&2\nexit 255\n")
	file := writeFile(t, filepath.Join(dir, "config"), "Host a\n User bob\n")
	if s, err := hosts.NewSSHConfig(file, program).Resolve(t.Context(), "a", hosts.Given{}); err != nil || s.User != "bob" {
		t.Errorf("Resolve = %+v, %v, want the parser's answer", s, err)
	}
}

// Nor may it have a home or a name. The current directory, which may be a clone of anything, is no home.
func TestSSHConfigWithoutHome(t *testing.T) {
	if !nobody(t, map[string]string{
		".ssh/config": "Host trap\n ProxyCommand ./trap\n",
		"config":      "Host a\n IdentityFile ~/id\n UserKnownHostsFile ~/known\nHost b\n Port 7\n IdentityFile %d%h-%p-%i\n IdentityFile /%u\n",
	}) {
		return
	}
	if known, err := hosts.NewSSHConfig("", "").Knows("trap"); known || err != nil {
		t.Errorf("a host of .ssh/config in the current directory: %v, %v", known, err)
	}
	s, err := hosts.NewSSHConfig("config", "").Resolve(t.Context(), "a", hosts.Given{})
	if err != nil || !slices.Equal(s.Identity, []string{"/id"}) || !slices.Equal(s.KnownHosts, []string{"/known"}) {
		t.Errorf("Resolve = %q %q, %v", s.Identity, s.KnownHosts, err)
	}
	s, err = hosts.NewSSHConfig("config", "").Resolve(t.Context(), "b", hosts.Given{})
	if err != nil || !slices.Equal(s.Identity, []string{"/b-7-61235"}) || !slices.Equal(s.Warnings, []string{"tokens of /%u: the account here has no name"}) {
		t.Errorf("with tokens: %q %q, %v", s.Identity, s.Warnings, err)
	}
}

// nobody runs the test once more, in a directory with the files, for an account that is in no
// database and has no environment. It reports whether this is that run.
func nobody(t *testing.T, files map[string]string) bool {
	t.Helper()
	const here = "GWTEST_NOBODY"
	if os.Getenv(here) != "" {
		return true
	}
	if os.Geteuid() != 0 {
		sshdtest.Skip(t, "only root can be somebody else")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("./tests", "-test.run=^"+t.Name()+"$")
	cmd.Dir = sshdtest.SharedDir(t)
	writeFile(t, filepath.Join(cmd.Dir, "tests"), string(text))
	for name, text := range files {
		writeFile(t, filepath.Join(cmd.Dir, name), text)
	}
	id := &syscall.Credential{Uid: 61235, Gid: 61235}
	if err := filepath.WalkDir(cmd.Dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, int(id.Uid), int(id.Gid)))
	}); err != nil {
		t.Fatal(err)
	}
	cmd.Env = []string{here + "=1", "GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: id}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	return false
}

func TestFill(t *testing.T) {
	inv := parse(t, `
defaults: {user: deploy, connect_timeout: 10s}
hosts:
  a: {login: false}
  b: {jump: x.example.com, agent: true, port: 2222}
  c: {jump: []}
`)
	s := hosts.Settings{Host: hosts.Host{
		Addr: "h", Port: 7, User: "ssh", Jump: []string{"j"}, Agent: "/sock",
		Identity: []string{"/id"}, ConnectTimeout: time.Second, Keepalive: time.Minute, HostKeyAlias: "alias", KnownHosts: []string{},
	}}
	a := s.Fill(host(t, inv, "a"))
	if a.Addr != "h" || a.Port != 7 || a.User != "deploy" || a.ConnectTimeout != 10*time.Second || a.Keepalive != time.Minute ||
		a.Agent != "/sock" || a.HostKeyAlias != "alias" || !slices.Equal(a.Jump, []string{"j"}) || a.Origin("known_hosts") != "ssh_config" {
		t.Errorf("a = %+v", a)
	}
	if a.Origin("addr") != "ssh_config" || !strings.HasSuffix(a.Origin("user"), "(defaults)") {
		t.Errorf("origins of a = %q, %q", a.Origin("addr"), a.Origin("user"))
	}
	b := s.Fill(host(t, inv, "b"))
	if b.Jump[0] != "x.example.com" || b.Agent != hosts.AgentEnv || b.Port != 2222 {
		t.Errorf("b = %+v", b)
	}
	if c := (hosts.Settings{Host: hosts.Host{ProxyCommand: "nc"}}).Fill(host(t, inv, "c")); c.ProxyCommand != "" || len(c.Jump) != 0 {
		t.Errorf("c = %+v: a host that says there is no jump has said how it is reached", c)
	}
	if l := s.Fill(host(t, inv, "localhost")); l.Addr != "" || l.User != "" {
		t.Errorf("localhost = %+v, want it untouched", l)
	}
	if h := s.Fill(hosts.Host{Name: "x", User: "mine"}); h.User != "mine" || h.Port != 7 {
		t.Errorf("host of a caller = %+v", h)
	}
	a.Identity[0] = "/changed"
	if s.Identity[0] != "/id" {
		t.Error("the host shares its list with the settings")
	}
}

func TestParseJump(t *testing.T) {
	tests := []struct {
		text string
		want hosts.Jump
		ok   bool
	}{
		{"bastion", hosts.Jump{Host: "bastion"}, true},
		{"me@b.example.com:2200", hosts.Jump{User: "me", Host: "b.example.com", Port: 2200}, true},
		{"me@corp@b", hosts.Jump{User: "me@corp", Host: "b"}, true},
		{"::1", hosts.Jump{Host: "::1"}, true},
		{"me@[fe80::1]:22", hosts.Jump{User: "me", Host: "fe80::1", Port: 22}, true},
		{"[::1]", hosts.Jump{Host: "::1"}, true},
		{"fe80::1%eth0", hosts.Jump{Host: "fe80::1%eth0"}, true},
		{"[10.9.9.9]", hosts.Jump{Host: "10.9.9.9"}, true},
		{"me@[10.9.9.9]:22", hosts.Jump{User: "me", Host: "10.9.9.9", Port: 22}, true},
		{"[b]:22", hosts.Jump{Host: "b", Port: 22}, true},
		{"ssh://me@b:22", hosts.Jump{User: "me", Host: "b", Port: 22}, true},
		{"", hosts.Jump{}, false},
		{"none", hosts.Jump{}, false},
		{"-oX", hosts.Jump{}, false},
		{"-l@b", hosts.Jump{}, false},
		{"@b", hosts.Jump{}, false},
		{"b:", hosts.Jump{}, false},
		{"b:0", hosts.Jump{}, false},
		{"b:70000", hosts.Jump{}, false},
		{"[b:22", hosts.Jump{}, false},
		{"[none]", hosts.Jump{}, false},
		{"fe80::1%eth0:22", hosts.Jump{}, false},
		{"fe80::1%$(id)", hosts.Jump{}, false},
		{"[fe80::1%;id]:22", hosts.Jump{}, false},
		{"a b", hosts.Jump{}, false},
	}
	for _, test := range tests {
		got, err := hosts.ParseJump(test.text)
		if got != test.want || (err == nil) != test.ok {
			t.Errorf("ParseJump(%q) = %+v, %v, want %+v", test.text, got, err, test.want)
		}
	}
}

// No file makes the parser stumble.
func FuzzSSHConfig(f *testing.F) {
	f.Add("Host a\n User x\nMatch final all\n Port 7\n", "a")
	f.Add("Match host \"a\" !user b,c exec \"x y\"\n IdentityFile \"%d/*\"\n", "b")
	f.Add("=\n\"\nHost=\\\n", "c")
	f.Fuzz(func(t *testing.T, text, name string) {
		if strings.Contains(strings.ToLower(text), "include") {
			return // it would read files of this machine
		}
		c := hosts.NewSSHConfig(writeFile(t, filepath.Join(t.TempDir(), "config"), text), "")
		if _, err := c.Resolve(t.Context(), name, hosts.Given{}); err != nil {
			if _, ok := errors.AsType[*hosts.Error](err); !ok {
				t.Fatalf("error = %v, want a *hosts.Error", err)
			}
		}
		if known, err := c.Knows(name); known && err != nil {
			t.Fatalf("Knows(%q) = %v, %v", name, known, err)
		}
	})
}
