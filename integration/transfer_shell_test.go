package integration

import (
	"os"
	"os/exec"
	"testing"

	"gateway/internal/sshdtest"
	"gateway/transfer"
)

// TestTransferRcComplains: what the login shell complains about is not what was wrong
// with the file.
func TestTransferRcComplains(t *testing.T) {
	if os.Getuid() != 0 {
		sshdtest.Skip(t, "mounting a small file system needs root")
	}
	large, full := largeFile(t, 4<<20), t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "none", full).CombinedOutput(); err != nil {
		sshdtest.Skip(t, "mount: %v: %s", err, out)
	}
	t.Cleanup(func() { exec.Command("umount", "-l", full).Run() })
	s := sshdtest.Start(t, sshdtest.Options{NoSftp: true, Account: &sshdtest.Account{Shell: "/bin/bash"}})
	write(t, s.Home+"/.bashrc", ". /nonexistent/env.sh", 0o600)
	m := filesOf(t, s, s.Port)
	for into, want := range map[string]string{full: "file.no_space", "/sys/kernel": "file.permission"} {
		if r := run(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{large}, Into: into}); codes(r) != want {
			t.Errorf("%s: got %q, want %q: %+v", into, codes(r), want, r)
		}
	}
	holds(t, full)
	copyFiles(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{large}, Into: t.TempDir()})
}

// TestTransferLongText: where printf is a program, the text of a small file may be too
// long for it.
func TestTransferLongText(t *testing.T) {
	mksh, err := exec.LookPath("mksh")
	if err != nil {
		sshdtest.Skip(t, "%v", err)
	}
	tools := t.TempDir()
	must(t, os.Symlink(mksh, tools+"/sh"))
	s := sshdtest.Start(t, sshdtest.Options{NoSftp: true, Config: []string{"SetEnv PATH=" + tools + ":/usr/bin:/bin"}})
	from, into := t.TempDir(), t.TempDir()
	write(t, from+"/zeros", string(make([]byte, transfer.Small)), 0o640)
	write(t, from+"/short", string(make([]byte, 100)), 0o640)
	copyFiles(t, transfer.Copy{From: &transfer.Local{}, To: filesOf(t, s, s.Port), Paths: []string{from + "/."}, Into: into, Recursive: true})
	sameTrees(t, from, into)
}
