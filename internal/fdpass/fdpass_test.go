package fdpass_test

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gateway/internal/fdpass"
	"gateway/internal/sshdtest"
)

// pair returns the two ends of a connection.
func pair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(sshdtest.ShortDir(t), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr)); err != nil {
		t.Fatal(err)
	}
	if b, err = l.AcceptUnix(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestFilesArrive(t *testing.T) {
	a, b := pair(t)
	r, w := pipe(t)
	if err := fdpass.Send(a, r, w); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(a, "next"); err != nil {
		t.Fatal(err)
	}
	files, err := fdpass.Receive(b)
	if err != nil || len(files) != 2 {
		t.Fatalf("Receive = %v, %v, want two files", files, err)
	}
	defer files[0].Close()
	defer files[1].Close()
	for _, f := range files {
		raw, err := f.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		raw.Control(func(fd uintptr) {
			if flags, err := unix.FcntlInt(fd, unix.F_GETFD, 0); flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("descriptor flags = %#x, %v, want close-on-exec", flags, err)
			}
		})
	}
	io.WriteString(files[1], "through")
	got := make([]byte, 7)
	if _, err := io.ReadFull(r, got); err != nil || string(got) != "through" {
		t.Errorf("read %q, %v, want %q", got, err, "through")
	}
	got = got[:4]
	if _, err := io.ReadFull(b, got); err != nil || string(got) != "next" {
		t.Errorf("behind the files came %q, %v, want %q", got, err, "next")
	}
}

// TestCloseUnblocksARead: a received file does not hold a thread, and can be
// let go while somebody reads it.
func TestCloseUnblocksARead(t *testing.T) {
	a, b := pair(t)
	r, _ := pipe(t)
	if err := fdpass.Send(a, r); err != nil {
		t.Fatal(err)
	}
	files, err := fdpass.Receive(b)
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := files[0].Read(make([]byte, 1))
		read <- err
	}()
	files[0].Close()
	select {
	case err := <-read:
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("Read = %v, want %v", err, os.ErrClosed)
		}
	case <-time.After(10 * time.Second):
		t.Error("Read does not end with Close")
	}
}

func TestWrongMessagesLeaveNothingOpen(t *testing.T) {
	r, _ := pipe(t)
	raw, err := r.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	rights := func(n int) []byte {
		var all []byte
		raw.Control(func(fd uintptr) {
			fds := make([]int, n)
			for i := range fds {
				fds[i] = int(fd)
			}
			all = unix.UnixRights(fds...)
		})
		return all
	}
	for _, test := range []struct {
		name    string
		byte    byte
		control []byte
		want    string
	}{
		{"fewer than announced", 3, rights(2), "2 came, 3 were announced"},
		{"more than announced", 1, rights(2), "2 came, 1 were announced"},
		{"none announced", 0, rights(1), "1 came, 0 were announced"},
		{"none at all", 0, nil, "0 came, 0 were announced"},
		{"only a byte", 2, nil, "0 came, 2 were announced"},
		{"too many", 20, rights(20), "the kernel kept some"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, b := pair(t)
			before := openFiles(t)
			if _, _, err := a.WriteMsgUnix([]byte{test.byte}, test.control, nil); err != nil {
				t.Fatal(err)
			}
			files, err := fdpass.Receive(b)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Receive = %v, %v, want %q", files, err, test.want)
			}
			if after := openFiles(t); after != before {
				t.Errorf("%d files are open, want %d", after, before)
			}
		})
	}
}

func TestReceiveAfterTheEnd(t *testing.T) {
	a, b := pair(t)
	a.Close()
	if _, err := fdpass.Receive(b); err != io.EOF {
		t.Errorf("Receive = %v, want %v", err, io.EOF)
	}
}

func TestSendRefuses(t *testing.T) {
	a, _ := pair(t)
	if err := fdpass.Send(a); err == nil {
		t.Error("Send of nothing = nil, want an error")
	}
	r, w := pipe(t)
	r.Close()
	if err := fdpass.Send(a, w, r); err == nil {
		t.Error("Send of a closed file = nil, want an error")
	}
}
