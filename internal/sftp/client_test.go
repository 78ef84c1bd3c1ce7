package sftp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	server "github.com/pkg/sftp"
	"go.uber.org/goleak"

	"gateway/internal/sftp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dial returns a client of another implementation's server, which serves this
// machine's files.
func dial(t *testing.T) *sftp.Client {
	t.Helper()
	near, far := net.Pipe()
	s, err := server.NewServer(far)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	c, err := sftp.New(t.Context(), near, near, func() { near.Close() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		<-served
		s.Close()
	})
	return c
}

func TestClient(t *testing.T) {
	c, ctx, dir := dial(t), t.Context(), t.TempDir()
	path := filepath.Join(dir, "file")
	h, err := c.Open(ctx, path, sftp.Read|sftp.Write|sftp.Create|sftp.Excl, sftp.Attr{}.WithMode(0o640))
	if err != nil {
		t.Fatal(err)
	}
	old := time.Unix(1_000_000_000, 0)
	wrote := c.WriteAt(h, []byte("hello"), 0)
	set := c.Fsetstat(h, sftp.Attr{}.WithMode(0o600).WithTimes(old, old))
	for _, call := range []*sftp.Call{wrote, set} {
		if err := call.Done(ctx); err != nil {
			t.Error(err)
		}
	}
	into := make([]byte, 10)
	if n, err := c.ReadAt(h, into, 1).Data(ctx); err != nil || string(into[:n]) != "ello" {
		t.Errorf("%q, %v", into[:n], err)
	}
	if _, err := c.ReadAt(h, into, 5).Data(ctx); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	if err := c.CloseHandle(h).Done(ctx); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || !info.ModTime().Equal(old) || info.Size() != 5 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := c.Open(ctx, path, sftp.Write|sftp.Create|sftp.Excl, sftp.Attr{}); err == nil {
		t.Error("a file that exists was made")
	}
	if err := c.Symlink("file", filepath.Join(dir, "link")).Done(ctx); err != nil {
		t.Error(err)
	}
	if target, err := c.Readlink(ctx, filepath.Join(dir, "link")); err != nil || target != "file" {
		t.Errorf("%q, %v", target, err)
	}
	if a, err := c.Lstat(filepath.Join(dir, "link")).Attr(ctx); err != nil || a.Mode().Type() != fs.ModeSymlink {
		t.Errorf("%v, %v", a.Mode(), err)
	}
	if err := c.Rename(path, filepath.Join(dir, "link")).Done(ctx); err != nil {
		t.Error(err)
	}
	if err := c.Mkdir(filepath.Join(dir, "sub"), sftp.Attr{}.WithMode(0o700)).Done(ctx); err != nil {
		t.Error(err)
	}
	var names []string
	err = c.ReadDir(ctx, dir, func(e sftp.Entry) error {
		names = append(names, e.Name+" "+e.Attr.Mode().String())
		return nil
	})
	if got := strings.Join(names, ", "); err != nil || !strings.Contains(got, "link -rw-------") || !strings.Contains(got, "sub d") {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := c.Stat(path).Attr(ctx); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
}

// answers plays back what a server says, and then nothing more.
type answers struct {
	bytes.Reader
	closed chan struct{}
}

func (a *answers) Read(b []byte) (int, error) {
	n, err := a.Reader.Read(b)
	if err == io.EOF {
		<-a.closed
	}
	return n, err
}

func packet(kind byte, body ...byte) []byte {
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+1)), kind), body...)
}

var greeting = packet(2, 0, 0, 0, 3)

// play has a client meet a server that says just that.
func play(t testing.TB, said []byte) error {
	a := &answers{closed: make(chan struct{})}
	a.Reset(said)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c, err := sftp.New(ctx, a, io.Discard, sync.OnceFunc(func() { close(a.closed) }))
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Lstat("x").Attr(ctx)
	if err != nil {
		return err
	}
	return c.ReadDir(ctx, "x", func(sftp.Entry) error { return nil })
}

// What a server says that lies ends the connection, and asks for no memory.
func TestHostile(t *testing.T) {
	tests := map[string][]byte{
		"a banner":         []byte("Welcome to web1!\n"),
		"another version":  packet(2, 0, 0, 0, 4),
		"too long":         append(append([]byte{}, greeting...), 0xff, 0xff, 0xff, 0xff, 105, 0, 0, 0, 1),
		"too short":        append(append([]byte{}, greeting...), 0, 0, 0, 1, 105, 0, 0, 0, 1),
		"an unasked one":   append(append([]byte{}, greeting...), packet(105, 0, 0, 0, 77, 0, 0, 0, 0)...),
		"half a packet":    append(append([]byte{}, greeting...), packet(105, 0, 0, 0, 1, 0)...),
		"a negative size":  append(append([]byte{}, greeting...), packet(105, 0, 0, 0, 1, 0, 0, 0, 1, 0xff, 0, 0, 0, 0, 0, 0, 0)...),
		"another answer":   append(append([]byte{}, greeting...), packet(102, 0, 0, 0, 1, 0, 0, 0, 0)...),
		"endless extended": append(append([]byte{}, greeting...), packet(105, 0, 0, 0, 1, 0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff)...),
	}
	for name, said := range tests {
		if err := play(t, said); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzServer(f *testing.F) {
	f.Add(packet(105, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0x41, 0xff))
	f.Add(append(packet(105, 0, 0, 0, 1, 0, 0, 0, 0), packet(102, 0, 0, 0, 2, 0, 0, 0, 1, 'h')...))
	f.Fuzz(func(t *testing.T, said []byte) {
		_ = play(t, append(append([]byte{}, greeting...), said...)) // it must end
	})
}
