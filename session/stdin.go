package session

import (
	"context"
	"fmt"
	"io"

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
	pipe *transport.Pipe
	fifo string
}

const feederReady = "ready"

// openFeeder starts a feeder and waits until its FIFO is there. Each try has its
// own: one whose channel has ended may still be about to remove it.
func (s *Session) openFeeder(ctx context.Context, k *keeper) (f *feeder, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.OpenTimeout, errOpenTimeout)
	defer cancel()
	for range 3 { // see renewKeeper: dropbear ends new channels now and then
		if f, err = tryFeeder(ctx, s.transport, k.stdin(newNonce())); err == nil || ctx.Err() != nil {
			break
		}
	}
	return f, err
}

func tryFeeder(ctx context.Context, t transport.Transport, fifo string) (*feeder, error) {
	// A hang-up must not keep it from removing the FIFO.
	script := `trap "" HUP; f=` + fifo + `; rm -f $f; mkfifo -m 600 $f && exec 3<>$f 4>$f && echo ` + feederReady + ` && read -r x && rm -f $f && trap - HUP && exec cat >&4 3>&- 4>&- 2>/dev/null; rm -f $f`
	pipe, err := t.Pipe(ctx, `exec /bin/sh -c '`+script+`'`)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { pipe.Close() })
	ready := make([]byte, len(feederReady)+1)
	if _, err := io.ReadFull(pipe.Stdout, ready); err != nil || !stop() {
		pipe.Close()
		return nil, &transport.Error{Code: "internal", Message: fmt.Sprintf("session: stdin: no FIFO for it at %s", fifo), Err: context.Cause(ctx)}
	}
	return &feeder{pipe, fifo}, nil
}

// feed copies r to the command's stdin, until r ends or the command's side is
// closed. The command has its stdin open by now.
func (f *feeder) feed(r io.Reader) {
	defer f.pipe.Stdin.Close()
	if _, err := io.WriteString(f.pipe.Stdin, "go\n"); err != nil {
		return
	}
	_, _ = io.Copy(f.pipe.Stdin, r) // an error means that the command reads no more, as in a pipeline
}

// unopened is the error for a command whose shell could not open its stdin. The
// status is then that of the redirection, and nothing has run.
func (f *feeder) unopened() error {
	return &transport.Error{
		Code:    "internal",
		Message: "session: stdin: the shell could not open " + f.fifo,
		Hint:    "something may empty the directory for temporary files; run the command again",
	}
}

func (f *feeder) close() {
	if f != nil {
		f.pipe.Close()
	}
}
