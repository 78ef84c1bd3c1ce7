package sshdtest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// namespace prepares the account's files and returns the command prefix that
// shows them to a server in place of the machine's own. The mounts live in the
// server's mount namespace and end with it.
func (s *Server) namespace(t testing.TB, account *Account) []string {
	t.Helper()
	entry := account.entry(t, s.User, s.Home)
	binds := []string{
		s.replaceLine(t, "/etc/passwd", entry),
		// shadow(5): an empty expiry and no ageing. "*" matches no password.
		s.replaceLine(t, "/etc/shadow", fmt.Sprintf("%s:%s:19000:0:99999:7:::", s.User, account.hash(t))),
	}
	if account.Shell != "" && exists("/etc/shells") {
		// dropbear logs nobody in whose shell is not listed there (getusershell(3)).
		binds = append(binds, s.replaceLine(t, "/etc/shells", account.Shell))
	}
	if account.Sudoers != "" {
		const sudoers = "/etc/sudoers"
		file := filepath.Join(s.Dir, filepath.Base(sudoers))
		writeFile(t, file, "Defaults env_reset, timestamp_timeout=0, secure_path=\"/usr/sbin:/usr/bin:/sbin:/bin\"\n"+account.Sudoers+"\n")
		if err := os.Chmod(file, 0o440); err != nil {
			t.Fatal(err)
		}
		binds = append(binds, sudoers)
	}
	var script strings.Builder
	for _, target := range binds {
		fmt.Fprintf(&script, "mount --bind '%s' '%s' && ", filepath.Join(s.Dir, filepath.Base(target)), target)
	}
	script.WriteString(`exec "$@"`)
	return append(unshare(), "sh", "-c", script.String(), "sh")
}

// otherUID is the id of an account that the machine does not have.
const otherUID = 61235

// ShortDir returns a temporary directory in which sockets have room: with the name of a
// test in it, a path is longer than the 104 bytes of sun_path (unix(4), unix(7)).
func ShortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// SharedDir returns one that other accounts can enter; [testing.T.TempDir] is in one that they
// can't.
func SharedDir(t testing.TB) string {
	t.Helper()
	dir := ShortDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// unshare is the prefix that runs a command in a mount namespace of its own.
func unshare() []string { return []string{"unshare", "-m", "--propagation", "private"} }

// canUnshare reports whether a server can have an account of its own: root can,
// except in most containers.
var canUnshare = sync.OnceValue(func() bool {
	if os.Getuid() != 0 {
		return false
	}
	try := append(unshare(), "sh", "-c", "mount --bind /etc/passwd /etc/passwd")
	return exec.Command(try[0], try[1:]...).Run() == nil
})

// replaceLine writes a copy of the file into the server's directory with line
// in place of the one that has the same first field. It returns the file's path.
func (s *Server) replaceLine(t testing.TB, file, line string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	field, _, _ := strings.Cut(line, ":")
	lines := []string{line}
	for old := range strings.Lines(string(text)) {
		old = strings.TrimSuffix(old, "\n")
		if first, _, _ := strings.Cut(old, ":"); first != field {
			lines = append(lines, old)
		}
	}
	copied := filepath.Join(s.Dir, filepath.Base(file))
	writeFile(t, copied, strings.Join(lines, "\n")+"\n")
	// Sessions read passwd and shells with the account's rights.
	if err := os.Chmod(copied, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// entry returns the account's line of passwd(5) with the private home.
func (a *Account) entry(t testing.TB, name, home string) string {
	t.Helper()
	if a.Name != "" {
		return fmt.Sprintf("%s:x:%d:%d::%s:%s", a.Name, otherUID, otherUID, home, cmp.Or(a.Shell, "/bin/sh"))
	}
	text, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(f) != 7 || f[0] != name {
			continue
		}
		f[5] = home
		if a.Shell != "" {
			f[6] = a.Shell
		}
		return strings.Join(f, ":")
	}
	Skip(t, "account %s is not in /etc/passwd", name)
	return ""
}

// hash returns what shadow(5) holds for the account's password.
func (a *Account) hash(t testing.TB) string {
	t.Helper()
	if a.Password == "" {
		return "*"
	}
	cmd := exec.Command("openssl", "passwd", "-6", "-stdin")
	cmd.Stdin = strings.NewReader(a.Password + "\n")
	out, err := cmd.Output()
	if err != nil {
		Skip(t, "no password hash: openssl passwd: %v", err)
	}
	return strings.TrimSpace(string(out))
}
