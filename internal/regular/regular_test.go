package regular_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"gateway/internal/regular"
)

// Nothing waits for who writes, but for a pipe that was given, and for that no longer
// than the caller.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	file, fifo, null := filepath.Join(dir, "file"), filepath.Join(dir, "fifo"), filepath.Join(dir, "null")
	if err := errors.Join(os.WriteFile(file, []byte("text"), 0o600), syscall.Mkfifo(fifo, 0o600), os.Symlink(os.DevNull, null)); err != nil {
		t.Fatal(err)
	}
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	defer to.Close()
	for _, test := range []struct{ path, want, err string }{
		{file, "tex", ""},
		{null, "", ""},
		{fifo, "", "open " + fifo + ": a FIFO, and no regular file"},
		{"/dev/zero", "", "open /dev/zero: a device, and no regular file"},
		{dir, "", "open " + dir + ": is a directory"},
	} {
		got, err := regular.Read(t.Context(), test.path, 3)
		if string(got) != test.want || (err != nil || test.err != "") && fmt.Sprint(err) != test.err {
			t.Errorf("%s: %q, %v, want %q, %s", test.path, got, err, test.want, test.err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := regular.Read(ctx, fmt.Sprintf("/dev/fd/%d", from.Fd()), 3); err == nil {
		t.Error("a pipe that nobody closes was read")
	}
}
