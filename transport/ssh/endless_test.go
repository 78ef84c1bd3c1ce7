package ssh_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gateway/internal/sshdtest"
	"gateway/transport/ssh"
)

// endless returns a FIFO that nobody writes into, and a link to a device.
func endless(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	fifo, device := filepath.Join(dir, "fifo"), filepath.Join(dir, "device")
	must(t, syscall.Mkfifo(fifo, 0o600))
	must(t, os.Symlink("/dev/zero", device))
	return map[string]string{fifo: "a FIFO", device: "a device"}
}

// What is no regular file holds no key up: as known_hosts it is told and passed over,
// and takes no key; as RevokedHostKeys it may revoke any.
func TestHostKeysOfNoRegularFile(t *testing.T) {
	known := signerOf(1).PublicKey()
	for path, what := range endless(t) {
		within(t, "reading to its end", func() {
			var warned []string
			h := &ssh.HostKeys{
				Name: "web1", Files: []string{path, knownFile(t, "web1 "+keyLine(known))},
				Warn: func(msg string) { warned = append(warned, msg) },
			}
			h.Algorithms()
			if err := check(h, known); err != nil || len(warned) != 1 || !strings.Contains(warned[0], path+": "+what) {
				t.Errorf("known_hosts %s: %v, warnings %q, want one", what, err, warned)
			}
			h = &ssh.HostKeys{Name: "web1", Files: []string{path}, Policy: ssh.AcceptNew}
			if err := check(h, known); codeOf(err) != "hostkey.unknown" || !strings.Contains(err.Error(), "cannot be recorded: open "+path+": "+what) {
				t.Errorf("accept-new into %s: %v", what, err)
			}
			h = &ssh.HostKeys{Name: "web1", Files: []string{knownFile(t, "web1 "+keyLine(known))}, Revoked: path}
			if err := check(h, known); codeOf(err) != "hostkey.revoked" || !strings.Contains(err.Error(), path+": "+what) {
				t.Errorf("RevokedHostKeys %s: %v", what, err)
			}
		})
	}
}

// A file beyond any real one's size is not read to its end.
func TestHostKeysOfHugeFile(t *testing.T) {
	known := signerOf(1).PublicKey()
	huge := knownFile(t, "web1 "+keyLine(known)+"\n")
	must(t, os.Truncate(huge, 1<<40))
	within(t, "reading to its end", func() {
		h := &ssh.HostKeys{Name: "web1", Files: []string{huge}}
		if err := check(h, known); codeOf(err) != "hostkey.unknown" {
			t.Errorf("known_hosts: %v", err)
		}
		h = &ssh.HostKeys{Name: "web1", Pins: []string{keyLine(known)}, Revoked: huge}
		if err := check(h, known); codeOf(err) != "hostkey.revoked" || !strings.Contains(err.Error(), huge+": larger than") {
			t.Errorf("RevokedHostKeys: %v", err)
		}
	})
}

// A certificate that is no regular file is told like a key that is none, also one
// beside the key.
func TestCertificateOfNoRegularFile(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	other := sshdtest.NewKey(t, "ed25519")
	for path, what := range endless(t) {
		named := config(s)
		named.Certificates, named.Identities = []string{path}, []ssh.Identity{{Path: other.File}}
		beside := config(s)
		key := filepath.Join(t.TempDir(), "key")
		must(t, os.WriteFile(key, mustRead(t, other.File), 0o600))
		must(t, os.Symlink(path, key+"-cert.pub"))
		beside.Identities = []ssh.Identity{{Path: key}}
		for file, c := range map[string]ssh.Config{path: named, key + "-cert.pub": beside} {
			within(t, "reading to its end", func() {
				err := refused(t, c, "auth.key_unreadable", "certificate "+file+": "+what+", and no regular file")
				if !strings.Contains(err.Hint, "certificate") {
					t.Errorf("hint %q", err.Hint)
				}
			})
		}
	}
}
