package transcript_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gateway/internal/transcript"
)

// The bounds of a log are those that it has once it is open, also behind a crash, and
// need no more than its last file.
func TestBounds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	must(t, os.Mkdir(dir, 0o700))
	if start, end, err := transcript.Bounds(dir); start != 0 || end != 0 || err != nil {
		t.Errorf("without a log: %d to %d, %v", start, end, err)
	}
	l, err := transcript.Create(dir, transcript.Options{Limit: 4096, Segment: 512})
	if err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if _, err := l.Append(1, bytesAt(l.End(), 30)); err != nil {
			t.Fatal(err)
		}
	}
	must(t, l.Close())
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 3 {
		t.Fatalf("files %q, %v", files, err)
	}
	slices.Sort(files)
	last := files[len(files)-1]
	for _, torn := range []int64{0, 7} {
		info, err := os.Stat(last)
		if err == nil {
			err = os.Truncate(last, info.Size()-torn)
		}
		if err != nil {
			t.Fatal(err)
		}
		opened := reopen(t, dir)
		if start, end, err := transcript.Bounds(dir); start != opened.Start() || end != opened.End() || err != nil {
			t.Errorf("%d bytes less: %d to %d, %v, want %d to %d", torn, start, end, err, opened.Start(), opened.End())
		}
	}
	start, end, _ := transcript.Bounds(dir)
	for _, file := range files[:len(files)-1] {
		must(t, os.Truncate(file, 0))
	}
	if s, e, err := transcript.Bounds(dir); s != start || e != end || err != nil {
		t.Errorf("with the last file alone: %d to %d, %v, want %d to %d", s, e, err, start, end)
	}
}
