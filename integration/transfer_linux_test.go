package integration

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/transfer"
)

// openACL lets the owner, the user 1 and the group do everything, and others read; each entry
// has its kind, permissions and id: linux/posix_acl_xattr.h.
const openACL = "\x02\x00\x00\x00" +
	"\x01\x00\x07\x00\xff\xff\xff\xff" + "\x02\x00\x07\x00\x01\x00\x00\x00" + "\x04\x00\x07\x00\xff\xff\xff\xff" +
	"\x10\x00\x07\x00\xff\xff\xff\xff" + "\x20\x00\x05\x00\xff\xff\xff\xff"

// A directory with a default ACL has its own umask: what only its owner may read in the
// source, nobody else may read there.
func TestTransferIntoDefaultACL(t *testing.T) {
	onAll(t, func(t *testing.T, m transfer.Machine) {
		there := t.TempDir()
		if err := syscall.Setxattr(there, "system.posix_acl_default", []byte(openACL), 0); err != nil {
			sshdtest.Skip(t, "no ACL here: %v", err)
		}
		for _, mode := range []fs.FileMode{0o600, 0o640, 0o644, 0o755} {
			for _, size := range []int{5, 100 << 10} {
				name := fmt.Sprintf("/f-%03o-%d", mode, size)
				copyFiles(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{write(t, t.TempDir()+name, strings.Repeat("x", size), mode)}, Into: there})
				if info, err := os.Stat(there + name); err != nil || info.Mode() != mode || info.Size() != int64(size) {
					t.Errorf("%s: %v, %v", name, info.Mode(), err)
				}
			}
		}
		if parts, _ := filepath.Glob(there + "/.*.part"); len(parts) > 0 {
			t.Errorf("left behind: %q", parts)
		}
	})
}

// The access time is not that of the comparison.
func TestTransferKeepsTimes(t *testing.T) {
	onAll(t, func(t *testing.T, m transfer.Machine) {
		for _, size := range []int{5, 100 << 10} {
			there := t.TempDir()
			path := write(t, t.TempDir()+"/f", strings.Repeat("x", size), 0o600)
			accessed, modified := time.Unix(1_500_000_000, 0), time.Unix(1_400_000_000, 0)
			must(t, os.Chtimes(path, accessed, modified))
			run(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: there, Preserve: true})
			info, err := os.Stat(there + "/f")
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Sys().(*syscall.Stat_t).Atim.Sec; got != accessed.Unix() && got != modified.Unix() || !info.ModTime().Equal(modified) {
				t.Errorf("%d bytes: accessed %d, modified %v", size, got, info.ModTime())
			}
		}
	})
}
