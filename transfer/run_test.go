package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gateway/gateway"
	"gateway/transfer"
	"gateway/transport"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tree makes a directory with these files.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(name), 0o700))
		must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	return dir
}

// What is in several directories meets in one: directories become one, of two
// files of the same name the first is copied.
func TestTreesMeet(t *testing.T) {
	a := tree(t, map[string]string{"x": "a", "s/1": "a", "s/t/1": "a", "s/both": "a", "kind": "a"})
	b := tree(t, map[string]string{"x": "b", "s/2": "b", "s/t/2": "b", "s/both": "b", "kind/in": "b", "c": "b"})
	c := tree(t, map[string]string{"c": "c"})
	must(t, os.Symlink("a", a+"/link"))
	must(t, os.Symlink("b", b+"/link"))
	must(t, os.Chmod(a+"/s", 0o750))
	old := time.Unix(1e9, 0)
	must(t, os.Chtimes(b+"/s", old, old))
	into := t.TempDir()
	report := (&transfer.Copy{
		From: &transfer.Local{}, To: &transfer.Local{}, Into: into, Recursive: true, Preserve: true,
		Paths: []string{a + "/.", b + "/.", a + "/.", c + "/c"},
	}).Run(t.Context())
	refused := map[string]string{}
	for _, p := range report.Problems {
		refused[p.Path] = gateway.Code(p.Err)
	}
	for path, code := range map[string]string{
		b + "/./x": "file.exists", b + "/./s/both": "file.exists", b + "/./link": "file.exists", c + "/c": "file.exists",
		b + "/./kind": "file.not_directory",
	} {
		if refused[path] != code {
			t.Errorf("%s: %q, want %q", path, refused[path], code)
		}
		delete(refused, path)
	}
	if len(refused) > 0 || report.Files != 8 || report.Links != 1 {
		t.Errorf("%v, %+v", refused, report)
	}
	for name, want := range map[string]string{"x": "a", "kind": "a", "c": "b", "s/1": "a", "s/2": "b", "s/both": "a", "s/t/1": "a", "s/t/2": "b"} {
		if got, err := os.ReadFile(filepath.Join(into, name)); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v, want %q", name, got, err, want)
		}
	}
	if target, err := os.Readlink(into + "/link"); err != nil || target != "a" {
		t.Errorf("link leads to %q, %v", target, err)
	}
	// As with cp -p, a directory is in the end what the last one is.
	if info, err := os.Stat(into + "/s"); err != nil || !info.ModTime().Equal(old) || info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("s is %v, %v", info, err)
	}
}

// TestMakesIntoForSomething: a directory that a copy makes to go into is there for what
// is copied, and for nothing else.
func TestMakesIntoForSomething(t *testing.T) {
	from, to := tree(t, map[string]string{"f": "text", "dir/in": ""}), t.TempDir()
	for paths, code := range map[string]string{"/none": "file.not_found", "/dir": "file.is_directory", "/none /dir": ""} {
		job := transfer.Copy{From: &transfer.Local{}, To: &transfer.Local{}, Into: to + "/out/host", MakeInto: true}
		for name := range strings.FieldsSeq(paths) {
			job.Paths = append(job.Paths, from+name)
		}
		if r := job.Run(t.Context()); r.OK() || code != "" && gateway.Code(r.Err) != code {
			t.Errorf("%s: %+v, want %s", paths, r, code)
		}
		if _, err := os.Lstat(to + "/out"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: out is there: %v", paths, err)
		}
		job.Paths = append(job.Paths, from+"/f")
		if r := job.Run(t.Context()); r.Files != 1 {
			t.Errorf("%s and a file: %+v", paths, r)
		}
		if got, err := os.ReadFile(to + "/out/host/f"); string(got) != "text" {
			t.Errorf("%s and a file: %q, %v", paths, got, err)
		}
		must(t, os.RemoveAll(to+"/out"))
	}
}

// TestNoWayOut: what one source has put into DST is no way out of it for another.
// DST itself may be a symlink: it was named.
func TestNoWayOut(t *testing.T) {
	a, b := t.TempDir(), tree(t, map[string]string{"x/in": "b"})
	outside, into := t.TempDir(), t.TempDir()
	must(t, os.Symlink(outside, a+"/x"))
	must(t, os.Symlink(into, a+"/into"))
	report := (&transfer.Copy{
		From: &transfer.Local{}, To: &transfer.Local{}, Into: a + "/into", Recursive: true, Preserve: true,
		Paths: []string{a + "/.", b + "/x"},
	}).Run(t.Context())
	if len(report.Problems) != 1 || report.Problems[0].Path != b+"/x" || gateway.Code(report.Problems[0].Err) != "file.not_directory" {
		t.Errorf("%+v, want file.not_directory for x", report)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("outside there is %v, %v", left, err)
	}
	if target, err := os.Readlink(into + "/x"); err != nil || target != outside {
		t.Errorf("x leads to %q, %v", target, err)
	}
}

// shared is a machine on which another copy makes each directory a moment earlier.
type shared struct{ *transfer.Local }

func (m shared) Mkdir(ctx context.Context, path string, perm fs.FileMode) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return m.Local.Mkdir(ctx, path, perm)
}

// TestTwoCopiesMeet: two copies may go to the same place at the same time.
func TestTwoCopiesMeet(t *testing.T) {
	from, into := tree(t, map[string]string{"a/b/c": "text", "a/d": "text"}), t.TempDir()
	for _, dst := range []string{into, into + "/new"} {
		r := (&transfer.Copy{From: &transfer.Local{}, To: shared{&transfer.Local{}}, Paths: []string{from + "/a"}, Into: dst, Recursive: true}).Run(t.Context())
		if !r.OK() || r.Files != 2 || r.Dirs != 0 {
			t.Errorf("%+v", r)
		}
	}
	for _, name := range []string{"a/b/c", "a/d", "new/b/c", "new/d"} {
		if got, err := os.ReadFile(into + "/" + name); string(got) != "text" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// hashing is a machine that hashes its files itself, and where something happens
// before it does.
type hashing struct {
	*transfer.Local
	before func() error
}

func (h hashing) Hashes(context.Context) bool { return true }

func (h hashing) Sum(ctx context.Context, path string, from, to int64) (transfer.Sum, error) {
	if err := h.before(); err != nil {
		return transfer.Sum{}, err
	}
	return h.Local.Sum(ctx, path, from, to)
}

// TestSourceIsAnother: where the source is another file when it is hashed, nothing is
// said of the target, nor of a file that is there no more.
func TestSourceIsAnother(t *testing.T) {
	old, size := time.Unix(1e9, 0), 1<<20
	for name, test := range map[string]struct {
		becomes func(path string) error
		code    string
	}{
		"replaced": {func(path string) error { return os.Rename(path+".new", path) }, "file.changed"},
		"gone": {func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return &transport.Error{Code: "file.permission", Message: "it may not be read"} // as far as is known there
		}, "file.changed"},
		"written to within a second": {func(path string) error {
			if err := os.WriteFile(path, []byte(strings.Repeat("c", size)), 0o600); err != nil {
				return err
			}
			return os.Chtimes(path, old, old)
		}, "file.mismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			from := tree(t, map[string]string{"f": strings.Repeat("a", size), "f.new": strings.Repeat("b", size)})
			path := from + "/f"
			must(t, os.Chtimes(path, old, old))
			read := &reading{read: make(chan struct{})}
			machine := hashing{&transfer.Local{}, sync.OnceValue(func() error {
				<-read.read
				return test.becomes(path)
			})}
			into := t.TempDir()
			report := (&transfer.Copy{From: machine, To: &transfer.Local{}, Paths: []string{path}, Into: into, Watch: read}).Run(t.Context())
			if len(report.Problems) != 1 || gateway.Code(report.Problems[0].Err) != test.code || strings.Contains(report.Problems[0].Err.Error(), into) {
				t.Errorf("%+v, want %s of %s", report, test.code, path)
			}
			if left, err := os.ReadDir(into); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// reading tells when a file of a MiB has been read.
type reading struct {
	ends
	bytes int
	read  chan struct{}
}

func (r *reading) Moved(_ string, bytes int) {
	if r.bytes += bytes; r.bytes == 1<<20 {
		close(r.read)
	}
}

// crowded is a machine that answers a look at a file when several ask.
type crowded struct {
	*transfer.Local
	asked atomic.Int32
	many  chan struct{}
}

func (c *crowded) Stat(ctx context.Context, path string, follow bool) (transfer.Info, error) {
	if c.asked.Add(1) == 4 {
		close(c.many)
	}
	select {
	case <-c.many:
	case <-ctx.Done():
		return transfer.Info{}, context.Cause(ctx)
	}
	return c.Local.Stat(ctx, path, follow)
}

// TestSourcesAreLookedAtTogether: many that match a pattern do not wait for a round
// trip each.
func TestSourcesAreLookedAtTogether(t *testing.T) {
	from, there := tree(t, map[string]string{"a": "a", "b": "b", "c": "c", "d": "d"}), t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c := transfer.Copy{
		From: &crowded{Local: &transfer.Local{}, many: make(chan struct{})}, To: &transfer.Local{},
		Paths: []string{from + "/a", from + "/b", from + "/c", from + "/d", from + "/a"}, Into: there,
	}
	if r := c.Run(ctx); !r.OK() || r.Files != 4 {
		t.Errorf("%+v", r)
	}
}

// listing is a machine that counts how often it lists a directory.
type listing struct {
	*transfer.Local
	lists atomic.Int32
}

func (l *listing) List(ctx context.Context, dir string, each func(transfer.Info) error) error {
	l.lists.Add(1)
	return l.Local.List(ctx, dir, each)
}

// TestResumeListsOnce: whoever looks for what is left of many files in a directory
// lists it once, and not where there can be none.
func TestResumeListsOnce(t *testing.T) {
	files := map[string]string{}
	for i := range 8 {
		files[fmt.Sprint("d/", i)] = strings.Repeat("x", 1<<20)
	}
	from := tree(t, files)
	for want, into := range map[int32]string{1: tree(t, map[string]string{"d/x": ""}) + "/d", 0: t.TempDir() + "/new"} {
		to := &listing{Local: &transfer.Local{}}
		path := from + "/d/."
		c := transfer.Copy{From: &transfer.Local{}, To: to, Paths: []string{path}, Into: into, Recursive: true, Resume: true}
		if r := c.Run(t.Context()); !r.OK() || r.Files != 8 || to.lists.Load() != want {
			t.Errorf("%+v, %d lists, want %d", r, to.lists.Load(), want)
		}
	}
}

// slowToLeave is a machine that is a while in noticing that it is not asked any more
// whether it hashes.
type slowToLeave struct {
	*transfer.Local
	left bool
}

func (s *slowToLeave) Hashes(ctx context.Context) bool {
	<-ctx.Done()
	time.Sleep(time.Minute)
	s.left = true
	return false
}

// TestNothingUnderWay: what a copy has begun is over when it is.
func TestNothingUnderWay(t *testing.T) {
	from, into := tree(t, map[string]string{"f": "a"}), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		to := &slowToLeave{Local: &transfer.Local{}}
		report := (&transfer.Copy{From: &transfer.Local{}, To: to, Paths: []string{from + "/f"}, Into: into}).Run(t.Context())
		if !report.OK() || !to.left {
			t.Errorf("%+v, want that nothing is asked any more", report)
		}
	})
}

// elsewhere is a machine whose files under a path are not those of this one.
type elsewhere struct {
	*transfer.Local
	path, really string
}

func (m elsewhere) at(path string) string { return strings.Replace(path, m.path, m.really, 1) }

func (m elsewhere) Stat(ctx context.Context, path string, follow bool) (transfer.Info, error) {
	return m.Local.Stat(ctx, m.at(path), follow)
}

func (m elsewhere) List(ctx context.Context, dir string, each func(transfer.Info) error) error {
	return m.Local.List(ctx, m.at(dir), each)
}

func (m elsewhere) Open(ctx context.Context, path string, info transfer.Info, at int64) (transfer.Content, error) {
	return m.Local.Open(ctx, m.at(path), info, at)
}

// A path below that of the source may be another machine's, and no part is left there.
func TestBelowTheSameDirectoryOfAnotherMachine(t *testing.T) {
	here, there := tree(t, map[string]string{"d/old": "old"}), tree(t, map[string]string{"d/f": "f"})
	r := (&transfer.Copy{
		From: elsewhere{&transfer.Local{}, here, there}, To: &transfer.Local{}, Paths: []string{here + "/d"}, Into: here + "/d/new", Recursive: true,
	}).Run(t.Context())
	if !r.OK() || r.Files != 1 {
		t.Fatalf("%+v", r)
	}
	for dir, want := range map[string]int{here + "/d": 2, here + "/d/new": 1} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != want {
			t.Errorf("%s: %v, %v", dir, entries, err)
		}
	}
}

// unwritable is a machine of another name, on which no file can be made.
type unwritable struct{ *transfer.Local }

func (unwritable) Create(context.Context, transfer.Spec) (transfer.Part, error) {
	return nil, fs.ErrPermission
}

// The look for a machine with two names ends where there is no directory above: at "/" and ".".
func TestNothingCanBeMadeAtTheTop(t *testing.T) {
	t.Chdir(tree(t, map[string]string{"a": "a"}))
	r := (&transfer.Copy{From: &transfer.Local{}, To: unwritable{&transfer.Local{}}, Paths: []string{"."}, Into: ".", Recursive: true}).Run(t.Context())
	if r.OK() || r.Failed != 1 || !errors.Is(r.Problems[0].Err, fs.ErrPermission) {
		t.Errorf("%+v", r)
	}
}

// TestFollowsNoLoop: a directory is not found once more behind a symlink that is in it, by
// whatever way that leads there; what symlinks lead to beside each other is copied.
func TestFollowsNoLoop(t *testing.T) {
	from := tree(t, map[string]string{"a/f": "f", "a/b/g": "g", "c/h": "h", "out/i": "i"})
	for link, target := range map[string]string{
		"a/self": ".", "a/b/up": "..", "a/b/top": from, "a/c": "../c", "c/back": "../a/b", "a/out": from + "/out", "a/b/out": "../out", "c/deep": "../a/b/../b",
	} {
		must(t, os.Symlink(target, from+"/"+link))
	}
	for _, source := range []string{from + "/a", from + "/a/b/../../a"} {
		into := t.TempDir()
		report := (&transfer.Copy{From: &transfer.Local{}, To: &transfer.Local{}, Paths: []string{source}, Into: into, Recursive: true, Links: transfer.FollowLinks}).Run(t.Context())
		var refused, have []string
		for _, p := range report.Problems {
			refused = append(refused, strings.TrimPrefix(p.Path, source+"/"))
			if gateway.Code(p.Err) != "file.failed" || gateway.Hint(p.Err) == "" {
				t.Errorf("%v", p.Err)
			}
		}
		err := filepath.WalkDir(into+"/a", func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				have = append(have, strings.TrimPrefix(path, into+"/a/"))
			}
			return err
		})
		slices.Sort(refused)
		if got, want := strings.Join(refused, " "), "b/top b/up c/back/top c/back/up c/deep/top c/deep/up self"; got != want {
			t.Errorf("refused %s, want %s", got, want)
		}
		if got, want := strings.Join(have, " "), "b/g b/out/i c/back/g c/back/out/i c/deep/g c/deep/out/i c/h f out/i"; got != want || err != nil {
			t.Errorf("%s are there, %v, want %s", got, err, want)
		}
	}
}
