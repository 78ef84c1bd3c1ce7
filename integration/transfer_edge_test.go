package integration

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/transfer"
)

// A file that is called like a pattern hides nothing else that matches it.
func TestTransferFileCalledLikeAPattern(t *testing.T) {
	onAll(t, func(t *testing.T, m transfer.Machine) {
		from, there := t.TempDir(), t.TempDir()
		for _, name := range []string{"*", "a", "b.gz", "x[1]", "[y"} {
			write(t, from+"/"+name, name, 0o644)
		}
		glob := func(pattern string, exclude ...string) *transfer.Report {
			return run(t, transfer.Copy{From: m, To: &transfer.Local{}, Paths: []string{from + "/" + pattern}, Into: there, Glob: true, Exclude: exclude})
		}
		if r := glob("*", "*.gz"); !r.OK() || r.Files != 4 || r.Skipped != 1 {
			t.Errorf("%+v", r)
		}
		holds(t, there, "*", "a", "x[1]", "[y")
		for _, literal := range []string{"x[1]", "[y"} { // they match nothing
			if r := glob(literal); !r.OK() || r.Files != 1 {
				t.Errorf("%s: %+v", literal, r)
			}
		}
	})
}

// What is the same already still gets the permissions and times that it is to have.
func TestTransferUnchangedGetsItsMode(t *testing.T) {
	onAll(t, func(t *testing.T, m transfer.Machine) {
		from, there := t.TempDir(), t.TempDir()
		path := write(t, from+"/f", "same", 0o640)
		write(t, there+"/f", "same", 0o600)
		c := transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: there, Checksum: true, Mode: new(fs.FileMode(0o644)), DryRun: true}
		for _, want := range []fs.FileMode{0o600, 0o644} {
			if r := run(t, c); !r.OK() || r.Unchanged != 1 {
				t.Errorf("%+v", r)
			}
			if info, err := os.Stat(there + "/f"); err != nil || info.Mode() != want {
				t.Errorf("%v, %v, want %v", info.Mode(), err, want)
			}
			c.DryRun = false
		}
		c.Mode, c.Preserve = nil, true
		if r := run(t, c); !r.OK() || r.Unchanged != 1 {
			t.Errorf("%+v", r)
		}
		ours, _ := os.Stat(path)
		if info, err := os.Stat(there + "/f"); err != nil || info.Mode() != 0o640 || info.ModTime().Unix() != ours.ModTime().Unix() {
			t.Errorf("%v %v, %v", info.Mode(), info.ModTime(), err)
		}
	})
}

// A file that its owner can't read is compared before it becomes one.
func TestTransferUnreadableMode(t *testing.T) {
	onAll(t, func(t *testing.T, m transfer.Machine) {
		for _, size := range []int{5, 100 << 10} {
			for _, mode := range []fs.FileMode{0o200, 0} {
				from, there := t.TempDir(), t.TempDir()
				path := write(t, from+"/f", strings.Repeat("x", size), 0o600)
				if r := run(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: there, Mode: &mode}); !r.OK() {
					t.Errorf("%d bytes, %v: %+v", size, mode, r)
				}
				if info, err := os.Stat(there + "/f"); err != nil || info.Mode() != mode || info.Size() != int64(size) {
					t.Errorf("%v, %v", info, err)
				}
				path = write(t, from+"/g", strings.Repeat("x", size), mode)
				if r := run(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: there}); !r.OK() {
					t.Errorf("%d bytes of a file with %v: %+v", size, mode, r)
				}
				if info, err := os.Stat(there + "/g"); err != nil || info.Mode() != mode || info.Size() != int64(size) {
					t.Errorf("of a file with %v: %v, %v", mode, info, err)
				}
				holds(t, there, "f", "g")
			}
		}
	})
}

// A file is not copied onto itself, whatever leads there.
func TestTransferOntoItself(t *testing.T) {
	onAll(t, func(t *testing.T, m transfer.Machine) {
		dir := t.TempDir()
		write(t, dir+"/f", "f", 0o644)
		must(t, errors.Join(os.Symlink("f", dir+"/link"), os.Link(dir+"/f", dir+"/hard"), os.Symlink(dir, dir+"/d")))
		for _, c := range []struct{ from, into string }{{"/f", "/f"}, {"/f", ""}, {"/link", ""}, {"/f", "/d/f"}, {"/f", "/link"}} {
			r := run(t, transfer.Copy{From: m, To: m, Paths: []string{dir + c.from}, Into: dir + c.into})
			if codes(r) != "file.failed" {
				t.Errorf("%s to %s: %+v", c.from, c.into, r)
			}
		}
		link, err := os.Readlink(dir + "/link")
		f, _ := os.Stat(dir + "/f")
		hard, _ := os.Stat(dir + "/hard")
		if err != nil || link != "f" || !os.SameFile(f, hard) {
			t.Errorf("%q, %v", link, err)
		}
		copyFiles(t, transfer.Copy{From: m, To: m, Paths: []string{dir + "/f"}, Into: dir + "/g"})
		other := write(t, t.TempDir()+"/other", "x", 0o644)
		if r := run(t, transfer.Copy{From: m, To: m, Paths: []string{dir + "/f", other}, Into: dir}); codes(r) != "file.failed" || r.Files != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// A symlink that leads nowhere is replaced as any other, also one that leads to itself.
func TestTransferInPlaceOfALoop(t *testing.T) {
	onAll(t, func(t *testing.T, m transfer.Machine) {
		there := t.TempDir()
		path := write(t, t.TempDir()+"/f", "f", 0o644)
		must(t, errors.Join(os.Symlink("loop", there+"/loop"), os.Symlink("nowhere", there+"/gone")))
		for _, name := range []string{"loop", "gone"} {
			c := transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: there + "/" + name, DryRun: true}
			if r := run(t, c); !r.OK() {
				t.Errorf("dry run: %+v", r)
			}
			c.DryRun = false
			copyFiles(t, c)
			if info, err := os.Lstat(there + "/" + name); err != nil || !info.Mode().IsRegular() {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}
		holds(t, there, "gone", "loop")
	})
}

// Who may put files into a directory must not own what a copy goes on with.
func TestTransferForeignPart(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		sshdtest.Skip(t, "only root can give a file away")
	}
	onAll(t, func(t *testing.T, m transfer.Machine) {
		from, there := t.TempDir(), t.TempDir()
		path := write(t, from+"/f", strings.Repeat("x", 9<<20), 0o600)
		part := write(t, there+"/.f.gateway-ABCDEFGHIJ.part", strings.Repeat("x", 8<<20), 0o666)
		must(t, os.Chown(part, 12345, 12345))
		c := transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: there, Resume: true}
		if r := run(t, c); codes(r) != "file.unsafe" {
			t.Errorf("%+v", r)
		}
		holds(t, there, filepath.Base(part))
		c.Resume = false
		copyFiles(t, c)
		holds(t, there, filepath.Base(part), "f")
	})
}

// A server that says it serves sftp, and has no program for it, is served over its shell.
func TestTransferWithoutItsProgram(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{NoSftp: true, Config: []string{"Subsystem sftp /nonexistent/sftp-server"}})
	m := filesOf(t, s, s.Port)
	there := t.TempDir()
	r := copyFiles(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{write(t, t.TempDir()+"/f", "f", 0o600)}, Into: there})
	if r.To.Via != "shell" || r.Files != 1 || r.Checked != 1 {
		t.Errorf("%+v", r)
	}
	holds(t, there, "f")
}

// An account that is forced to be served sftp and nothing else runs no programs, and nobody
// waits for one to greet.
func TestTransferToForcedSftp(t *testing.T) {
	var log string
	s := sshdtest.Start(t, sshdtest.Options{Config: []string{"ForceCommand " + logging(t, &log)}})
	m := filesOf(t, s, s.Port)
	begun := time.Now()
	copyFiles(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{write(t, t.TempDir()+"/f", "f", 0o600), largeFile(t, 1<<20)}, Into: t.TempDir()})
	if took := time.Since(begun); sshdtest.Over(t, took, 20*time.Second) {
		t.Errorf("it took %v", took)
	}
}

// The protocol's times begin in 1970: an older one is not one of the next century.
func TestTransferOldTime(t *testing.T) {
	onAll(t, func(t *testing.T, m transfer.Machine) {
		there := t.TempDir()
		path := write(t, t.TempDir()+"/f", "old", 0o600)
		old := time.Unix(-1e8, 0)
		must(t, os.Chtimes(path, old, old))
		run(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: there, Preserve: true})
		if info, err := os.Stat(there + "/f"); err != nil || info.ModTime().Unix() != old.Unix() && info.ModTime().Unix() != 0 {
			t.Errorf("%v, %v", info, err)
		}
	})
}

// What the kernel makes up has no size before it is read: that of an empty file is no
// proof.
func TestTransferChecksumOfMadeUp(t *testing.T) {
	onAll(t, func(t *testing.T, m transfer.Machine) {
		there := t.TempDir()
		c := transfer.Copy{From: m, To: &transfer.Local{}, Paths: []string{"/proc/version"}, Into: there, Checksum: true}
		write(t, there+"/version", "", 0o600)
		if r := run(t, c); !r.OK() || r.Files != 1 {
			t.Errorf("%+v", r)
		}
		sameFiles(t, "/proc/version", there+"/version")
		c.Paths = []string{write(t, t.TempDir()+"/f", "", 0o600)}
		write(t, there+"/f", "", 0o600)
		if r := run(t, c); !r.OK() || r.Unchanged != 1 {
			t.Errorf("empty files: %+v", r)
		}
	})
}

// A symlink that points where it should is the same, and another one is not, nor a
// file.
func TestTransferChecksumOfSymlinks(t *testing.T) {
	onAll(t, func(t *testing.T, m transfer.Machine) {
		for _, c := range []transfer.Copy{{From: &transfer.Local{}, To: m}, {From: m, To: &transfer.Local{}}} {
			from, there := t.TempDir(), t.TempDir()
			err := errors.Join(os.Symlink("to\n ", from+"/same"), os.Symlink("to\n ", there+"/same"),
				os.Symlink("new", from+"/other"), os.Symlink("old", there+"/other"), os.Symlink("new", from+"/file"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, there+"/file", "new", 0o600)
			c.Paths, c.Into, c.Recursive, c.Checksum, c.DryRun = []string{from + "/."}, there, true, true, true
			for _, want := range []struct{ links, unchanged int64 }{{2, 1}, {2, 1}, {0, 3}} {
				if r := run(t, c); !r.OK() || r.Links != want.links || r.Unchanged != want.unchanged {
					t.Errorf("%+v, want %+v", r, want)
				}
				c.DryRun = false
			}
			sameTrees(t, from, there)
		}
	})
}

// A name that the disk has no room for is called that.
func TestTransferNameTooLong(t *testing.T) {
	onAll(t, func(t *testing.T, m transfer.Machine) {
		there, path := t.TempDir(), write(t, t.TempDir()+"/f", "f", 0o644)
		for length, want := range map[int]string{255: "", 256: "file name too long"} {
			r := run(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: there + "/" + strings.Repeat("n", length)})
			if r.OK() != (want == "") || r.Err != nil && !strings.HasSuffix(r.Err.Error(), want) {
				t.Errorf("%d: %v, want %q", length, r.Err, want)
			}
		}
	})
}
