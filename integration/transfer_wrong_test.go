package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/gateway"
	"gateway/internal/sshdtest"
	"gateway/transfer"
)

// onAll runs a test on every way to files.
func onAll(t *testing.T, test func(t *testing.T, m transfer.Machine)) {
	t.Helper()
	t.Run("local", func(t *testing.T) { test(t, &transfer.Local{}) })
	t.Run("sftp", func(t *testing.T) {
		s := sshdtest.Start(t, sshdtest.Options{})
		test(t, filesOf(t, s, s.Port))
	})
	t.Run("shell", func(t *testing.T) {
		s := sshdtest.Start(t, sshdtest.Options{NoSftp: true})
		test(t, filesOf(t, s, s.Port))
	})
}

func write(t testing.TB, path, text string, mode os.FileMode) string {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o600))
	must(t, os.Chmod(path, mode))
	return path
}

func run(t testing.TB, c transfer.Copy) *transfer.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	return c.Run(ctx)
}

// codes are those of what went wrong.
func codes(r *transfer.Report) string {
	var all []string
	for _, p := range r.Problems {
		all = append(all, gateway.Code(p.Err))
	}
	if r.Err != nil && len(all) == 0 {
		all = append(all, gateway.Code(r.Err))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// holds fails if a directory has anything in it but names.
func holds(t testing.TB, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if slices.Sort(names); !slices.Equal(got, names) {
		t.Errorf("%s holds %q, want %q", dir, got, names)
	}
}

// Whatever a name is made of, it arrives; so do modes, times, symlinks, empty
// files and holes.
func TestTransferExact(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 255)
	names := []string{"-rf", "a b", "a\nb", "'q'", `"d"`, `back\slash`, "$HOME", "`x`", "caf\xe9", "é", "*", "a?b", "[x]", "~", ".hidden", "x;y&z|", "tag:x", "\x01\x7f", long}
	onAll(t, func(t *testing.T, m transfer.Machine) {
		from, there, here := t.TempDir(), t.TempDir(), t.TempDir()
		old := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
		for i, name := range names {
			path := write(t, filepath.Join(from, "tree", name, name), strings.Repeat(name, i), 0o640)
			must(t, os.Chtimes(path, old, old))
			must(t, os.Symlink("to/"+name[:min(len(name), 100)], filepath.Join(from, "tree", name, "link")))
		}
		write(t, from+"/tree/empty", "", 0o444)
		write(t, from+"/tree/script", "#!/bin/sh\n", 0o755)
		sparse := write(t, from+"/tree/sparse", "head", 0o600)
		f, err := os.OpenFile(sparse, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = f.WriteAt([]byte("middle"), 3<<20); err == nil {
			err = f.Truncate(20 << 20)
		}
		if f.Close(); err != nil {
			t.Fatal(err)
		}
		must(t, os.Mkdir(from+"/tree/locked", 0o555))
		must(t, os.Chtimes(from+"/tree/locked", old, old))
		// Twice: the second time over what is there.
		for range 2 {
			copyFiles(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{from + "/tree/."}, Into: there, Recursive: true, Preserve: true})
			copyFiles(t, transfer.Copy{From: m, To: &transfer.Local{}, Paths: []string{there + "/."}, Into: here + "/back", Recursive: true, Preserve: true})
			sameTrees(t, from+"/tree", there)
			sameTrees(t, from+"/tree", here+"/back")
		}
		for _, dir := range []string{there, here + "/back"} {
			for path, mode := range map[string]os.FileMode{"empty": 0o444, "script": 0o755, "locked": 0o555, "-rf/-rf": 0o640} {
				info, err := os.Stat(filepath.Join(dir, path))
				if err != nil || info.Mode().Perm() != mode {
					t.Errorf("%s/%s: %v, %v, want %v", dir, path, info.Mode(), err, mode)
				}
			}
			for _, path := range []string{"a b/a b", "locked"} {
				if info, err := os.Stat(filepath.Join(dir, path)); err != nil || !info.ModTime().Equal(old) {
					t.Errorf("%s/%s: %v, %v, want %v", dir, path, info.ModTime(), err, old)
				}
			}
		}
		if m.About().Via != "shell" {
			if info, err := os.Stat(there + "/sparse"); err != nil || info.Sys().(*syscall.Stat_t).Blocks > 4<<20/512 {
				t.Errorf("the sparse file has %d blocks", info.Sys().(*syscall.Stat_t).Blocks)
			}
		}
	})
}

// Where a copy goes is what cp does.
func TestTransferWhere(t *testing.T) {
	onAll(t, func(t *testing.T, m transfer.Machine) {
		from := t.TempDir()
		write(t, from+"/a", "a", 0o644)
		write(t, from+"/d/b", "b", 0o644)
		tests := []struct {
			name      string
			paths     []string
			into      string
			recursive bool
			code      string
			want      string // a file of the result
		}{
			{"a file gets a name", []string{"a"}, "new", false, "", "new"},
			{"a file goes into a directory", []string{"a"}, "dir", false, "", "dir/a"},
			{"a slash wants a directory", []string{"a"}, "new/", false, "file.not_found", ""},
			{"a file is replaced", []string{"a"}, "file", false, "", "file"},
			{"a slash behind a file", []string{"a"}, "file/", false, "file.not_directory", ""},
			{"several want a directory", []string{"a", "d/b"}, "new", false, "file.not_found", ""},
			{"several go into a directory", []string{"a", "d/b"}, "dir", false, "", "dir/b"},
			{"a directory gets a name", []string{"d"}, "new", true, "", "new/b"},
			{"a directory goes into one", []string{"d/"}, "dir", true, "", "dir/d/b"},
			{"what is in a directory", []string{"d/."}, "dir", true, "", "dir/b"},
			{"a directory wants -r", []string{"d"}, "dir", false, "file.is_directory", ""},
			{"a directory on a file", []string{"d"}, "file", true, "file.not_directory", ""},
			{"a file on a directory", []string{"d/."}, "clash", true, "file.is_directory", ""},
			{"a source that is not there", []string{"no"}, "dir", false, "file.not_found", ""},
			{"no directory for it", []string{"a"}, "no/new", false, "file.not_found", ""},
			{"none for a directory", []string{"d"}, "no/new", true, "file.not_found", ""},
		}
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				there := t.TempDir()
				write(t, there+"/file", "before", 0o600)
				write(t, there+"/dir/x", "x", 0o600)
				write(t, there+"/clash/b/x", "x", 0o600)
				var paths []string
				for _, p := range test.paths {
					paths = append(paths, from+"/"+p)
				}
				for _, c := range []transfer.Copy{{From: &transfer.Local{}, To: m}, {From: m, To: &transfer.Local{}}} {
					c.Paths, c.Into, c.Recursive = paths, there+"/"+test.into, test.recursive
					c.DryRun = true
					if r := run(t, c); codes(r) != test.code {
						t.Errorf("dry run: %s: %q, want %q: %v %v", r.To.Via, codes(r), test.code, r.Err, r.Problems)
					}
					c.DryRun = false
					r := run(t, c)
					if got := codes(r); got != test.code {
						t.Errorf("%s: %q, want %q: %v %v", r.To.Via, got, test.code, r.Err, r.Problems)
					}
					if test.want != "" {
						if _, err := os.Stat(there + "/" + test.want); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
	})
}

// Each thing that goes wrong has a name, and nothing is lost by it.
func TestTransferRefused(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, m transfer.Machine) {
		local := &transfer.Local{}
		t.Run("special files", func(t *testing.T) {
			from, there := t.TempDir(), t.TempDir()
			write(t, from+"/d/a", "a", 0o644)
			must(t, syscall.Mkfifo(from+"/d/fifo", 0o600))
			r := run(t, transfer.Copy{From: m, To: local, Paths: []string{from + "/d"}, Into: there, Recursive: true})
			if codes(r) != "file.special" || r.Files != 1 || !strings.Contains(r.Problems[0].Err.Error(), "d/fifo is no regular file (a FIFO)") || gateway.Hint(r.Problems[0].Err) == "" {
				t.Errorf("%+v", r)
			}
			r = run(t, transfer.Copy{From: m, To: local, Paths: []string{from + "/d/fifo"}, Into: there})
			if codes(r) != "file.special" || gateway.Hint(r.Problems[0].Err) != "" { // what was named can't be excluded
				t.Errorf("%+v", r)
			}
		})
		t.Run("two of one name", func(t *testing.T) {
			from, there := t.TempDir(), t.TempDir()
			for _, path := range []string{"a/x", "b/x", "c/d/y", "e/d/z"} {
				write(t, from+"/"+path, path, 0o644)
			}
			paths := []string{from + "/a/x", from + "/b/x", from + "/a/x", from + "/c/d", from + "/e/d", from + "/c/.", from + "/e/."}
			for _, dry := range []bool{true, false} {
				r := run(t, transfer.Copy{From: m, To: local, Paths: paths[:5], Into: there, Recursive: true, DryRun: dry})
				if codes(r) != "file.exists file.exists" || r.Files != 2 {
					t.Errorf("%+v", r)
				}
			}
			sameFiles(t, from+"/a/x", there+"/x")
			holds(t, there+"/d", "y")
			copyFiles(t, transfer.Copy{From: m, To: local, Paths: paths[5:], Into: there, Recursive: true})
			holds(t, there+"/d", "y", "z")
		})
		t.Run("a symlink to the target", func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir+"/d/a", "a", 0o644)
			must(t, os.Symlink("../to", dir+"/d/to"))
			r := run(t, transfer.Copy{From: m, To: m, Paths: []string{dir + "/d/."}, Into: dir + "/to", Recursive: true, Links: transfer.FollowLinks})
			if codes(r) != "file.failed" || r.Files != 1 {
				t.Errorf("%s: %d files", codes(r), r.Files)
			}
			holds(t, dir+"/to", "a")
		})
		t.Run("special targets", func(t *testing.T) {
			from, there := t.TempDir(), t.TempDir()
			write(t, from+"/file", "a", 0o644)
			must(t, os.Symlink("file", from+"/link"))
			for _, name := range []string{"file", "link"} {
				must(t, syscall.Mkfifo(there+"/"+name, 0o600))
			}
			for _, dry := range []bool{true, false} {
				r := run(t, transfer.Copy{From: local, To: m, Paths: []string{from + "/."}, Into: there, Recursive: true, DryRun: dry})
				if codes(r) != "file.special file.special" {
					t.Errorf("%+v", r)
				}
			}
			for _, name := range []string{"file", "link"} {
				if info, err := os.Lstat(there + "/" + name); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
					t.Errorf("%s: %v, %v", name, info, err)
				}
			}
			holds(t, there, "file", "link")
		})
		t.Run("symlinks", func(t *testing.T) {
			from := t.TempDir()
			write(t, from+"/d/a", "a", 0o644)
			for name, target := range map[string]string{"file": "a", "loop": "loop", "up": ".", "gone": "nowhere"} {
				must(t, os.Symlink(target, from+"/d/"+name))
			}
			for links, want := range map[transfer.Links]string{transfer.KeepLinks: "", transfer.SkipLinks: "", transfer.FollowLinks: "followed"} {
				there := t.TempDir()
				r := run(t, transfer.Copy{From: m, To: local, Paths: []string{from + "/d/."}, Into: there, Recursive: true, Links: links})
				switch {
				case links == transfer.KeepLinks:
					sameTrees(t, from+"/d", there)
				case links == transfer.SkipLinks:
					holds(t, there, "a")
				case r.Failed < 3: // loop, gone, and up in itself without end
					t.Errorf("%s: %+v", want, r)
				}
				if links != transfer.FollowLinks && !r.OK() {
					t.Errorf("%v: %+v", links, r)
				}
			}
		})
		t.Run("exclude and dry run", func(t *testing.T) {
			from, there := t.TempDir(), t.TempDir()
			for _, path := range []string{"d/a.o", "d/a.c", "d/.git/x", "d/s/a.o", "d/s/t/z"} {
				write(t, from+"/"+path, "x", 0o644)
			}
			c := transfer.Copy{From: local, To: m, Paths: []string{from + "/d"}, Into: there, Recursive: true, Exclude: []string{"*.o", ".git", "s/t"}, DryRun: true}
			if r := run(t, c); !r.OK() || r.Files != 1 || r.Skipped != 4 {
				t.Errorf("%+v", r)
			}
			holds(t, there)
			c.DryRun = false
			if r := run(t, c); !r.OK() || r.Files != 1 {
				t.Errorf("%+v", r)
			}
			holds(t, there+"/d", "a.c", "s")
			must(t, os.Symlink("d", there+"/link"))
			c.Paths, c.Into, c.DryRun, c.Checksum = []string{from + "/d/."}, there+"/link", true, true
			if r := run(t, c); !r.OK() || r.Files != 0 || r.Unchanged != 1 {
				t.Errorf("%+v", r)
			}
			c = transfer.Copy{From: local, To: m, Paths: []string{from + "/d"}, Into: there + "/e", Recursive: true, Exclude: []string{"[!a]*"}}
			if r := run(t, c); !r.OK() || r.Files != 2 {
				t.Errorf("%+v", r)
			}
			holds(t, there+"/e", "a.c", "a.o")
		})
		t.Run("globs", func(t *testing.T) {
			from, there := t.TempDir(), t.TempDir()
			for _, path := range []string{"x1/a.log", "x2/b.log", "x2/.c.log", "y/d.log", "*.log", "x3"} {
				write(t, from+"/"+path, path, 0o644)
			}
			for pattern, want := range map[string][]string{
				"/x?/*.log": {"a.log", "b.log"}, "/[y]/d.*": {"d.log"}, "/*.log": {"*.log"},
				"/[!x]/*": {"d.log"}, "/[!y*]*": {"x1", "x2", "x3"}, "/x*/": {"x1", "x2"}, `/[!\]x]/*`: {"d.log"},
			} {
				there := t.TempDir()
				if r := run(t, transfer.Copy{From: m, To: local, Glob: true, Recursive: true, Paths: []string{from + pattern}, Into: there}); !r.OK() {
					t.Errorf("%s: %+v", pattern, r)
				}
				holds(t, there, want...)
			}
			if r := run(t, transfer.Copy{From: m, To: local, Glob: true, Paths: []string{from + "/z*"}, Into: there}); codes(r) != "file.not_found" {
				t.Errorf("%+v", r)
			}
		})
		t.Run("what vanishes and what changes", func(t *testing.T) {
			from, there := t.TempDir(), t.TempDir()
			write(t, there+"/a", "before", 0o600)
			path := write(t, from+"/a", strings.Repeat("x", 8<<20), 0o644)
			shrink := &moved{limit: 1, then: func() { os.Truncate(path, 5<<20) }}
			if r := run(t, transfer.Copy{From: m, To: local, Paths: []string{path}, Into: there, Watch: shrink}); codes(r) != "file.changed" {
				t.Errorf("%+v", r)
			}
			if b, err := os.ReadFile(there + "/a"); err != nil || string(b) != "before" {
				t.Errorf("%v, %d bytes", err, len(b))
			}
			holds(t, there, "a")
		})
		t.Run("a log that grows", func(t *testing.T) {
			from, there := t.TempDir(), t.TempDir()
			path := write(t, from+"/log", strings.Repeat("x", 6<<20), 0o644)
			grow := &moved{limit: 1, then: func() {
				f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
				if err == nil {
					_, err = f.WriteString("more")
					f.Close()
				}
				if err != nil {
					t.Error(err)
				}
			}}
			if r := run(t, transfer.Copy{From: m, To: local, Paths: []string{path}, Into: there, Watch: grow}); !r.OK() || r.Bytes != 6<<20 {
				t.Errorf("%+v", r)
			}
		})
		// Longer than the 32 MiB that the target hashes at a time.
		t.Run("what is sent changes", func(t *testing.T) {
			const size = 33<<20 + 17
			for name, c := range map[string]struct {
				flag int
				code string
			}{"at its end": {os.O_APPEND, ""}, "at its beginning": {0, "file.changed"}} {
				from, there := t.TempDir(), t.TempDir()
				path := write(t, from+"/a", strings.Repeat("x", size), 0o644)
				change := &moved{limit: size - 4<<20, then: func() {
					f, err := os.OpenFile(path, c.flag|os.O_WRONLY, 0)
					if err == nil {
						_, err = f.WriteString("more")
						f.Close()
					}
					if err != nil {
						t.Error(err)
					}
				}}
				r := run(t, transfer.Copy{From: local, To: m, Paths: []string{path}, Into: there, Watch: change})
				if codes(r) != c.code || c.code == "" && r.Bytes != size {
					t.Errorf("%s: %+v", name, r)
				}
			}
		})
		t.Run("a file that is made up as it is read", func(t *testing.T) {
			there := t.TempDir()
			copyFiles(t, transfer.Copy{From: m, To: local, Paths: []string{"/proc/version"}, Into: there})
			sameFiles(t, "/proc/version", there+"/version")
			copyFiles(t, transfer.Copy{From: m, To: local, Paths: []string{"/proc/kallsyms"}, Into: there})
			back := t.TempDir()
			copyFiles(t, transfer.Copy{From: local, To: m, Paths: []string{"/proc/kallsyms"}, Into: back})
			want, err := os.ReadFile("/proc/kallsyms")
			half := len(want) / 2 // modules, whose symbols come last, come and go
			for _, dir := range []string{there, back} {
				got, failed := os.ReadFile(dir + "/kallsyms")
				if err != nil || failed != nil || len(got) < half || !bytes.Equal(got[:half], want[:half]) {
					t.Errorf("%d bytes, %v; want %d, %v", len(got), failed, len(want), err)
				}
			}
		})
	})
}

// TestManyLargeOverShell: a program that has written a file makes room for the
// next one.
func TestManyLargeOverShell(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{NoSftp: true})
	from, to := t.TempDir(), t.TempDir()
	for i := range 8 {
		must(t, os.WriteFile(fmt.Sprintf("%s/%d", from, i), make([]byte, 50_000+i), 0o644))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	copying := transfer.Copy{From: &transfer.Local{}, To: filesOf(t, s, s.Port), Paths: []string{from + "/."}, Into: to, Recursive: true}
	if r := copying.Run(ctx); r.Files != 8 || r.Failed > 0 {
		t.Fatalf("%+v", r)
	}
	sameTrees(t, from, to)
}

// TestManyThatGrowOverShell: what was read of a file that grows is hashed here where
// the machine can't do it, which takes a program that reads it once more.
func TestManyThatGrowOverShell(t *testing.T) {
	tools := t.TempDir()
	for _, name := range []string{"sh", "stat", "find", "grep", "cat", "head", "tail", "dd", "readlink"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		must(t, os.Symlink(path, tools+"/"+name))
	}
	s := sshdtest.Start(t, sshdtest.Options{NoSftp: true, Config: []string{"SetEnv PATH=" + tools}})
	m := filesOf(t, s, s.Port)
	if h := m.(interface{ Hashes(context.Context) bool }); h.Hashes(t.Context()) {
		t.Fatal("the machine hashes")
	}
	from, into := t.TempDir(), t.TempDir()
	for i := range 8 {
		write(t, fmt.Sprintf("%s/%d", from, i), strings.Repeat("a", 50_000), 0o644)
	}
	grow := func(path string) { // and is at no time shorter than before
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = f.WriteString(strings.Repeat("a", 10_000))
			f.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	copying := transfer.Copy{From: growing{m, grow}, To: &transfer.Local{}, Paths: []string{from + "/."}, Into: into, Recursive: true}
	if r := copying.Run(ctx); r.Files != 8 || r.Failed > 0 {
		t.Fatalf("%+v", r)
	}
}

// growing is a machine whose files grow while they are read.
type growing struct {
	transfer.Machine
	grow func(path string)
}

func (g growing) Open(ctx context.Context, path string, info transfer.Info, at int64) (transfer.Content, error) {
	content, err := g.Machine.Open(ctx, path, info, at)
	g.grow(path)
	return content, err
}

// between is a machine where something happens before a file is opened.
type between struct {
	transfer.Machine
	then func()
}

func (b between) Open(ctx context.Context, path string, info transfer.Info, at int64) (transfer.Content, error) {
	b.then()
	return b.Machine.Open(ctx, path, info, at)
}

func (b between) Hashes(ctx context.Context) bool {
	h, ok := b.Machine.(interface{ Hashes(context.Context) bool })
	return ok && h.Hashes(ctx)
}

// A file that takes the place of another one after that was found is copied
// whole, or not at all.
func TestTransferReplaced(t *testing.T) {
	onAll(t, func(t *testing.T, m transfer.Machine) {
		for name, test := range map[string]struct {
			was, is int
			code    string
		}{
			"longer":  {100, 120, ""},
			"shorter": {120, 100, ""},
			"larger":  {100, 300_000, ""},
			"smaller": {300_000, 100, ""},
			"large":   {300_000, 400_000, ""},
			"empty":   {100, 0, "file.changed"},
		} {
			t.Run(name, func(t *testing.T) {
				from, there := t.TempDir(), t.TempDir()
				path := write(t, from+"/f", strings.Repeat("a", test.was), 0o644)
				replace := func() {
					if err := os.Rename(write(t, from+"/new", strings.Repeat("b", test.is), 0o600), path); err != nil {
						t.Error(err)
					}
				}
				r := run(t, transfer.Copy{From: between{m, replace}, To: &transfer.Local{}, Paths: []string{path}, Into: there})
				if codes(r) != test.code {
					t.Fatalf("%+v, want %q", r, test.code)
				}
				if test.code != "" {
					holds(t, there)
					return
				}
				sameFiles(t, path, there+"/f")
				if info, err := os.Stat(there + "/f"); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%v, %v", info.Mode(), err)
				}
			})
		}
	})
}

// What not all may read is made like that: nobody can open it before.
func TestTransferSecret(t *testing.T) {
	// A server that changes nothing about a file, nor its name, leaves it as it was made.
	s := sshdtest.Start(t, sshdtest.Options{NoSftp: true, Config: []string{"Subsystem sftp internal-sftp -P setstat,fsetstat,remove,rename,posix-rename"}})
	m := filesOf(t, s, s.Port)
	for _, mode := range []os.FileMode{0o600, 0o640, 0o440, 0o711} {
		there := t.TempDir()
		path := write(t, t.TempDir()+"/secret", "secret", mode)
		if r := run(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: there}); codes(r) != "file.permission" {
			t.Errorf("%+v", r)
		}
		parts, err := filepath.Glob(there + "/.secret.*.part")
		if err != nil || len(parts) != 1 {
			t.Fatalf("%q, %v", parts, err)
		}
		if info, err := os.Stat(parts[0]); err != nil || info.Mode().Perm()&^0o600 != mode&^0o600 {
			t.Errorf("%v, %v, want no more than %v", info.Mode(), err, mode)
		}
	}
}

// A directory that lacks what its owner needs has no more than the umask leaves.
func TestTransferDirectoryMode(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{NoSftp: true, Config: []string{"Subsystem sftp internal-sftp -u 077"}})
	m := filesOf(t, s, s.Port)
	from, there := t.TempDir(), t.TempDir()
	write(t, from+"/d/f", "f", 0o644)
	must(t, os.Chmod(from+"/d", 0o555))
	for into, c := range map[string]struct {
		preserve bool
		mode     os.FileMode
	}{"new": {false, 0o500}, "kept": {true, 0o555}} {
		copyFiles(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{from + "/d"}, Into: there + "/" + into, Recursive: true, Preserve: c.preserve})
		if info, err := os.Stat(there + "/" + into); err != nil || info.Mode().Perm() != c.mode {
			t.Errorf("%s: %v, %v, want %v", into, info.Mode(), err, c.mode)
		}
	}
}

// What is made in a group's directory is the group's, whatever permissions it gets, and
// stays that when others are copied to it; nor does it lose the sticky bit.
func TestTransferGroupDirectory(t *testing.T) {
	onAll(t, func(t *testing.T, m transfer.Machine) {
		for _, perm := range []os.FileMode{0o750, 0o550} { // nobody may write to the latter once it is filled
			from, there := t.TempDir(), t.TempDir()
			write(t, from+"/d/f", "f", 0o644)
			for dir, mode := range map[string]os.FileMode{from + "/d": perm, there: 0o755 | os.ModeSetgid} {
				must(t, os.Chmod(dir, mode))
			}
			copyFiles(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{from + "/d"}, Into: there, Recursive: true})
			if info, err := os.Stat(there + "/d"); err != nil || info.Mode() != os.ModeDir|os.ModeSetgid|perm {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			must(t, os.Chmod(there+"/d", 0o777|os.ModeSetgid|os.ModeSticky))
			for into, bits := range map[string]os.FileMode{"/new": os.ModeSetgid, "/d": os.ModeSetgid | os.ModeSticky} {
				copyFiles(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{from + "/d/."}, Into: there + into, Recursive: true, Preserve: true})
				if info, err := os.Stat(there + into); err != nil || info.Mode() != os.ModeDir|bits|perm {
					t.Errorf("%s with its permissions: %v, %v", into, info.Mode(), err)
				}
			}
		}
	})
}

// Where programs see other files than the server, what it stored is read back.
func TestTransferOtherPaths(t *testing.T) {
	t.Parallel()
	there := t.TempDir()
	s := sshdtest.Start(t, sshdtest.Options{NoSftp: true, Config: []string{"Subsystem sftp internal-sftp -d " + there}})
	m, large := filesOf(t, s, s.Port), largeFile(t, 65<<20)
	if r := copyFiles(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{large}, Into: "large"}); r.Checked != 1 {
		t.Errorf("%+v", r)
	}
	sameFiles(t, large, there+"/large")
}

// A server without posix-rename replaces what is there all the same, and one
// that renames nothing leaves it.
func TestTransferRenames(t *testing.T) {
	for _, test := range []struct{ name, lacks, code, want string }{
		{"to what is not there", "posix-rename", "", "new"},
		{"nothing", "posix-rename,rename", "file.permission", "old"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := sshdtest.Start(t, sshdtest.Options{NoSftp: true, Config: []string{"Subsystem sftp internal-sftp -P " + test.lacks}})
			m := filesOf(t, s, s.Port)
			if via := m.About().Via; via != "sftp" {
				t.Fatalf("via %s", via)
			}
			from, there := t.TempDir(), t.TempDir()
			write(t, from+"/f", "new", 0o644)
			write(t, there+"/f", "old", 0o644)
			must(t, os.Symlink("new", from+"/link"))
			must(t, os.Symlink("old", there+"/link"))
			r := run(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{from + "/."}, Into: there, Recursive: true})
			if got := strings.Fields(codes(r)); slices.ContainsFunc(got, func(code string) bool { return code != test.code }) || len(got) > 0 == r.OK() {
				t.Errorf("%+v", r)
			}
			holds(t, there, "f", "link")
			b, err := os.ReadFile(there + "/f")
			link, failed := os.Readlink(there + "/link")
			if err != nil || failed != nil || string(b) != test.want || link != test.want {
				t.Errorf("%q, %v; %q, %v; want %q", b, err, link, failed, test.want)
			}
		})
	}
}

// A directory is not copied into itself, by whatever symlinks that is asked for.
func TestTransferIntoItself(t *testing.T) {
	onAll(t, func(t *testing.T, m transfer.Machine) {
		dir := t.TempDir()
		write(t, dir+"/d/x/f", "f", 0o644)
		write(t, dir+"/dd/f", "f", 0o644)
		plant(t, dir, nil, nil, map[string]string{"lnk": dir + "/d/x", "lnk-d": "d", "out": "dd"})
		for _, c := range []struct{ from, into, code string }{
			{"/d", "/d/x", "file.failed"},
			{"/d", "/d/new", "file.failed"},
			{"/d", "/lnk", "file.failed"},
			{"/d", "/lnk/new", "file.failed"},
			{"/lnk-d", "/d/x", "file.failed"},
			{"/lnk-d/.", "/lnk", "file.failed"},
			{"/d/x/..", "/d", "file.failed"},
			{"/d", "/out/../lnk", "file.failed"},
			{"/d", "/out", ""},
			{"/d", "/d2", ""},
			{"/d/x", "/lnk-d/y", ""},
		} {
			r := run(t, transfer.Copy{From: m, To: m, Paths: []string{dir + c.from}, Into: dir + c.into, Recursive: true})
			if codes(r) != c.code {
				t.Fatalf("%s to %s: %q, want %q: %+v", c.from, c.into, codes(r), c.code, r)
			}
		}
		holds(t, dir, "d", "d2", "dd", "lnk", "lnk-d", "out")
		holds(t, dir+"/d", "x", "y")
		holds(t, dir+"/d/x", "f")
		holds(t, dir+"/dd", "d", "f")
	})
}

// Nor is it where the machine has two names, as two of an inventory with one address.
func TestTransferIntoItselfByAnotherName(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, m transfer.Machine) {
		if _, ok := m.(*transfer.Local); ok {
			return // it has but one
		}
		local := &transfer.Local{}
		for what, c := range map[string]transfer.Copy{"there": {From: local, To: m}, "back": {From: m, To: local}} {
			dir := t.TempDir()
			write(t, dir+"/d/x/f", "f", 0o644)
			link := t.TempDir() + "/link"
			must(t, os.Symlink(dir, link))
			c.Recursive = true
			for _, source := range []string{link + "/d", dir + "/d"} {
				c.Paths = []string{source}
				for _, into := range []string{dir + "/d", dir + "/d/new", dir + "/d/x/new", dir + "/d/x", link + "/d/x"} {
					c.Into = into
					if r := run(t, c); codes(r) != "file.failed" || r.Dirs > 0 {
						t.Fatalf("%s, %s to %s: %+v", what, source, into, r)
					}
				}
			}
			if what == "back" {
				c.To, c.Into = &transfer.Local{Dir: dir}, "d/new" // where this machine's relative paths begin
				if r := run(t, c); codes(r) != "file.failed" {
					t.Fatalf("%s to d/new: %+v", what, r)
				}
				c.To = local
			}
			c.Into = dir // the directory onto itself
			if r := run(t, c); codes(r) != "file.failed" {
				t.Errorf("%s onto itself: %+v", what, r)
			}
			holds(t, dir, "d")
			holds(t, dir+"/d", "x")
			holds(t, dir+"/d/x", "f")
			c.Into = dir + "/d2"
			if r := run(t, c); !r.OK() {
				t.Errorf("%s: %+v", what, r)
			}
			sameTrees(t, dir+"/d", dir+"/d2")
		}
	})
}
