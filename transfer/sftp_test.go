package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/pkg/sftp"

	"gateway/transport"
)

// TestCloseWhileSending: a server that takes nothing more does not keep a link
// from being closed.
func TestCloseWhileSending(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	sending := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(far, make([]byte, 9)) // SSH_FXP_INIT
		if err == nil {
			_, err = far.Write([]byte{0, 0, 0, 5, 2, 0, 0, 0, 3}) // SSH_FXP_VERSION
		}
		if err == nil {
			_, err = far.Read(make([]byte, 1)) // the rest of the request waits
		}
		sending <- err
	}()
	l, err := newLink(t.Context(), &transport.Pipe{Stdin: near, Stdout: near, Program: program{near}})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-sending; err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() {
		l.close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("close waits for the server")
	}
}

// patient is a server's file that writes a block when it is told to.
type patient struct {
	sftp.FileWriter
	next chan struct{}
}

func (p patient) Filewrite(r *sftp.Request) (io.WriterAt, error) {
	w, err := p.FileWriter.Filewrite(r)
	return patientFile{w, p.next}, err
}

func (p patient) OpenFile(r *sftp.Request) (sftp.WriterAtReaderAt, error) {
	w, err := p.FileWriter.(sftp.OpenFileWriter).OpenFile(r)
	return struct {
		io.ReaderAt
		io.WriterAt
	}{w, patientFile{w, p.next}}, err
}

type patientFile struct {
	io.WriterAt
	next chan struct{}
}

func (p patientFile) WriteAt(b []byte, at int64) (int, error) {
	<-p.next
	return p.WriterAt.WriteAt(b, at)
}

// TestFewBlocksAhead: what many files have to write does not keep a small request
// waiting for long.
func TestFewBlocksAhead(t *testing.T) {
	memory := sftp.InMemHandler()
	p := patient{memory.FilePut, make(chan struct{})}
	memory.FilePut = p
	r := over(t, memory)
	const files, each = 8, 2 << 20
	var parts []Part
	for i := range files {
		part, err := r.Create(t.Context(), Spec{Path: fmt.Sprintf("/%d", i), Perm: 0o644, Size: each})
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
	}
	var writing sync.WaitGroup
	for _, part := range parts {
		writing.Go(func() {
			if _, err := part.Write(make([]byte, each-1)); err != nil { // not all zeros of a block are a hole
				t.Error(err)
			}
		})
	}
	blocks := 0
	for range 8 { // the server is at work, and the rest waits
		p.next <- struct{}{}
		blocks++
	}
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		if _, err := r.Stat(t.Context(), "/", true); err != nil {
			t.Error(err)
		}
	}()
	for done := false; !done; {
		select {
		case p.next <- struct{}{}:
			blocks++
		case <-looked:
			done = true
		}
	}
	if most := 8 + maxRoom/r.link.block + 16; blocks > most {
		t.Errorf("%d blocks went first, want no more than %d", blocks, most)
	}
	close(p.next)
	writing.Wait()
}

// opened is a server's files, of which it tells when one is closed.
type opened struct{ closed chan struct{} }

func (o opened) Fileread(*sftp.Request) (io.ReaderAt, error) { return o, nil }
func (o opened) ReadAt([]byte, int64) (int, error)           { return 0, io.EOF }
func (o opened) Close() error                                { close(o.closed); return nil }

// TestOpenedTooLate: a file that a server opens when nobody waits for it any more does
// not stay open there.
func TestOpenedTooLate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan struct{})
	near, far := net.Pipe()
	o := opened{make(chan struct{})}
	r := remote(t, linkTo(t, sftp.NewRequestServer(far, sftp.Handlers{FileGet: o}), near, onOpen{near, func() {
		cancel()
		<-given
	}}))
	r.link.calls.Wait() // what the link itself asks for would go in one write with the open
	if _, err := r.Open(ctx, "/f", Info{}, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was given up", err)
	}
	close(given)
	select {
	case <-o.closed:
	case <-time.After(10 * time.Second):
		t.Error("the file stays open")
	}
}

// ending has a server end when a file is begun.
type ending struct {
	server net.Conn
	link   *link
}

func (e ending) Found(int64)       {}
func (e ending) Moved(string, int) {}
func (e ending) End(Event)         {}
func (e ending) Begin(string, int64, int64) {
	e.server.Close()
	_ = e.link.Wait() // until that is noticed
}

// TestServerEnds: without its server a copy ends, and does not fail file by file.
func TestServerEnds(t *testing.T) {
	from := t.TempDir()
	for i := range 3 {
		must(t, os.WriteFile(fmt.Sprintf("%s/%d", from, i), []byte("x"), 0o644))
	}
	r := over(t, sftp.InMemHandler())
	near, far := net.Pipe()
	r.link = linkTo(t, sftp.NewRequestServer(far, sftp.InMemHandler()), near, near)
	c := Copy{From: &Local{}, To: r, Paths: []string{from + "/."}, Into: "/", Recursive: true, Watch: ending{far, r.link}}
	if report := c.Run(t.Context()); !Lost(report.Err) {
		t.Errorf("%+v, want that the link was lost", report)
	}
}
