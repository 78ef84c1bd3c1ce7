package integration

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gateway/internal/sshdtest"
	"gateway/transfer"
)

// A disk that is full, and one that is read-only.
func TestTransferDisk(t *testing.T) {
	if os.Getuid() != 0 {
		sshdtest.Skip(t, "mounting a small file system needs root")
	}
	large := largeFile(t, 4<<20)
	tree := smallFiles(t, 500)
	dirs := make(map[string]string) // mounted before the servers start, which see nothing of later mounts
	for _, via := range []string{"local", "sftp", "shell"} {
		dirs[via] = t.TempDir()
		if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "none", dirs[via]).CombinedOutput(); err != nil {
			sshdtest.Skip(t, "mount: %v: %s", err, out)
		}
		t.Cleanup(func() { exec.Command("umount", "-l", dirs[via]).Run() })
	}
	onAll(t, func(t *testing.T, m transfer.Machine) {
		dir := dirs[m.About().Via]
		write(t, dir+"/large", "before", 0o600)
		r := run(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{large}, Into: dir})
		if !strings.HasPrefix(codes(r), "file.no_space") || r.Files != 0 {
			t.Errorf("large: %+v", r)
		}
		if b, err := os.ReadFile(dir + "/large"); err != nil || string(b) != "before" {
			t.Errorf("%v, %d bytes", err, len(b))
		}
		holds(t, dir, "large")
		r = run(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{tree}, Into: dir, Recursive: true})
		if !strings.HasPrefix(codes(r), "file.no_space") {
			t.Errorf("tree: %s: %+v", codes(r), r)
		}
		parts, _ := filepath.Glob(dir + "/tree/*/.*.part")
		if len(parts) > 0 {
			t.Errorf("left behind: %q", parts)
		}
		if out, err := exec.Command("mount", "-o", "remount,ro", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		r = run(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{large}, Into: dir + "/other"})
		if got := codes(r); got != "file.read_only" {
			t.Errorf("read-only: %s: %v", got, r.Problems)
		}
	})
}

// More zeros than the target hashes at a time.
func TestTransferHole(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t, sshdtest.Options{})
	for name, head := range map[string]string{"all": "", "behind a head": "head"} {
		t.Run(name, func(t *testing.T) {
			there := t.TempDir()
			path := write(t, t.TempDir()+"/sparse", head, 0o600)
			must(t, os.Truncate(path, 100<<20+17))
			copyFiles(t, transfer.Copy{From: &transfer.Local{}, To: filesOf(t, s, s.Port), Paths: []string{path}, Into: there})
			sameFiles(t, path, there+"/sparse")
		})
	}
}

// The disk is told of a large file before all of it has come.
func TestTransferWrittenEarly(t *testing.T) {
	var log string
	s := sshdtest.Start(t, sshdtest.Options{NoSftp: true, Config: []string{"Subsystem sftp " + logging(t, &log)}})
	path, there := largeFile(t, 80<<20), t.TempDir()
	for range 5 { // a busy machine may take the server for one that is far away
		copyFiles(t, transfer.Copy{From: &transfer.Local{}, To: filesOf(t, s, s.Port), Paths: []string{path}, Into: there})
		sameFiles(t, path, there+"/large")
		said := mustRead(t, log)
		if n := strings.Count(string(said), `fsync "`); n > 1 {
			return
		}
		must(t, os.Remove(log))
	}
	t.Error("one fsync, at the end")
}

// A file is on the disk before it has its name, which it gets at one stroke.
func TestTransferStoredBeforeItsName(t *testing.T) {
	var log string
	s := sshdtest.Start(t, sshdtest.Options{NoSftp: true, Config: []string{"Subsystem sftp " + logging(t, &log)}})
	there := t.TempDir()
	copyFiles(t, transfer.Copy{From: &transfer.Local{}, To: filesOf(t, s, s.Port), Paths: []string{largeFile(t, 1<<20)}, Into: there})
	said := mustRead(t, log)
	stored, named := bytes.Index(said, []byte(`fsync "`)), bytes.Index(said, []byte(`posix-rename old "`))
	if stored < 0 || named < stored {
		t.Errorf("the server says: %s", said)
	}
}

// logging returns a program that is an sftp server and says in a file what it does.
func logging(t *testing.T, log *string) string {
	t.Helper()
	dir := t.TempDir()
	*log = dir + "/log"
	for _, server := range []string{"/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/libexec/sftp-server"} {
		if _, err := os.Stat(server); err == nil {
			return write(t, dir+"/server", "#!/bin/sh\nexec "+server+" -e -l VERBOSE 2>>"+*log+"\n", 0o700)
		}
	}
	t.Fatal("no sftp-server here")
	return ""
}
