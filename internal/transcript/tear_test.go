package transcript_test

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"gateway/internal/transcript"
)

// TestWhy: who misses output is told what was in the way, and not where the limit
// took it or nothing is missing.
func TestWhy(t *testing.T) {
	l, dir := create(t, transcript.Options{Limit: 4000, Segment: 2000})
	fails := false
	write := func(n int) {
		t.Helper()
		if _, err := l.Append(stdout, bytesAt(l.End(), n)); (err != nil) != fails {
			t.Fatalf("Append of %d = %v", n, err)
		}
	}
	move := func(from, to string) {
		t.Helper()
		l.Rest()
		must(t, os.Rename(from, to))
	}
	write(500)
	move(dir, dir+".away") // no file can be made in it
	fails = true
	write(5000)
	write(5000)
	move(dir+".away", dir)
	fails = false
	write(500)
	for _, test := range []struct {
		from, to transcript.Cursor
		torn     bool
	}{{0, 500, false}, {0, 501, true}, {6000, 7000, true}, {10_499, 11_000, true}, {10_500, 11_000, false}} {
		var coded *transcript.Error
		if err := l.Why(test.from, test.to); (err != nil) != test.torn || test.torn && (!errors.Is(err, fs.ErrNotExist) || !errors.As(err, &coded)) {
			t.Errorf("Why(%d, %d) = %v, want a cause: %v", test.from, test.to, err, test.torn)
		}
	}
	for range 20 {
		write(500)
	}
	if start := l.Start(); start < 11_000 || l.Why(11_000, start) != nil {
		t.Errorf("Why of what the limit took, up to %d, = %v", start, l.Why(11_000, start))
	}
}

// Whoever reads what somebody has removed is told that, and not that the limit took it.
func TestWhyOfWhatWasRemoved(t *testing.T) {
	live, dir := create(t, transcript.Options{})
	write := func() {
		t.Helper()
		if _, err := live.Append(stdout, bytesAt(live.End(), 500)); err != nil {
			t.Fatal(err)
		}
	}
	write()
	past := reopen(t, dir)
	must(t, os.RemoveAll(dir))
	for _, l := range []*transcript.Log{past, live, live} {
		page, err := l.View(0, l.End()).Read(0, 10_000)
		if err != nil || page.Dropped != int64(l.End()) {
			t.Errorf("Read = %d dropped, %v, want %d", page.Dropped, err, l.End())
		}
		if err := l.Why(l.End()-1, l.End()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Why(%d, %[1]d) = %v, want %v", l.End()-1, err, fs.ErrNotExist)
		}
		write() // into a file that has no name any more
	}
}

// Of a disk that is full now and then, for months, the last times are known.
func TestWhyIsBounded(t *testing.T) {
	l, dir := create(t, transcript.Options{})
	for range 100 {
		for _, moved := range [][2]string{{dir, dir + ".away"}, {dir + ".away", dir}} {
			l.Rest()
			must(t, os.Rename(moved[0], moved[1]))
			_, _ = l.Append(stdout, make([]byte, 10)) // every other one fails
		}
	}
	if l.Why(0, 10) != nil || l.Why(1980, 1990) == nil || l.Why(1990, 2000) != nil {
		t.Errorf("Why = %v, %v, %v, want but the second", l.Why(0, 10), l.Why(1980, 1990), l.Why(1990, 2000))
	}
}
