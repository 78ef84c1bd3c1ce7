package transcript_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gateway/internal/transcript"
)

// A disk is one that can be full.
type disk struct {
	dir        string
	fill, free func()
	full       error
}

// limited is a disk on which no file may be longer than 1000 bytes; the limit
// is the process's.
func limited(t *testing.T) disk {
	var old unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &old))
	set := func(limit uint64) {
		must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: old.Max}))
	}
	t.Cleanup(func() { set(old.Cur) })
	return disk{filepath.Join(t.TempDir(), "log"), func() { set(1000) }, func() { set(old.Cur) }, syscall.EFBIG}
}

// TestDiskFull: a disk that is full costs output, and nothing else.
func TestDiskFull(t *testing.T) {
	disks := map[string]func(*testing.T) disk{"limited": limited}
	if os.Geteuid() == 0 {
		addMounted(disks)
	}
	for name, disk := range disks {
		t.Run(name, func(t *testing.T) {
			d := disk(t)
			l, err := transcript.Create(d.dir, transcript.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			fails := false
			write := func(n int) {
				t.Helper()
				want := l.End() + transcript.Cursor(n)
				end, err := l.Append(stdout, bytesAt(l.End(), n))
				if end != want || (err != nil) != fails || fails && !isFull(err, d.full) {
					t.Errorf("Append = %d, %v, want %d, failing %t", end, err, want, fails)
				}
			}
			write(500)
			d.fill()
			fails = true
			write(5000)
			l.Rest()
			write(150_000)
			if kept, dropped := whole(t, l); kept != 500 || dropped != 155_000 {
				t.Errorf("while it is full: kept %d, dropped %d", kept, dropped)
			}
			d.free()
			fails = false
			write(70_000)
			if kept, dropped := whole(t, l); kept != 70_500 || dropped != 155_000 {
				t.Errorf("when it is free again: kept %d, dropped %d", kept, dropped)
			}
			e, err := l.View(400, l.End()).Excerpt(200, 0)
			if err != nil || e.Total != 70_100 || e.Dropped != 155_000 || len(e.Head) != 2 || e.Head[1].At != 155_500 {
				t.Errorf("Excerpt = %+v, %v", e, err)
			}
			d.fill()
			fails = true
			write(4000)
			d.free()
			if err := l.Close(); err != nil {
				t.Errorf("Close = %v", err)
			}
			opened := reopen(t, d.dir)
			if kept, dropped := whole(t, opened); kept != 70_500 || dropped != 159_000 || opened.Damaged() != 0 {
				t.Errorf("opened: kept %d, dropped %d, damaged %d", kept, dropped, opened.Damaged())
			}
		})
	}
}

// isFull reports whether an error says that there is no room, and what to do.
func isFull(err, cause error) bool {
	var coded *transcript.Error
	return errors.Is(err, cause) && errors.As(err, &coded) && coded.ErrorCode() == "transcript.disk" &&
		(coded.ErrorHint() != "" || cause == syscall.EFBIG)
}
