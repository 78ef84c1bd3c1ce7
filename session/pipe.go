package session

import (
	"context"
	"io"
	"sync"

	"gateway/transport"
)

// openShell starts the shell's command line: on a terminal, or without one.
func (s *Session) openShell(ctx context.Context, command string) (transport.Terminal, error) {
	if !s.config.NoTerminal {
		return s.transport.Terminal(s.together(ctx), command, transport.TerminalOptions{Size: s.config.Size, Term: s.config.Term})
	}
	pipe, err := s.transport.Pipe(s.together(ctx), command)
	if err != nil {
		return nil, err
	}
	return newPlain(pipe), nil
}

// plain is three pipes in the place of a terminal: both outputs are read as one.
type plain struct {
	*transport.Pipe
	out *io.PipeReader
}

func newPlain(pipe *transport.Pipe) *plain {
	out, in := io.Pipe()
	var both sync.WaitGroup
	for _, from := range []io.Reader{pipe.Stdout, pipe.Stderr} {
		both.Go(func() { _, _ = io.Copy(in, from) }) // ends with the stream, or with Close
	}
	go func() { // ends with the program
		both.Wait()
		<-pipe.Done() // it may live on without them
		in.Close()
	}()
	return &plain{pipe, out}
}

func (p *plain) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p *plain) Write(b []byte) (int, error) { return p.Stdin.Write(b) }

// Resize implements [transport.Terminal].
func (p *plain) Resize(transport.Size) error { return nil }

// Close implements [transport.Program].
func (p *plain) Close() error {
	err := p.Pipe.Close()
	p.out.Close() // frees the copies
	return err
}
