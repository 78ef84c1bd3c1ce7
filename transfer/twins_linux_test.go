package transfer_test

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/text/unicode/norm"

	"gateway/gateway"
	"gateway/transfer"
)

// caseless is a machine whose disk takes upper and lower case for the same, and é as one
// character and as two.
type caseless struct{ *transfer.Local }

// at returns a path as the disk has it.
func (caseless) at(path string) string {
	real := "/"
	for element := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		entries, _ := os.ReadDir(real)
		for _, e := range entries {
			if strings.EqualFold(norm.NFC.String(e.Name()), norm.NFC.String(element)) {
				element = e.Name()
			}
		}
		real = filepath.Join(real, element)
	}
	return real
}

func (m caseless) Stat(ctx context.Context, path string, follow bool) (transfer.Info, error) {
	return m.Local.Stat(ctx, m.at(path), follow)
}

func (m caseless) List(ctx context.Context, path string, each func(transfer.Info) error) error {
	return m.Local.List(ctx, m.at(path), each)
}

func (m caseless) Mkdir(ctx context.Context, path string, perm fs.FileMode) error {
	return m.Local.Mkdir(ctx, m.at(path), perm)
}

func (m caseless) Create(ctx context.Context, s transfer.Spec) (transfer.Part, error) {
	dir, name := filepath.Split(s.Path)
	s.Path = filepath.Join(m.at(dir), name)
	p, err := m.Local.Create(ctx, s)
	return caselessPart{p, m, s.Path}, err
}

type caselessPart struct {
	transfer.Part
	on   caseless
	path string
}

func (p caselessPart) Commit(ctx context.Context) error {
	there := p.on.at(p.path)
	if err := p.Part.Commit(ctx); err != nil || there == p.path {
		return err
	}
	return os.Rename(p.path, there)
}

// TestTwins: two files whose names are one to a disk do not take each other's place there,
// and elsewhere both are copied.
func TestTwins(t *testing.T) {
	files := map[string]string{
		"t/A": "A", "t/a": "a", "t/D/x": "D", "t/d/y": "d", "t/o": "o", "n/README": "README", "n/other": "other", "m/readme": "readme",
		"t/caf\u00e9": "one", "t/cafe\u0301": "two", "t/E\u0301": "E", "t/\u00e9": "e",
	}
	from := tree(t, files)
	sources := []string{from + "/t", from + "/n/README", from + "/n/other", from + "/m/readme"}
	for name, test := range map[string]struct {
		to      transfer.Machine
		refused int
	}{"one": {caseless{&transfer.Local{}}, 5}, "two": {&transfer.Local{}, 0}} {
		t.Run(name, func(t *testing.T) {
			into := t.TempDir()
			for _, again := range []bool{false, true} {
				report := (&transfer.Copy{From: &transfer.Local{}, To: test.to, Paths: sources, Into: into, Recursive: true}).Run(t.Context())
				if report.Err != nil || len(report.Problems) != test.refused || int(report.Files) != len(files)-test.refused {
					t.Errorf("again %v: %+v, want %d refused", again, report, test.refused)
				}
				for _, p := range report.Problems {
					if gateway.Code(p.Err) != "file.exists" {
						t.Errorf("%v, want file.exists", p.Err)
					}
				}
			}
			var have []string
			err := filepath.WalkDir(into, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				text, err := os.ReadFile(path)
				have = append(have, string(text))
				if want := files["t/"+strings.TrimPrefix(path, into+"/t/")]; want != "" && want != string(text) {
					t.Errorf("%s has %q, want %q", path, text, want)
				}
				return err
			})
			if slices.Sort(have); err != nil || len(have) != len(files)-test.refused {
				t.Errorf("%q are there, %v, want %d of %q", have, err, len(files)-test.refused, slices.Sorted(maps.Values(files)))
			}
		})
	}
}

// TestTwinsOfTrees: nor do files that meet from several trees.
func TestTwinsOfTrees(t *testing.T) {
	a := tree(t, map[string]string{"A": "A", "D/1": "D1", "same/x": "x", "caf\u00e9": "one"})
	b := tree(t, map[string]string{"a": "a", "d/1": "d1", "d/2": "d2", "same/y": "y", "cafe\u0301": "two", "more": "more"})
	for name, test := range map[string]struct {
		to      transfer.Machine
		refused string
		files   int64
	}{"one": {caseless{&transfer.Local{}}, "a cafe\u0301 d", 6}, "two": {&transfer.Local{}, "", 10}} {
		t.Run(name, func(t *testing.T) {
			into := t.TempDir()
			for range 2 {
				r := (&transfer.Copy{From: &transfer.Local{}, To: test.to, Paths: []string{a + "/.", b + "/."}, Into: into, Recursive: true}).Run(t.Context())
				var refused []string
				for _, p := range r.Problems {
					refused = append(refused, strings.TrimPrefix(p.Path, b+"/./"))
					if gateway.Code(p.Err) != "file.exists" {
						t.Errorf("%v, want file.exists", p.Err)
					}
				}
				slices.Sort(refused)
				if got := strings.Join(refused, " "); got != test.refused || r.Files != test.files {
					t.Errorf("refused %q of %+v, want %q", got, r, test.refused)
				}
				if text, err := os.ReadFile(into + "/A"); string(text) != "A" {
					t.Errorf("A has %q, %v", text, err)
				}
			}
		})
	}
}

// TestTwinOfAnother: what was there before of the second name is replaced, where the
// machine tells both apart.
func TestTwinOfAnother(t *testing.T) {
	from, into := tree(t, map[string]string{"A": "A", "a": "a"}), tree(t, map[string]string{"A": "old", "a": "old"})
	if r := (&transfer.Copy{From: &transfer.Local{}, To: &transfer.Local{}, Paths: []string{from + "/."}, Into: into, Recursive: true}).Run(t.Context()); !r.OK() || r.Files != 2 {
		t.Errorf("%+v", r)
	}
	for _, name := range []string{"A", "a"} {
		if got, err := os.ReadFile(into + "/" + name); string(got) != name {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
}

// TestTwinThatIsNotCopied: a file is copied again also where its twin never is.
func TestTwinThatIsNotCopied(t *testing.T) {
	from, into := tree(t, map[string]string{"a": "a", "B": "B", "c": "c", "D": "D"}), tree(t, map[string]string{"a": "old", "B": "old", "c": "old", "D": "old"})
	for _, name := range []string{"A", "b", "C", "d"} {
		must(t, syscall.Mkfifo(from+"/"+name, 0o600))
	}
	r := (&transfer.Copy{From: &transfer.Local{}, To: &transfer.Local{}, Paths: []string{from + "/."}, Into: into, Recursive: true}).Run(t.Context())
	if r.Files != 4 || r.Failed != 4 {
		t.Errorf("%+v", r)
	}
	for _, p := range r.Problems {
		if gateway.Code(p.Err) != "file.special" {
			t.Errorf("%v, want file.special", p.Err)
		}
	}
	for _, name := range []string{"a", "B", "c", "D"} {
		if got, err := os.ReadFile(into + "/" + name); string(got) != name {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
}
