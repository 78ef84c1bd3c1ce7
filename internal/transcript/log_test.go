package transcript_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"gateway/internal/transcript"
)

const (
	stdout transcript.Stream = iota
	stderr
	terminal
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(write); dir != "" {
		writeUntilKilled(dir)
	}
	flag.Set("rapid.nofailfile", "true") // the seed is in the message
	goleak.VerifyTestMain(m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t testing.TB, options transcript.Options) (*transcript.Log, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "log")
	l, err := transcript.Create(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, dir
}

func add(t testing.TB, l *transcript.Log, from transcript.Stream, text string) transcript.Cursor {
	t.Helper()
	end, err := l.Append(from, []byte(text))
	if err != nil {
		t.Fatalf("Append = %v", err)
	}
	return end
}

// read reads these streams of a log, or all, from a cursor on.
func read(l *transcript.Log, from transcript.Cursor, limit int, streams ...transcript.Stream) (transcript.Page, error) {
	return l.View(0, math.MaxInt64, streams...).Read(from, limit)
}

// show writes a page on one line: what is dropped, the chunks, the next cursor.
func show(p transcript.Page) string {
	var b strings.Builder
	if p.Dropped > 0 {
		fmt.Fprintf(&b, "-%d ", p.Dropped)
	}
	for _, c := range p.Chunks {
		fmt.Fprintf(&b, "%d@%d:%q ", c.Stream, c.At, c.Data)
	}
	return fmt.Sprintf("%s>%d", b.String(), p.Next)
}

func TestRead(t *testing.T) {
	l, dir := create(t, transcript.Options{})
	add(t, l, stdout, "one\n")
	add(t, l, stdout, "two\n")
	add(t, l, stderr, "oops\n")
	add(t, l, terminal, "password: ")
	add(t, l, stdout, "")
	if end := add(t, l, stdout, "three\n"); end != 29 {
		t.Errorf("Append = %d, want 29", end)
	}
	if l.Start() != 0 || l.End() != 29 {
		t.Errorf("from %d to %d, want 0 to 29", l.Start(), l.End())
	}
	l.Close()
	opened, err := transcript.Open(dir)
	if err != nil || opened.End() != 29 || opened.Damaged() != 0 {
		t.Fatalf("Open = %v, end %d, damaged %d", err, opened.End(), opened.Damaged())
	}
	for _, test := range []struct {
		name    string
		from    transcript.Cursor
		limit   int
		streams []transcript.Stream
		want    string
	}{
		{"all", 0, 100, nil, `0@0:"one\ntwo\n" 1@8:"oops\n" 2@13:"password: " 0@23:"three\n" >29`},
		{"inside a record", 9, 100, nil, `1@9:"ops\n" 2@13:"password: " 0@23:"three\n" >29`},
		{"inside a joined chunk", 2, 4, nil, `0@2:"e\ntw" >6`},
		{"limit between records", 0, 8, nil, `0@0:"one\ntwo\n" >8`},
		{"one stream", 0, 100, []transcript.Stream{stdout}, `0@0:"one\ntwo\n" 0@23:"three\n" >29`},
		{"two streams", 5, 9, []transcript.Stream{stderr, stdout}, `0@5:"wo\n" 1@8:"oops\n" 0@23:"t" >24`},
		{"a stream without bytes", 0, 9, []transcript.Stream{3}, `>29`},
		{"the end", 29, 100, nil, `>29`},
		{"behind the end", 40, 100, nil, `>40`},
		{"before the beginning", -7, 3, nil, `0@0:"one" >3`},
		{"no limit to speak of", 4, 0, nil, `>4`},
	} {
		for name, log := range map[string]*transcript.Log{"closed": l, "opened": opened} {
			page, err := read(log, test.from, test.limit, test.streams...)
			if got := show(page); got != test.want || err != nil {
				t.Errorf("%s, %s: got %s, %v, want %s", test.name, name, got, err, test.want)
			}
		}
	}
}

func TestDropped(t *testing.T) {
	// Two records of 24+26 bytes fill a segment, three segments the log.
	l, dir := create(t, transcript.Options{Limit: 300, Segment: 100})
	for i := range 9 {
		add(t, l, stdout, strings.Repeat(string(rune('a'+i)), 26))
	}
	// i stands alone in the last segment.
	if l.Start() != 4*26 || l.End() != 9*26 {
		t.Errorf("from %d to %d, want %d to %d", l.Start(), l.End(), 4*26, 9*26)
	}
	if n := size(t, dir); n != 250 {
		t.Errorf("the files have %d bytes, want 250", n)
	}
	page, err := read(l, 10, 3)
	if got := show(page); got != `-94 0@104:"eee" >107` || err != nil {
		t.Errorf("Read = %s, %v", got, err)
	}
	if page, err = read(l, 105, 1<<20); len(transcript.Bytes(page.Chunks)) != 129 || page.Dropped != 0 || err != nil {
		t.Errorf("Read = %s, %v", show(page), err)
	}
}

// size returns how many bytes the files of a log have.
func size(t interface {
	Helper()
	Errorf(string, ...any)
	Fatal(...any)
}, dir string,
) (n int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v", entry.Name(), info.Mode())
		}
		n += info.Size()
	}
	return n
}

func TestClosed(t *testing.T) {
	l, _ := create(t, transcript.Options{})
	add(t, l, stdout, "bytes")
	l.Rest()
	add(t, l, stdout, " more")
	for range 2 {
		if err := l.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	}
	if end, err := l.Append(stdout, []byte("x")); end != 10 || !errors.Is(err, transcript.ErrClosed) {
		t.Errorf("Append = %d, %v, want 10, %v", end, err, transcript.ErrClosed)
	}
	if page, err := read(l, 0, 100); show(page) != `0@0:"bytes more" >10` || err != nil {
		t.Errorf("Read = %s, %v", show(page), err)
	}
	if _, err := l.Append(transcript.Streams, nil); err == nil {
		t.Error("Append took a stream that does not exist")
	}
}

// TestTogether: three writers and readers of all kinds; each stream comes whole
// and in order, or the readers know how much is missing.
func TestTogether(t *testing.T) {
	for name, options := range map[string]transcript.Options{
		"all is kept": {},
		"dropping":    {Limit: 64 << 10, Segment: 8 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := create(t, options)
			var readers, writers sync.WaitGroup
			var closed atomic.Bool
			for range 2 {
				readers.Go(func() { follow(t, l, &closed, options.Limit == 0) })
			}
			readers.Go(func() {
				for ; !closed.Load(); runtime.Gosched() {
					v := l.View(l.Start(), l.End(), stdout, stderr)
					e, err := v.Excerpt(100, 1000)
					if err != nil || e.Total < 0 || e.Dropped < 0 || e.Omitted < 0 && l.Start() == 0 {
						t.Errorf("Excerpt = %+v, %v", e, err)
					}
				}
			})
			for stream := range transcript.Stream(3) {
				writers.Go(func() {
					for i := range 3000 {
						if i%100 == 0 {
							l.Rest()
						}
						if _, err := l.Append(stream, fmt.Appendf(nil, "%d.%d\n", stream, i)); err != nil {
							t.Errorf("Append = %v", err)
						}
					}
				})
			}
			writers.Wait()
			l.Close()
			closed.Store(true)
			readers.Wait()
		})
	}
}

// follow reads a log to its end, which it has once it is closed.
func follow(t *testing.T, l *transcript.Log, closed *atomic.Bool, whole bool) {
	var at transcript.Cursor
	var streams [3][]byte
	for ; !closed.Load() || at < l.End(); runtime.Gosched() {
		page, err := read(l, at, 1000)
		if err != nil {
			t.Errorf("Read = %v", err)
			return
		}
		at += transcript.Cursor(page.Dropped)
		if page.Dropped > 0 {
			clear(streams[:]) // they begin in the middle of a line
		}
		for _, c := range page.Chunks {
			if c.At != at {
				t.Errorf("a chunk at %d, want %d", c.At, at)
			}
			at = c.End()
			streams[c.Stream] = append(streams[c.Stream], c.Data...)
		}
		if page.Next != at {
			t.Errorf("next is %d, want %d", page.Next, at)
			return
		}
	}
	for stream, got := range streams {
		lines := bytes.Split(bytes.TrimSuffix(got, []byte("\n")), []byte("\n"))
		if whole && len(lines) != 3000 {
			t.Errorf("stream %d has %d lines, want 3000", stream, len(lines))
		}
		first := 3000 - len(lines)
		for i, line := range lines {
			want := fmt.Sprintf("%d.%d", stream, first+i)
			if string(line) != want && (i > 0 || !strings.HasSuffix(want, string(line))) {
				t.Errorf("line %d of stream %d is %q, want %q", i, stream, line, want)
				break
			}
		}
	}
	if at != l.End() {
		t.Errorf("the reader came to %d of %d", at, l.End())
	}
}
