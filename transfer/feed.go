package transfer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"gateway/transport"
)

// A feed is a program that a shell has become, which reads or writes one file.
type feed struct {
	pipe   *transport.Pipe
	close  func()
	leave  func() // gives its place to another one
	mu     sync.Mutex
	errors bytes.Buffer // guarded by mu: the beginning of its stderr
	silent chan struct{}
}

// launch has a shell become something else, which with the context is ended, or if it
// writes, finished. It waits until that is about to happen: what is sent earlier, the shell
// might read.
func (s *Shell) launch(ctx context.Context, script string, writes bool) (*feed, error) {
	select {
	case s.feeds <- struct{}{}:
	case <-ctx.Done():
		return nil, transport.Cause(ctx)
	}
	pipe, err := s.connection.Pipe(ctx, "exec sh")
	if err != nil {
		<-s.feeds
		return nil, err
	}
	f := &feed{pipe: pipe, silent: make(chan struct{})}
	f.leave = sync.OnceFunc(func() { <-s.feeds })
	life, end := context.WithCancel(ctx)
	f.close = sync.OnceFunc(func() {
		end()
		pipe.Close()
		f.leave()
	})
	over := f.close
	if writes {
		over = f.finish
	}
	context.AfterFunc(life, over)
	go f.listen() // ends with the pipe
	say := "echo; echo " + ready
	if _, err = io.WriteString(pipe.Stdin, "LC_ALL=C; export LC_ALL; { { "+say+"; } >&2; "+say+"; "+script+"; }\n"); err == nil {
		err = skipPast(pipe.Stdout, "\n"+ready+"\n")
	}
	if err != nil {
		if failed := f.ended(); failed != nil {
			err = failed
		}
		f.close()
		return nil, ended(ctx, err)
	}
	return f, nil
}

// ready is what comes before what the program itself says.
const ready = "gateway-is-ready"

// skipPast reads up to a text and no further. What a login shell says comes
// before it.
func skipPast(r io.Reader, text string) error {
	var last []byte
	b := make([]byte, 1)
	for range maxNoise {
		if _, err := io.ReadFull(r, b); err != nil {
			return err
		}
		if last = append(last, b[0]); len(last) > len(text) {
			last = last[1:]
		}
		if string(last) == text {
			return nil
		}
	}
	return errNoShell
}

// listen keeps the beginning of what the program complains about. What a login
// shell complains about is not the program's error.
func (f *feed) listen() {
	defer close(f.silent)
	_ = skipPast(f.pipe.Stderr, "\n"+ready+"\n") // the end comes again
	b := make([]byte, 1024)
	for {
		n, err := f.pipe.Stderr.Read(b)
		f.mu.Lock()
		if f.errors.Len() < 4096 {
			f.errors.Write(b[:n])
		}
		f.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// ended waits for the program and returns what went wrong.
func (f *feed) ended() error {
	f.pipe.Stdin.Close()
	exit, err := f.pipe.Wait()
	if err != nil {
		return err
	}
	if exit.Code == 0 {
		return nil
	}
	<-f.silent
	f.mu.Lock()
	defer f.mu.Unlock()
	switch words := f.errors.String(); {
	case strings.TrimSpace(words) != "":
		return spoken(words)
	case exit.Signal != "":
		return unknownWords("ended by signal " + exit.Signal)
	}
	return unknownWords(fmt.Sprintf("ended with status %d", exit.Code))
}

// finishing is how long a program that writes may take to end with its input.
const finishing = 2 * time.Second

// finish is close for a program that writes, whose file is to be removed. One that has only
// begun would make it again behind that, and not every server hangs up what runs on it.
func (f *feed) finish() {
	go f.pipe.Stdin.Close() // ends with the pipe
	select {
	case <-f.pipe.Done():
	case <-time.After(finishing):
	}
	f.close()
}
