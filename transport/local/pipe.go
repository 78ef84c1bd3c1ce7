package local

import (
	"context"
	"os"
	"syscall"

	"gateway/transport"
)

// Pipe implements [transport.Transport].
func (t *Transport) Pipe(ctx context.Context, command string) (*transport.Pipe, error) {
	if err := transport.CheckTexts(command); err != nil {
		return nil, err
	}
	var far, near [3]*os.File
	closeAll := func(files []*os.File) {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}
	// The pipes are our own: those of os/exec are closed by its Wait, which
	// would cut off output that is not read yet.
	for i := range far {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(append(far[:], near[:]...))
			return nil, exhausted("open a pipe", err)
		}
		if far[i], near[i] = w, r; i == 0 {
			far[i], near[i] = r, w
		}
	}
	cmd := t.command(command, "")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = far[0], far[1], far[2]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p, err := t.start(ctx, cmd, pipeGrace)
	closeAll(far[:])
	if err != nil {
		closeAll(near[:])
		return nil, err
	}
	return &transport.Pipe{
		Stdin: near[0], Stdout: near[1], Stderr: near[2],
		Program: &pipeProgram{program: p, near: near[:]},
	}, nil
}

// pipeProgram closes the near ends of the pipes along with the program.
type pipeProgram struct {
	*program
	near []*os.File
}

// Close implements [transport.Program].
func (p *pipeProgram) Close() error {
	for _, f := range p.near {
		f.Close() // a second close, or one after the owner's own, is no failure
	}
	p.end()
	return nil
}
