package session

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"gateway/internal/ends"
	"gateway/transport"
)

// A feeder fills a command's stdin: a program on a pipe of its own that copies
// its input into a FIFO in the keeper's directory.
//
// Two traps shape it. A FIFO whose other side never comes blocks its opener
// for ever, so the feeder opens it for reading and writing first. And a
// feeder that could still read it would neither see the command's end nor
// give it an end of file, so it lets go of that side as soon as the client
// says, with one line, that the command has the FIFO open.
type feeder struct {
	pipe    *transport.Pipe
	fifo    string
	writing sync.Mutex // held while the pipe's stdin is written to or closed
	unread  chan error // why the caller's input could not be read to its end
}

// openFeeder starts a feeder and waits until its FIFO is there. Each try has its
// own: one whose channel has ended may still be about to remove it.
func (s *Session) openFeeder(ctx context.Context, k *keeper) (f *feeder, err error) {
	bounded, cancel := context.WithTimeoutCause(ctx, s.config.OpenTimeout, errOpenTimeout)
	defer cancel()
	for range 3 { // see anotherKeeper: dropbear ends new channels now and then
		if f, err = tryFeeder(bounded, s.transport, k.stdin(newNonce())); err == nil || bounded.Err() != nil || closed(s.ended) {
			break
		}
	}
	switch {
	case err == nil:
		return f, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("session: %w", transport.Cause(ctx))
	case closed(s.ended): // and took the directory along
		return nil, s.terminalGone(err)
	}
	return nil, err
}

func tryFeeder(ctx context.Context, t transport.Transport, fifo string) (*feeder, error) {
	// A hang-up must not keep it from removing the FIFO.
	script := `trap "" HUP; umask 077; f=` + fifo + `; rm -f $f; mkfifo $f && exec 3<>$f 4>$f && echo $f && read -r x && rm -f $f && trap - HUP && exec cat >&4 3>&- 4>&- 2>/dev/null; rm -f $f`
	pipe, err := t.Pipe(ctx, inSh(script))
	if err != nil {
		return nil, err
	}
	said, read := &ends.Ends{Tail: 200}, make(chan struct{})
	go func() { // ends with the pipe
		defer close(read)
		for b, err := make([]byte, 512), error(nil); err == nil; {
			var n int
			n, err = pipe.Stderr.Read(b)
			said.Add(b[:n])
		}
	}()
	stop := context.AfterFunc(ctx, func() { pipe.Close() })
	if err := awaitLine(pipe.Stdout, fifo); err != nil || !stop() {
		within(wordsGrace, read)
		pipe.Close()
		if errors.Is(err, transport.ErrLost) {
			return nil, fmt.Errorf("session: stdin: %w", err)
		}
		why := ""
		if ctx.Err() != nil {
			why = ": " + context.Cause(ctx).Error()
		}
		if closed(read) && said.Total() > 0 {
			why += fmt.Sprintf("; it said %q", bytes.TrimSpace(said.Bytes()))
		}
		return nil, failure(codeInternal, context.Cause(ctx), "", "stdin: no FIFO for it at %s%s", fifo, why)
	}
	return &feeder{pipe: pipe, fifo: fifo, unread: make(chan error, 1)}, nil
}

// awaitLine reads up to a line. What a login shell says, with or without a newline, may
// stand in front of it.
func awaitLine(r io.Reader, line string) error {
	wanted := []byte(line + "\n")
	from, last := bufio.NewReader(r), make([]byte, len(wanted))
	for !bytes.Equal(last, wanted) {
		c, err := from.ReadByte()
		if err != nil {
			return err
		}
		last = append(last[1:], c)
	}
	return nil
}

// feed copies r to the command's stdin, until r ends or the command's side is
// closed. The command has its stdin open by now.
func (f *feeder) feed(r io.Reader) {
	defer f.endInput()
	w := &feederInput{feeder: f}
	if _, err := io.WriteString(w, "go\n"); err != nil {
		return
	}
	if _, err := io.Copy(w, r); err != nil && !w.failed {
		f.unread <- err
	}
}

// feederInput is a feeder's stdin. A write that fails says that the command reads no
// more, as in a pipeline, or that the feeder is gone: its end tells which.
type feederInput struct {
	*feeder
	failed bool
}

func (w *feederInput) Write(b []byte) (int, error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	n, err := w.pipe.Stdin.Write(b)
	w.failed = err != nil
	return n, err
}

// endInput ends the feeder's stdin, once nobody is about to write to it.
func (f *feeder) endInput() {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.pipe.Stdin.Close()
}

// failure returns why a command that has ended may have taken a part of its stdin for
// the whole; nil if it did not. A feeder whose input has ended ends by itself, or by a
// SIGPIPE where the command has not read it all; one that has not ended in this time
// still has something that nobody reads.
func (f *feeder) failure(patience time.Duration) error {
	if f == nil {
		return nil
	}
	go f.endInput() // ends with the pipe
	within(patience, f.pipe.Done())
	var why error
	select {
	case why = <-f.unread:
	default:
		if !closed(f.pipe.Done()) {
			return nil
		}
		exit, lost := f.pipe.Wait()
		switch {
		case lost != nil:
			why = lost
		case exit.Code > 1 && exit.Code != 128+int(syscall.SIGPIPE): // 1 is a SIGPIPE that is ignored
			why = fmt.Errorf("what passes it on there ended with status %d", exit.Code)
		}
	}
	if why == nil {
		return nil
	}
	return failure(InputFailed, why, "the command ran with a part of its input: see what it has done before you run it again", "stdin: %v", why)
}

// unopened is the error for a command whose shell could not open its stdin. The
// status is then that of the redirection, and nothing has run.
func (f *feeder) unopened() error {
	return failure(codeInternal, nil, "something may empty the directory for temporary files; run the command again", "stdin: the shell could not open %s", f.fifo)
}

func (f *feeder) close() {
	if f != nil {
		f.pipe.Close()
	}
}
