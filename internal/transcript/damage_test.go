package transcript_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"gateway/internal/transcript"
)

// at returns the byte that the tests write at a cursor, so that it can be told
// from any other nearby.
func at(c transcript.Cursor) byte {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(c/8+1)*0x9e3779b97f4a7c15)
	return b[c%8]
}

func bytesAt(from transcript.Cursor, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = at(from + transcript.Cursor(i))
	}
	return b
}

// whole reads a log to its end, checks every byte, and returns how many are
// there and how many are missing.
func whole(t testing.TB, l *transcript.Log) (kept, dropped int64) {
	t.Helper()
	var next transcript.Cursor
	for {
		page, err := read(l, next, 1000)
		if err != nil {
			t.Fatalf("Read = %v", err)
		}
		next += transcript.Cursor(page.Dropped)
		dropped += page.Dropped
		for _, c := range page.Chunks {
			if c.At != next || !slices.Equal(c.Data, bytesAt(c.At, len(c.Data))) {
				t.Fatalf("wrong bytes at %d, %d are read", c.At, next)
			}
			next = c.End()
			kept += int64(len(c.Data))
		}
		if page.Next != next {
			t.Fatalf("next is %d, want %d", page.Next, next)
		}
		if next >= l.End() {
			return kept, dropped
		}
	}
}

// segmentsOf returns the files of a log, the oldest first.
func segmentsOf(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "transcript-*.log"))
	if err != nil || len(files) == 0 {
		t.Fatalf("Glob = %q, %v", files, err)
	}
	return files
}

// three makes a log of three segments of four records each, with an empty one
// between them.
func three(t testing.TB) (*transcript.Log, string) {
	l, dir := create(t, transcript.Options{Limit: 1 << 20, Segment: 600})
	for i := range 12 {
		stream := transcript.Stream(i % 3)
		if _, err := l.Append(stream, bytesAt(l.End(), 120+i%4)); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	if n := len(segmentsOf(t, dir)); n != 3 {
		t.Fatalf("%d segments, want 3", n)
	}
	return l, dir
}

// TestTorn cuts the last file at every place: what was whole is there.
func TestTorn(t *testing.T) {
	l, dir := three(t)
	end := l.End()
	last := segmentsOf(t, dir)[2]
	text, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	before := int64(8*120 + 12)
	for cut := range len(text) + 1 {
		must(t, os.WriteFile(last, text[:cut], 0o600))
		opened := reopen(t, dir)
		want, sound := before, 0
		for i := range 4 {
			if next := sound + 24 + 120 + i; next <= cut {
				sound, want = next, want+int64(120+i)
			}
		}
		if kept, dropped := whole(t, opened); kept != want || dropped != 0 || int64(opened.End()) != want || opened.Damaged() != int64(cut-sound) {
			t.Errorf("cut at %d: kept %d to %d, dropped %d, damaged %d, want %d and %d", cut, kept, opened.End(), dropped, opened.Damaged(), want, cut-sound)
		}
		// The log that was open is not fooled either, and says what is missing.
		if kept, dropped := whole(t, l); kept != want || dropped != int64(end)-want {
			t.Errorf("cut at %d: the open log has %d and %d dropped, want %d", cut, kept, dropped, want)
		}
	}
}

// FuzzOpen damages the files of a log. What is read is what was written, at
// its place, and the rest is told to be missing.
func FuzzOpen(f *testing.F) {
	f.Add([]byte{0, 0, 10, 0, 255}, []byte{})
	f.Add([]byte{1, 1, 200, 0, 0, 2, 2, 30, 0, 77, 0, 3, 9, 1, 40}, []byte("transcript"))
	f.Add([]byte{0, 4, 0, 0, 0}, make([]byte, 100))
	f.Fuzz(func(t *testing.T, edits, raw []byte) {
		l, dir := three(t)
		end := l.End()
		files := segmentsOf(t, dir)
		for ; len(edits) >= 5; edits = edits[5:] {
			edit(t, files[int(edits[0])%len(files)], edits[1], int(edits[2])|int(edits[3])<<8, edits[4], raw)
		}
		for name, log := range map[string]*transcript.Log{"open": l, "opened": reopen(t, dir)} {
			kept, dropped := whole(t, log)
			if kept+dropped != int64(log.End()) || log.End() > end {
				t.Errorf("%s: kept %d, dropped %d of %d", name, kept, dropped, log.End())
			}
			if name == "opened" {
				if e, err := log.View(0, log.End()).Excerpt(0, 0); e.Total != kept || e.Dropped != dropped || err != nil {
					t.Errorf("Excerpt = %d, %d, %v, want %d, %d", e.Total, e.Dropped, err, kept, dropped)
				}
			}
		}
	})
}

func reopen(t testing.TB, dir string) *transcript.Log {
	t.Helper()
	l, err := transcript.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func edit(t *testing.T, file string, how byte, where int, value byte, raw []byte) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	where %= len(b) + 1
	switch how % 6 {
	case 0:
		if where < len(b) {
			b[where] ^= value
		}
	case 1:
		b = b[:where]
	case 2:
		b = slices.Insert(b, where, raw...)
	case 3:
		b = slices.Delete(b, where, min(where+int(value), len(b)))
	case 4: // a hole, as after a power cut
		clear(b[where:min(where+int(value)*4, len(b))])
	case 5: // a record twice
		b = slices.Insert(b, where, b[:where]...)
	}
	must(t, os.WriteFile(file, b[:min(len(b), 10_000)], 0o600))
}

// FuzzRecords opens files of any content.
func FuzzRecords(f *testing.F) {
	l, dir := create(f, transcript.Options{})
	add(f, l, stdout, "some text")
	add(f, l, stderr, "more")
	l.Close()
	text, err := os.ReadFile(segmentsOf(f, dir)[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, []byte{})
	f.Add(text, text)
	f.Fuzz(func(t *testing.T, first, second []byte) {
		dir := t.TempDir()
		os.Chmod(dir, 0o700)
		for name, b := range map[string][]byte{"00000000000000000000": first, "00000000000000000009": second} {
			must(t, os.WriteFile(filepath.Join(dir, "transcript-"+name+".log"), b, 0o600))
		}
		l := reopen(t, dir)
		page, err := read(l, 0, 1<<20)
		if err != nil || len(transcript.Bytes(page.Chunks)) > len(first)+len(second) {
			t.Errorf("Read = %v, %v", page, err)
		}
		if _, err := l.View(0, l.End(), stdout).Excerpt(3, 3); err != nil {
			t.Errorf("Excerpt = %v", err)
		}
	})
}

// write tells the process that TestKilled starts where to write.
const write = "TRANSCRIPT_TEST_WRITE"

// writeUntilKilled writes to a log and prints the cursor behind what it wrote.
func writeUntilKilled(dir string) {
	l, err := transcript.Create(dir, transcript.Options{Limit: 1 << 20, Segment: 100 << 10})
	for err == nil {
		var end transcript.Cursor
		end, err = l.Append(transcript.Stream(rand.IntN(3)), bytesAt(l.End(), rand.IntN(20000)))
		if err == nil {
			_, err = fmt.Println(end)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// TestKilled kills a process that writes, at any moment: what it was told to be
// written is there.
func TestKilled(t *testing.T) {
	for range 8 {
		dir := filepath.Join(t.TempDir(), "log")
		program := exec.Command(os.Args[0])
		program.Env = append(os.Environ(), write+"="+dir)
		program.Stderr = os.Stderr
		out, err := program.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		must(t, program.Start())
		var end int64
		lines, stop := bufio.NewScanner(out), rand.IntN(300)
		for i := 0; lines.Scan(); i++ {
			if end, err = strconv.ParseInt(lines.Text(), 10, 64); err != nil {
				t.Fatal(err)
			}
			if i == stop {
				program.Process.Kill()
			}
		}
		program.Wait()
		l := reopen(t, dir)
		kept, dropped := whole(t, l)
		if int64(l.End()) < end || kept+dropped != int64(l.End()) || dropped != int64(l.Start()) {
			t.Errorf("after %d bytes: kept %d from %d to %d, dropped %d", end, kept, l.Start(), l.End(), dropped)
		}
	}
}
