package transcript_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// addMounted adds a small disk of its own, where the system lets root have one.
func addMounted(disks map[string]func(*testing.T) disk) {
	disks["mounted"] = mounted
}

func mounted(t *testing.T) disk {
	root := t.TempDir()
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=1m"); err != nil {
		t.Logf("no disk of its own: %v", err) // a container's root; the other disk is enough
		return limited(t)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(root, 0); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(root, "ballast")
	fill := func() {
		if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); err == nil {
			t.Error("the disk has room for 2 MiB")
		}
	}
	free := func() {
		if err := os.Remove(ballast); err != nil {
			t.Error(err)
		}
	}
	return disk{filepath.Join(root, "log"), fill, free, syscall.ENOSPC}
}
