package transcript_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"gateway/internal/transcript"
)

// BenchmarkAppend compares with writing the same to plain files, of which there
// are as many and as large ones.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{100, 4 << 10, 64 << 10} {
		data := bytes.Repeat([]byte("x"), n)
		b.Run(fmt.Sprintf("%d/files", n), func(b *testing.B) {
			dir := b.TempDir()
			name := func(i int) string { return filepath.Join(dir, fmt.Sprint(i)) }
			var file *os.File
			b.SetBytes(int64(n))
			for i, offset := 0, int64(4<<20); b.Loop(); offset += int64(n) {
				if offset+int64(n) > 4<<20 {
					file.Close() // nil the first time, which is an error of no interest
					os.Remove(name(i - 15))
					i++
					var err error
					if file, err = os.Create(name(i)); err != nil {
						b.Fatal(err)
					}
					offset = 0
				}
				if _, err := file.WriteAt(data, offset); err != nil {
					b.Fatal(err)
				}
			}
			file.Close()
		})
		b.Run(fmt.Sprintf("%d/log", n), func(b *testing.B) {
			l, _ := create(b, transcript.Options{})
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Append(stdout, data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// full returns a log of about 60 MB in lines, an error every now and then.
func full(b *testing.B) (*transcript.Log, string) {
	l, dir := create(b, transcript.Options{})
	var text []byte
	for i := range 700_000 {
		text = fmt.Appendf(text, "%08d a line of some eighty characters, as they come from a build of something\n", i)
		if len(text) > 30_000 {
			l.Append(stdout, text)
			text = text[:0]
		}
		if i%100_000 == 5 {
			add(b, l, stderr, "an error\n")
		}
	}
	l.Append(stdout, text)
	return l, dir
}

func BenchmarkRead(b *testing.B) {
	l, dir := full(b)
	size := int64(l.End())
	everything := l.View(0, l.End(), stdout)
	for _, bench := range []struct {
		name  string
		bytes int64
		do    func() error
	}{
		{"all in pages of 64 KiB", size, func() error {
			for at := transcript.Cursor(0); at < l.End(); {
				page, err := read(l, at, 64<<10)
				if err != nil {
					return err
				}
				at = page.Next
			}
			return nil
		}},
		{"the last 100 bytes", 100, func() error {
			_, err := read(l, l.End()-100, 100)
			return err
		}},
		{"head and tail", 64 << 10, func() error {
			_, err := everything.Excerpt(32<<10, 32<<10)
			return err
		}},
		{"the seldom stream", size, func() error {
			_, err := l.View(0, l.End(), stderr).Excerpt(32<<10, 32<<10)
			return err
		}},
		{"grep", size, func() error {
			_, err := everything.Grep(b.Context(), regexp.MustCompile("0099999|no such"), transcript.GrepOptions{})
			return err
		}},
		{"grep with context", size, func() error {
			_, err := everything.Grep(b.Context(), regexp.MustCompile("0099999|no such"), transcript.GrepOptions{Context: 3})
			return err
		}},
		{"open", size, func() error {
			_, err := transcript.Open(dir)
			return err
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(bench.bytes)
			b.ReportAllocs()
			for b.Loop() {
				must(b, bench.do())
			}
		})
	}
}

// TestIdle: a thousand logs that rest cost no descriptor and little memory.
func TestIdle(t *testing.T) {
	descriptors := func() int {
		entries, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	memory := func() int64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	goroutines, before, heap := runtime.NumGoroutine(), descriptors(), memory()
	var logs []*transcript.Log
	for i := range 1000 {
		l, _ := create(t, transcript.Options{})
		add(t, l, stdout, fmt.Sprintf("log %d\n", i))
		l.Rest()
		logs = append(logs, l)
	}
	if n := descriptors() - before; n > 2 {
		t.Errorf("%d descriptors are open", n)
	}
	if n := (memory() - heap) / 1000; n > 4<<10 {
		t.Errorf("a log takes %d bytes", n)
	}
	if n := runtime.NumGoroutine() - goroutines; n > 0 {
		t.Errorf("%d goroutines run", n)
	}
	runtime.KeepAlive(logs)
}
