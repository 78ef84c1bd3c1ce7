package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
)

const secret = "hunter2-is-secret"

// complaint is the one line that a failure is, and its hint.
var complaint = regexp.MustCompile(`\Agateway: ([a-z_]+(?:\.[a-z_]+)?): [^\n]+\n(?:hint: [^\n]+\n)?\z`)

// refuses runs gateway with a secret in its environment, and wants nothing but
// one clear line that contains the texts. It returns the hint.
func (u *user) refuses(t *testing.T, args []string, status int, code string, texts ...string) (hint string) {
	t.Helper()
	cmd := u.command(t, args...)
	cmd.Env = append(cmd.Env, "WRONG="+secret)
	got := outcomeOf(t, cmd)
	match := complaint.FindStringSubmatch(got.stderr)
	if got.status != status || match == nil || match[1] != code {
		t.Errorf("got %d %.1000q, want %d and one line of %s", got.status, got.stderr, status, code)
	}
	for _, text := range texts {
		if !strings.Contains(got.stderr, text) {
			t.Errorf("it says %.1000q, want %q in it", got.stderr, text)
		}
	}
	if got.stdout != "" {
		t.Errorf("stdout %.1000q, want nothing", got.stdout)
	}
	if strings.Contains(got.stderr, secret) {
		t.Errorf("the secret is out: %.1000q", got.stderr)
	}
	got.within(t, 5*time.Second)
	_, hint, _ = strings.Cut(got.stderr, "\nhint: ")
	return hint
}

// hints is refuses for what needs a remedy beside its message.
func (u *user) hints(t *testing.T, args []string, status int, code string, texts ...string) {
	t.Helper()
	if u.refuses(t, args, status, code, texts...) == "" {
		t.Errorf("%s without a hint", code)
	}
}

func TestBadInventory(t *testing.T) {
	t.Parallel()
	const self = "the message says it all" // no hint is needed
	tests := []struct {
		name, inventory string
		args            []string
		status          int
		code, text      string
		hint            string
	}{
		{"broken YAML", "hosts:\n  web1: {addr: [\n", []string{"exec", "web1", "true"}, 125, "inventory.invalid", "hosts.yaml:2", ""},
		{"broken YAML, other verb", "hosts:\n\tweb1: {}\n", []string{"hosts", "list"}, 2, "inventory.invalid", "hosts.yaml:2", ""},
		{"binary", "\x00\x01\xff\xfe", []string{"hosts", "list"}, 2, "inventory.invalid", "hosts.yaml", self},
		{"no map", "- web1\n", []string{"hosts", "list"}, 2, "inventory.invalid", "hosts.yaml:1", self},
		{"unknown key", "hosts:\n  web1: {adr: 10.0.0.1}\n", []string{"exec", "web1", "true"}, 125, "inventory.invalid", "did you mean addr?", ""},
		{"bad port", "hosts:\n  web1: {port: 70000}\n", []string{"exec", "web1", "true"}, 125, "inventory.invalid", "hosts.yaml:2", self},
		{"a secret as text", "hosts:\n  web1: {password: " + secret + "}\n", []string{"exec", "web1", "true"}, 125, "inventory.invalid", "hosts.yaml:2", ""},
		{"jump loop", "hosts:\n  web1: {addr: 127.0.0.1, jump: b}\n  b: {addr: 127.0.0.1, jump: web1}\n", []string{"exec", "web1", "true"}, 125, "inventory.invalid", "jump", ""},
		{"jump to itself", "hosts:\n  web1: {addr: 127.0.0.1, jump: web1}\n", []string{"exec", "web1", "true"}, 125, "inventory.invalid", "jump", ""},
		{"unknown jump", "hosts:\n  web1: {addr: 127.0.0.1, jump: bation}\n  bastion: {}\n", []string{"exec", "web1", "true"}, 125, "inventory.invalid", "did you mean bastion", ""},
		{"group loop", "groups: {a: {groups: [b]}, b: {groups: [a]}}\nhosts: {web1: {}}\n", []string{"hosts", "list"}, 2, "inventory.invalid", "hosts.yaml:1", self},
		{"selector that matches nothing", "hosts: {web1: {}}\n", []string{"hosts", "check", "db*"}, 2, "selector.empty", "db*", ""},
		{"tag that matches nothing", "hosts: {web1: {}}\n", []string{"hosts", "check", "tag:eu"}, 2, "selector.empty", "eu", ""},
		{"a terminal for many hosts", "hosts: {web1: {}, web2: {}}\n", []string{"exec", "-t", "web*", "true"}, 2, "usage", "-t", ""},
		{"a selector with an empty term", "hosts: {web1: {}}\n", []string{"hosts", "list", "web1,"}, 2, "selector.invalid", "web1,", ""},
		{"no inventory", "hosts: {web1: {}}\n", []string{"--inventory", "nowhere.yaml", "exec", "web1", "true"}, 125, "inventory.invalid", "nowhere.yaml", self},
		{"a directory as inventory", "hosts: {web1: {}}\n", []string{"--inventory", "/", "hosts", "list"}, 2, "inventory.invalid", "/", self},
		{"missing secret variable", "hosts: {web1: {addr: 127.0.0.1, port: 1, identity: \"env:NOT_SET\"}}\n", []string{"exec", "web1", "true"}, 125, "secret.unreadable", "env:NOT_SET", ""},
		{"unresolvable name", "hosts: {web1: {addr: no-such-host.invalid, agent: false}}\n", []string{"exec", "web1", "true"}, 125, "dns.not_found", "no-such-host.invalid", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			u := newUser(t, test.inventory)
			if hint := u.refuses(t, test.args, test.status, test.code, test.text); hint == "" && test.hint != self {
				t.Errorf("%s without a hint", test.code)
			}
		})
	}
}

func TestBadCredentials(t *testing.T) {
	t.Parallel()
	server := sshdtest.Start(t, sshdtest.Options{})
	encrypted := server.Key.Encrypted(t, "right")
	garbage := filepath.Join(t.TempDir(), "garbage")
	write(t, garbage, "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n", 0o600)
	stranger := sshdtest.NewKey(t, "ed25519")
	tests := []struct{ name, setting, code, text string }{
		{"missing key", "identity: /nowhere/key", "auth.key_unreadable", "/nowhere/key"},
		{"a directory as key", "identity: /tmp", "auth.key_unreadable", "/tmp"},
		{"garbled key", "identity: " + garbage, "auth.key_unreadable", garbage},
		{"wrong passphrase", "identity: " + encrypted + ", passphrase: \"env:WRONG\"", "auth.passphrase", encrypted},
		{"missing passphrase", "identity: " + encrypted + ", passphrase: \"env:NOT_SET\"", "secret.unreadable", "env:NOT_SET"},
		{"nobody to ask for the passphrase", "identity: " + encrypted, "auth.passphrase", encrypted},
		{"passphrase command that fails", "identity: " + encrypted + ", passphrase: \"cmd:echo $WRONG; exit 1\"", "secret.unreadable", "cmd:"},
		{"password where only keys count", "identity: " + stranger.File + ", password: \"env:WRONG\"", "auth.rejected", ""},
		{"stranger", "identity: " + stranger.File, "auth.rejected", ""},
		{"no key at all", "tags: []", "auth.no_key", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			u := newUser(t, fmt.Sprintf("hosts:\n  web1: {addr: %s, port: %d, user: %s, known_hosts: %s, agent: false, %s}\n",
				server.Host, server.Port, server.User, server.KnownHosts, test.setting))
			u.hints(t, []string{"exec", "web1", "true"}, 125, test.code, "web1", test.text)
		})
	}
}

// listen serves connections with what a peer does first, and holds them until
// the test ends unless that closes them.
func listen(t *testing.T, first func(net.Conn)) (port int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { // ends with the listener
		defer close(served)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			first(conn)
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-served
	})
	return listener.Addr().(*net.TCPAddr).Port
}

// says is a peer that says a text and, if it is not to hold, leaves.
func says(text string, hold bool) func(net.Conn) {
	return func(conn net.Conn) {
		io.WriteString(conn, text)
		if !hold {
			// A close with bytes unread would reset what was said.
			conn.(*net.TCPConn).CloseWrite()
			conn.SetReadDeadline(time.Now().Add(time.Second))
			bufio.NewReader(conn).ReadString('\n')
			conn.Close()
		}
	}
}

func TestBadPeers(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	stalled := netsim.Start(t, server.Addr, 0)
	stalled.Stall()
	half := netsim.Start(t, server.Addr, 0)
	half.Truncate(netsim.Down, 1000, netsim.FIN)
	tests := []struct {
		name       string
		port       int
		code, text string
	}{
		{"never answers", listen(t, func(net.Conn) {}), "ssh.handshake", "within 1s"},
		{"silent link", stalled.Port(), "ssh.handshake", "within 1s"},
		{"banner and silence", listen(t, says("SSH-2.0-OpenSSH_9.9\r\n", true)), "ssh.handshake", "within 1s"},
		{"closes at once", listen(t, says("", false)), "ssh.closed", ""},
		{"closes after the banner", listen(t, says("SSH-2.0-OpenSSH_9.9\r\n", false)), "ssh.closed", ""},
		{"closes in the key exchange", half.Port(), "ssh.closed", ""},
		{"turns away", listen(t, says("Not allowed at this time\r\n", false)), "ssh.throttled", ""},
		{"web server", listen(t, says("HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\n\r\n<html>\r\n", false)), "ssh.closed", "HTTP/1.1 400"},
		{"web server that holds", listen(t, says("HTTP/1.1 400 Bad Request\r\n\r\n", true)), "ssh.handshake", "HTTP/1.1 400"},
		{"acts on the terminal", listen(t, says("\x1b]0;pwned\x07\x1b[2J\r\n", true)), "ssh.handshake", ""},
		{"refused", sshdtest.ClosedPort, "tcp.refused", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // they wait, mostly
			u := newUser(t, fmt.Sprintf("hosts:\n  web1: {addr: 127.0.0.1, port: %d, user: %s, identity: %s, known_hosts: %s, agent: false, connect_timeout: 1s}\n",
				test.port, server.User, server.KeyFile, server.KnownHosts))
			u.hints(t, []string{"exec", "web1", "true"}, 125, test.code, "web1", test.text)
		})
	}
}

// TestNoPlaceForSpool has output that is longer than a result holds, and no
// place for the whole: the result is what it would be, with one warning.
func TestNoPlaceForSpool(t *testing.T) {
	t.Parallel()
	states := map[string]func(*testing.T, *user, *exec.Cmd){
		"a file in its place": func(t *testing.T, u *user, cmd *exec.Cmd) {
			cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+u.write(t, "state", ""))
		},
		"read-only": func(_ *testing.T, _ *user, cmd *exec.Cmd) {
			cmd.Env = append(cmd.Env, "XDG_STATE_HOME=/proc/self")
		},
		"full disk": func(t *testing.T, u *user, cmd *exec.Cmd) {
			small := filepath.Dir(u.write(t, "small/x", ""))
			mount := "mount -t tmpfs -o size=1100k none " + small
			if out, err := exec.Command("unshare", "-m", "sh", "-c", mount).CombinedOutput(); err != nil {
				sshdtest.Skip(t, "no small disk here: %v: %s", err, out)
			}
			path, err := exec.LookPath("unshare")
			if err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+small)
			cmd.Args = append([]string{path, "-m", "sh", "-c", mount + ` && exec "$@"`, "sh", cmd.Path}, cmd.Args[1:]...)
			cmd.Path = path
		},
	}
	for name, prepare := range states {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, "hosts: {}\n")
			cmd := u.command(t, "exec", "localhost", "-o", "json", "--", "head -c 3000000 /dev/zero | tr '\\000' x; head -c 3000000 /dev/zero | tr '\\000' y >&2; exit 3")
			prepare(t, u, cmd)
			got := outcomeOf(t, cmd)
			var r struct {
				Verdict        string
				ExitCode       int `json:"exit_code"`
				Stdout, Stderr string
				StdoutBytes    int64 `json:"stdout_bytes"`
				Truncated      bool
				Spool          *string
			}
			if err := json.Unmarshal([]byte(got.stdout), &r); err != nil {
				t.Fatalf("%v in %.300q; stderr %.1000q", err, got.stdout, got.stderr)
			}
			if got.status != 3 || r.Verdict != "exited" || r.ExitCode != 3 || r.StdoutBytes != 3_000_000 || !r.Truncated || r.Spool != nil || len(r.Stdout) < 1<<20 || len(r.Stderr) < 1<<20 {
				r.Stdout, r.Stderr = fmt.Sprint(len(r.Stdout)), fmt.Sprint(len(r.Stderr))
				t.Errorf("got %d %+v", got.status, r)
			}
			if !strings.HasPrefix(got.stderr, "gateway: warning: ") || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("stderr %.1000q, want one warning", got.stderr)
			}
		})
	}
}

func TestUnwritableKnownHosts(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	const file = "/proc/nowhere/known_hosts"
	u := newUser(t, fmt.Sprintf("hosts:\n  web1: {addr: %s, port: %d, user: %s, identity: %s, known_hosts: %s, agent: false, host_key_policy: accept-new}\n",
		server.Host, server.Port, server.User, server.KeyFile, file))
	u.env = append(u.env, "CI=") // else nothing would be recorded
	u.hints(t, []string{"exec", "web1", "true"}, 125, "hostkey.unknown", "web1", "cannot be recorded", file)
}

func TestBadCommands(t *testing.T) {
	u := newUser(t, "hosts: {web1: {transport: local}}\n")
	nul := u.write(t, "nul.sh", "echo a\x00b\n")
	u.refuses(t, []string{"exec", "web1", "--script", nul}, 125, "usage", "NUL")
	u.refuses(t, []string{"exec", "web1", "--script", u.home}, 125, "usage", u.home)
	u.refuses(t, []string{"exec", "web1", "--cwd", "/nowhere", "true"}, 125, "cmd.cwd", "/nowhere")
	u.refuses(t, []string{"exec", "web1", "--shell", "/nowhere/sh", "true"}, 125, "shell.unsupported", "/nowhere/sh")
	u.refuses(t, []string{"exec", "web1", "--timeout", "-1s", "true"}, 125, "usage", "--timeout")
	u.refuses(t, []string{"exec", "web1"}, 125, "usage", "COMMAND")
}

// Nobody waits for who writes a key into a FIFO.
func TestIdentityThatIsAFIFO(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	d := &deploy{t: t, dir: t.TempDir()}
	key := filepath.Join(d.dir, "key")
	must(t, syscall.Mkfifo(key, 0o600))
	d.file("hosts.yaml", fmt.Sprintf("hosts:\n  web1: {addr: 127.0.0.1, port: %d, user: %s, identity: %q, agent: false, host_key_policy: accept-new}\n", s.Port, s.User, key))
	status, _, stderr := d.run("exec", "web1", "--", "true")
	if want := "key " + key + ": a FIFO, and no regular file"; status != 125 || !strings.Contains(stderr, "auth.key_unreadable") || !strings.Contains(stderr, want) {
		t.Errorf("status %d, %s, want 125 and %s", status, stderr, want)
	}
}
