// Package sshdtest starts real SSH servers for tests: OpenSSH's sshd and
// dropbear, in a temporary directory, on 127.0.0.1, as root or as a plain user.
//
// A server logs in the account that runs the test, with an empty home of the
// test's own: rc files of the real one would decide how long a login takes and
// what it prints. Nothing outside the temporary directory is written, except for
// the directory /run/sshd that sshd insists on as root. Everything a server
// started is killed when the test ends.
package sshdtest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	gossh "golang.org/x/crypto/ssh"
)

// Options shape a server. The zero value is a server with one ed25519 host
// key, public-key logins for [Server.KeyFile], and sftp.
type Options struct {
	// Config holds further lines of sshd_config. They win over the package's
	// own; a Match line and what follows it goes to the end. Not for dropbear.
	Config []string
	// Args are further command-line arguments of the server.
	Args []string
	// HostKeys are the types of host keys: "ed25519", "ecdsa", "rsa".
	HostKeys []string
	// HostCA signs a certificate for each host key, valid for 127.0.0.1;
	// HostCert may change the certificate before it is signed. Not for dropbear.
	HostCA   *Key
	HostCert func(*gossh.Certificate)
	// AuthorizedOptions stand before the key in authorized_keys ("restrict").
	AuthorizedOptions string
	// AuthorizedKeys are further lines of authorized_keys.
	AuthorizedKeys []string
	// Addresses is on how many addresses the server listens, from 127.0.0.1 on;
	// sshd has room for 16. Not for dropbear.
	Addresses int
	// NoSftp leaves the sftp subsystem out. Dropbear serves it by the program of
	// OpenSSH, where that is installed.
	NoSftp bool
	// Wrap is a command that starts the server, such as nsenter with a namespace.
	Wrap []string
	// Account changes the account as the server sees it. It needs root; the
	// test is skipped without. Dropbear always needs root.
	Account *Account
}

// Account is a private view of the running user's account: the server runs in
// a mount namespace with its own /etc/passwd, /etc/shadow and /etc/shells. The
// zero value keeps the real shell and allows no password. As root sshd has one
// even without the option; a plain user's sshd only sets HOME, and a session
// starts in the real home.
type Account struct {
	Shell    string // login shell, an absolute path
	Password string
	// Name is that of a plain user which the machine does not have. Sudoers is
	// what sudoers(5) says for such a server.
	Name, Sudoers string
}

// A Server is a running SSH server.
type Server struct {
	Addr       string // "127.0.0.1:port"
	Host       string // "127.0.0.1"
	Port       int
	User       string
	Home       string            // HOME of a session, an empty directory
	Key        *Key              // a key that may log in
	KeyFile    string            // Key.File
	HostKeys   []gossh.PublicKey // in the order of Options.HostKeys
	HostKey    gossh.PublicKey   // the first of HostKeys
	KnownHosts string            // a known_hosts file with every host key
	Dir        string
	Pid        int // of the listening process

	log *logBuffer
}

// Log returns the end of what the server has logged up to now, of half a MiB at
// least.
func (s *Server) Log() string { return s.log.String() }

// Processes returns the processes that the server has started and that still
// are, those of its sessions included.
func (s *Server) Processes() []int { return descendants(s.Pid, s.Port) }

// Start starts an OpenSSH server and ends it with the test.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	sshd := findServer(t, "sshd", "openssh-server")
	if opts.Account == nil && canUnshare() {
		opts.Account = &Account{}
	}
	s := newServer(t, &opts)

	var own []string
	if opts.Account == nil {
		own = append(own, "SetEnv HOME="+s.Home)
	}
	for i, typ := range opts.HostKeys {
		key := newKeyIn(t, s.Dir, fmt.Sprintf("host_%d_%s", i, typ), typ)
		s.HostKeys = append(s.HostKeys, key.Public())
		own = append(own, "HostKey "+key.File)
		if opts.HostCA != nil {
			file := key.cert(t, opts.HostCA, gossh.HostCert, s.Host, opts.HostCert)
			own = append(own, "HostCertificate "+file)
		}
	}
	authorized := filepath.Join(s.Dir, "authorized_keys")
	s.authorize(t, authorized, opts)
	own = append(own,
		"AuthorizedKeysFile "+authorized,
		"StrictModes no", // the directory above may be anyone's
		"UsePAM no",
		"UseDNS no",
		"PidFile none",
		"PermitRootLogin yes",
		"PasswordAuthentication no",
		"KbdInteractiveAuthentication no",
		"PrintMotd no",
		"PrintLastLog no",
		"LogLevel VERBOSE",
	)
	if !opts.NoSftp {
		own = append(own, "Subsystem sftp internal-sftp")
	}
	if punishes(sshd) {
		own = append(own, "PerSourcePenalties no")
	}
	if os.Getuid() == 0 {
		// sshd refuses to start as root without its privilege separation directory.
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(s.Dir, "sshd_config")
	s.launch(t, &opts, "Server listening on", func(port int) []string {
		all := own
		for i := range max(opts.Addresses, 1) {
			all = append(all, fmt.Sprintf("ListenAddress 127.0.0.%d:%d", i+1, port))
		}
		writeFile(t, config, mergeConfig(opts.Config, all))
		return append([]string{sshd, "-D", "-e", "-f", config}, opts.Args...)
	})
	return s
}

// punishes reports whether the server turns an address away that had logins refused, and
// with it all tests: OpenSSH does since 9.8. An older one does not know the option.
func punishes(sshd string) bool {
	punish.Do(func() {
		said, _ := exec.Command(sshd, "-t", "-f", "/dev/null", "-o", "PerSourcePenalties=no").CombinedOutput()
		punish.does = !bytes.Contains(said, []byte("Bad configuration option"))
	})
	return punish.does
}

var punish struct {
	sync.Once
	does bool
}

// mergeConfig puts extra before own, as the first value wins in sshd_config,
// and a Match block of extra behind, where it does not swallow own.
func mergeConfig(extra, own []string) string {
	split := len(extra)
	for i, line := range extra {
		if word := strings.Fields(line); len(word) > 0 && strings.EqualFold(word[0], "match") {
			split = i
			break
		}
	}
	var b strings.Builder
	for _, lines := range [][]string{extra[:split], own, extra[split:]} {
		for _, line := range lines {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// findServer returns the path of the server's binary. A missing one skips the
// test, or fails it with GWTEST_REQUIRE_SSHD=1.
func findServer(t testing.TB, name, debianPackage string) string {
	t.Helper()
	for _, dir := range append([]string{"/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin"}, filepath.SplitList(os.Getenv("PATH"))...) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	Skip(t, "no %s here: install the package %s", name, debianPackage)
	return ""
}

// ClosedPort refuses connections. A port that was free a moment ago may be the
// next listener's; one below 1024 is given to nobody who does not ask for it.
const ClosedPort = 1

// Skip skips the test, unless GWTEST_REQUIRE_SSHD=1 says that it must run.
func Skip(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("GWTEST_REQUIRE_SSHD") == "1" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

func newServer(t testing.TB, opts *Options) *Server {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if opts.Account != nil && !canUnshare() {
		Skip(t, "a server with an account of its own needs root, and unshare of the package util-linux")
	}
	s := &Server{Host: "127.0.0.1", User: u.Username, Dir: t.TempDir(), log: &logBuffer{}}
	other := opts.Account != nil && opts.Account.Name != ""
	if other {
		s.User, s.Dir = opts.Account.Name, SharedDir(t)
	}
	s.Home = filepath.Join(s.Dir, "home")
	if err := os.Mkdir(s.Home, 0o700); err != nil {
		t.Fatal(err)
	}
	if other {
		if err := os.Chown(s.Home, otherUID, otherUID); err != nil {
			t.Fatal(err)
		}
	}
	s.Key = newKeyIn(t, s.Dir, "id_ed25519", "ed25519")
	s.KeyFile = s.Key.File
	if len(opts.HostKeys) == 0 {
		opts.HostKeys = []string{"ed25519"}
	}
	return s
}

// authorize writes the authorized_keys file.
func (s *Server) authorize(t testing.TB, file string, opts Options) {
	t.Helper()
	line := strings.TrimSpace(opts.AuthorizedOptions + " " + s.Key.Line())
	writeFile(t, file, strings.Join(append([]string{line}, opts.AuthorizedKeys...), "\n")+"\n")
	// sshd reads it with the account's rights.
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
}

// setPort fills in what depends on the port.
func (s *Server) setPort(t testing.TB, port int) {
	t.Helper()
	s.Port = port
	s.Addr = net.JoinHostPort(s.Host, strconv.Itoa(port))
	s.HostKey = s.HostKeys[0]
	s.KnownHosts = filepath.Join(s.Dir, "known_hosts")
	var lines strings.Builder
	for _, key := range s.HostKeys {
		fmt.Fprintf(&lines, "[%s]:%d %s", s.Host, port, gossh.MarshalAuthorizedKey(key))
	}
	writeFile(t, s.KnownHosts, lines.String())
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// exists reports whether path is there.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
