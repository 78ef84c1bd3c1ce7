package transcript_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gateway/internal/sshdtest"
	"gateway/internal/transcript"
)

// TestUnsafe: what others may have put there or may read is refused, whoever
// opens it.
func TestUnsafe(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(dir, file string) error
		want string
	}{
		{"an open directory", func(dir, _ string) error { return os.Chmod(dir, 0o750) }, "open to other users, mode 750"},
		{"a link to a directory", func(dir, _ string) error {
			return errors.Join(os.Rename(dir, dir+"2"), os.Symlink(dir+"2", dir))
		}, "not a directory"},
		{"somebody's directory", func(dir, _ string) error { return give(dir) }, "owned by another user"},
		{"an open file", func(_, file string) error { return os.Chmod(file, 0o604) }, "open to other users, mode 604"},
		{"a link", func(_, file string) error {
			return errors.Join(os.Rename(file, file+"2"), os.Symlink(file+"2", file))
		}, "a symbolic link"},
		{"a second name", func(_, file string) error { return os.Link(file, file+"2") }, "it has a second name"},
		{"a FIFO", func(_, file string) error {
			return errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600))
		}, "not a file"},
		{"a directory for a file", func(_, file string) error {
			return errors.Join(os.Remove(file), os.Mkdir(file, 0o700))
		}, "not a file"},
		{"somebody's file", func(_, file string) error { return give(file) }, "owned by another user"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, dir := create(t, transcript.Options{})
			add(t, l, stdout, "secret")
			file := segmentsOf(t, dir)[0]
			if err := test.do(dir, file); err != nil {
				if os.Geteuid() != 0 && errors.Is(err, syscall.EPERM) {
					sshdtest.Skip(t, "only root can give a file away")
				}
				t.Fatal(err)
			}
			_, err := transcript.Open(dir)
			refused(t, "Open", err, test.want)
			if strings.Contains(test.name, "directory") && !strings.Contains(test.name, "for a file") {
				_, err = transcript.Create(dir, transcript.Options{})
				refused(t, "Create", err, test.want)
				return
			}
			_, err = read(l, 0, 100)
			refused(t, "Read", err, test.want)
			l.Rest()
			end, err := l.Append(stdout, []byte("more"))
			if end != 10 || err == nil { // the system may refuse it before we do
				t.Errorf("Append = %d, %v, want 10 and an error", end, err)
			}
		})
	}
}

func give(path string) error { return os.Lchown(path, 12345, 12345) }

func refused(t *testing.T, what string, err error, want string) {
	t.Helper()
	var coded *transcript.Error
	if !errors.As(err, &coded) || coded.ErrorCode() != "transcript.unsafe" || coded.ErrorHint() == "" || !strings.HasSuffix(err.Error(), ": "+want) {
		t.Errorf("%s = %v, want %s", what, err, want)
	}
}

// TestForeignFiles: other files of a session stand beside its log.
func TestForeignFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "session")
	must(t, os.Mkdir(dir, 0o700))
	for _, name := range []string{"session.json", "transcript-1.log", "transcript-99999999999999999999.log", "transcript-+0000000000000000001.log"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o644))
	}
	if l := reopen(t, dir); l.End() != 0 || l.Damaged() != 0 {
		t.Errorf("a log to %d, damaged %d", l.End(), l.Damaged())
	}
	l, err := transcript.Create(dir, transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	add(t, l, stdout, "x")
	l.Close()
	if _, err := transcript.Create(dir, transcript.Options{}); !errors.Is(err, os.ErrExist) {
		t.Errorf("Create over a log = %v, want %v", err, os.ErrExist)
	}
	if _, err := transcript.Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open = %v, want %v", err, os.ErrNotExist)
	}
}

// TestRemoved: somebody removes the files of a log that is open.
func TestRemoved(t *testing.T) {
	l, dir := three(t)
	must(t, os.Remove(segmentsOf(t, dir)[1]))
	if kept, dropped := whole(t, l); kept != 8*120+12 || dropped != 4*120+6 {
		t.Errorf("kept %d, dropped %d", kept, dropped)
	}
	if opened := reopen(t, dir); opened.End() != l.End() {
		t.Errorf("opened to %d, want %d", opened.End(), l.End())
	}
	live, dir := create(t, transcript.Options{})
	add(t, live, stdout, "before")
	must(t, os.RemoveAll(dir))
	live.Rest()
	if end, err := live.Append(stdout, []byte("after")); end != 11 || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Append = %d, %v, want 11, %v", end, err, os.ErrNotExist)
	}
}
