package sshdtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gossh "golang.org/x/crypto/ssh"
)

// StartDropbear starts a dropbear server and ends it with the test. Dropbear
// reads authorized_keys from the home in the password database and nowhere
// else, so it always runs with an [Account] of its own, as root.
func StartDropbear(t testing.TB, opts Options) *Server {
	t.Helper()
	dropbear := findServer(t, "dropbear", "dropbear-bin")
	keygen, err := exec.LookPath("dropbearkey")
	if err != nil {
		Skip(t, "no dropbearkey here: install the package dropbear-bin")
	}
	if opts.Account == nil {
		opts.Account = &Account{}
	}
	s := newServer(t, &opts)
	args := []string{dropbear, "-F", "-E", "-m"}
	for i, typ := range opts.HostKeys {
		file := filepath.Join(s.Dir, fmt.Sprintf("host_%d_%s", i, typ))
		out, err := exec.Command(keygen, "-t", typ, "-f", file).CombinedOutput()
		if err != nil {
			t.Fatalf("dropbearkey: %v: %s", err, out)
		}
		s.HostKeys = append(s.HostKeys, publicLine(t, string(out)))
		args = append(args, "-r", file)
	}
	// With a wider mode on any of home, .ssh and the file dropbear refuses the key.
	if err := os.Mkdir(filepath.Join(s.Home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.authorize(t, filepath.Join(s.Home, ".ssh", "authorized_keys"), opts)
	args = append(args, opts.Args...)
	// It listens before it says this.
	s.launch(t, &opts, "Not backgrounding", func(port int) []string {
		return append(args[:len(args):len(args)],
			"-P", filepath.Join(s.Dir, "dropbear.pid"), "-p", fmt.Sprintf("127.0.0.1:%d", port))
	})
	return s
}

// publicLine finds the public key in what dropbearkey printed.
func publicLine(t testing.TB, text string) gossh.PublicKey {
	t.Helper()
	for line := range strings.Lines(text) {
		if key, _, _, _, err := gossh.ParseAuthorizedKey([]byte(line)); err == nil {
			return key
		}
	}
	t.Fatalf("no public key in %q", text)
	return nil
}
