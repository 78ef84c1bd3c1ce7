package transcript_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gateway/internal/transcript"
)

func TestPrune(t *testing.T) {
	const day = 24 * time.Hour
	for _, test := range []struct {
		name  string
		total int64
		age   time.Duration
		keep  string
		want  []string
	}{
		{"nothing", 1 << 20, 10 * day, "", []string{"half.gone"}},
		{"by age", 1 << 20, 60 * time.Hour, "", []string{"half.gone", "d4", "d3"}},
		{"by size", 12_000, 10 * day, "", []string{"half.gone", "d4", "d3"}},
		{"what is kept counts", 12_000, 60 * time.Hour, "d3", []string{"half.gone", "d4", "d2"}},
		{"all", 0, 10 * day, "", []string{"half.gone", "d4", "d3", "d2", "d1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			os.Chmod(root, 0o700)
			outside := t.TempDir()
			precious := filepath.Join(outside, "precious")
			for _, err := range []error{
				os.WriteFile(precious, nil, 0o600),
				os.Symlink(outside, filepath.Join(root, "link")),
				os.WriteFile(filepath.Join(root, "index"), make([]byte, 50_000), 0o600),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			for days, name := range []string{1: "d1", 2: "d2", 3: "d3", 4: "d4", 5: "half.gone"} {
				if days > 0 {
					session(t, filepath.Join(root, name), time.Now().Add(-time.Duration(days)*day), outside)
				}
			}
			var want []string
			for _, name := range test.want {
				want = append(want, filepath.Join(root, name))
			}
			removed, err := transcript.Prune(root, test.total, test.age, func(dir string) bool { return filepath.Base(dir) == test.keep })
			if !slices.Equal(removed, want) || err != nil {
				t.Errorf("Prune = %q, %v, want %q", removed, err, want)
			}
			for _, dir := range want {
				if _, err := os.Lstat(dir); !os.IsNotExist(err) {
					t.Errorf("%s is still there", dir)
				}
			}
			left, _ := os.ReadDir(root)
			if len(left) != 2+5-len(want) {
				t.Errorf("%d names are left of 7 and %d", len(left), len(want))
			}
			if _, err := os.Stat(precious); err != nil {
				t.Error(err)
			}
		})
	}
	if removed, err := transcript.Prune(filepath.Join(t.TempDir(), "none"), 0, 0, nil); removed != nil || err != nil {
		t.Errorf("Prune of nothing = %q, %v", removed, err)
	}
	open := t.TempDir()
	os.Chmod(open, 0o777)
	_, err := transcript.Prune(open, 0, 0, nil)
	refused(t, "Prune", err, "open to other users, mode 777")
}

// session makes a directory with about 5,000 bytes that was written to last at
// a time.
func session(t *testing.T, dir string, written time.Time, outside string) {
	t.Helper()
	l, err := transcript.Create(dir, transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	add(t, l, stdout, string(make([]byte, 5000)))
	l.Close()
	link := filepath.Join(dir, "link")
	must(t, os.Symlink(outside, link))
	times := []unix.Timespec{unix.NsecToTimespec(written.UnixNano()), unix.NsecToTimespec(written.UnixNano())}
	for _, path := range []string{link, segmentsOf(t, dir)[0], dir} {
		must(t, unix.UtimesNanoAt(unix.AT_FDCWD, path, times, unix.AT_SYMLINK_NOFOLLOW))
	}
}
