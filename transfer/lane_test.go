package transfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pkg/sftp"

	"gateway/transport"
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
				err := os.WriteFile(path, bytes.Repeat([]byte{b}, size), 0o644)
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
			r.second.opening = r.link.begin(func() error { return nil })
			r.link.calls.Wait() // the first round trip is measured
			r.link.far.Store(int64(laneFar))
			r.link.block = block // as with a server that tells its limits
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
	must(t, os.WriteFile(path, nil, 0o644))
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
		last := l.begin(func() error {
			<-late
			_, err := file.Stat() // this server knows no fsync
			return err
		})
		open.leave(last)
		synctest.Wait()
		close(late)
		if err := last.wait(t.Context()); err != nil {
			t.Error(err)
		}
		if l.calls.Wait(); !errors.Is(file.Close(), os.ErrClosed) {
			t.Error("the file is not closed")
		}
	})
}

// TestSecondLaneStalls: while the second channel is being opened, a file is done with it at
// once, whoever else waits for it.
func TestSecondLaneStalls(t *testing.T) {
	c := here(t)
	begun := make(chan struct{})
	c.Transport = stalling{mute{c.Transport}, sync.OnceFunc(func() { close(begun) })}
	r := over(t, sftp.InMemHandler())
	r.connection = c
	var parts []Part
	for _, path := range []string{"/waits", "/ends"} {
		part, err := r.Create(t.Context(), Spec{Path: path, Perm: 0o644, Size: 2 * early})
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
		<-begun // the first one is at it
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := parts[1].Finish(t.Context(), Times{}); err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second): // of the greeting's thirty
		t.Error("a file waits for the second channel")
	}
	parts[0].Abandon(false)
	<-done
	r.second.close()
}

// stalling is a machine that tells when a server is started.
type stalling struct {
	mute
	begun func()
}

func (s stalling) Subsystem(ctx context.Context, name string) (*transport.Pipe, error) {
	s.begun()
	return s.mute.Subsystem(ctx, name)
}
