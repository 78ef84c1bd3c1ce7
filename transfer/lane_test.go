package transfer

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pkg/sftp"
)

// onOpen does something before a server opens a file.
type onOpen struct {
	net.Conn
	do func()
}

func (o onOpen) Write(b []byte) (int, error) {
	if len(b) > openHead && b[4] == typeOpen {
		o.do()
	}
	return o.Conn.Write(b)
}

// TestSecondLaneOfAnother: what takes the name of a file between the two times
// that it is opened is not mixed with it.
func TestSecondLaneOfAnother(t *testing.T) {
	const size = laneSize + 4<<20
	old := time.Unix(1e9, 0)
	for name, test := range map[string]struct {
		replaces bool
		modified time.Time
		lane     bool
	}{
		"the same":                 {false, old, true},
		"another":                  {true, old.Add(time.Minute), false},
		"another that looks alike": {true, old, true}, // until it is written to
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			make := func(path string, b byte, modified time.Time) {
				err := os.WriteFile(path, bytes.Repeat([]byte{b}, size), 0o600)
				if err == nil {
					err = os.Chtimes(path, modified, modified)
				}
				if err != nil {
					t.Error(err)
				}
			}
			make(path, 'a', old)
			serve := func(do func()) *link {
				near, far := net.Pipe()
				s, err := sftp.NewServer(far)
				if err != nil {
					t.Fatal(err)
				}
				return linkTo(t, s, near, onOpen{near, do})
			}
			r := &Remote{link: serve(func() {})}
			r.second.link = serve(func() {
				if !test.replaces {
					return
				}
				make(path+"2", 'b', test.modified)
				if err := os.Rename(path+"2", path); err != nil {
					t.Error(err)
				}
			})
			r.second.tried = true
			r.link.calls.Wait() // the first round trip is measured
			r.link.far.Store(int64(laneFar))
			content, err := r.Open(t.Context(), path, Info{Size: size}, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer content.Close()
			c := content.(*remoteContent)
			if c.lanes.opening.Wait(); (c.lanes.second.Load() != nil) != test.lane {
				t.Errorf("a second lane: %v, want %v", !test.lane, test.lane)
			}
			if _, err := content.Opened(t.Context()); err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(content)
			if err != nil || len(b) != size {
				t.Fatalf("%d bytes, %v", len(b), err)
			}
			if others := size - bytes.Count(b, []byte("a")); others > 0 && !test.lane {
				t.Errorf("%d bytes are of another file", others)
			}
			if changed, err := content.Changed(t.Context()); changed || err != nil {
				t.Errorf("Changed = %v, %v", changed, err)
			}
			make(path, 'c', old.Add(time.Hour))
			if changed, err := content.Changed(t.Context()); changed != test.lane || err != nil {
				t.Errorf("it was written to: Changed = %v, %v, want %v", changed, err, test.lane)
			}
		})
	}
}

// TestSecondLaneIsLeft: what was asked of a second lane is sent before its file is
// closed, however late that is.
func TestSecondLaneIsLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		s, err := sftp.NewServer(far)
		if err != nil {
			t.Fatal(err)
		}
		l := linkTo(t, s, near, near)
		file, err := l.OpenFile(path, os.O_WRONLY)
		if err != nil {
			t.Fatal(err)
		}
		open := lanes{cancel: func() {}}
		open.second.Store(&lane{l, file})
		late := make(chan struct{})
		last := l.begin(func() (int, error) {
			<-late
			_, err := file.Stat() // this server knows no fsync
			return 0, err
		})
		open.leave(last)
		synctest.Wait()
		close(late)
		if _, err := last.wait(t.Context()); err != nil {
			t.Error(err)
		}
		if l.calls.Wait(); !errors.Is(file.Close(), os.ErrClosed) {
			t.Error("the file is not closed")
		}
	})
}
