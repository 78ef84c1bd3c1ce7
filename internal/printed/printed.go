// Package printed runs a program for what it prints.
package printed

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
)

// most is how many bytes are kept of each stream, which is more than any caller can use.
const most = 4 << 20

// ErrMuch is the error of a program that prints more than that, and may never stop.
var ErrMuch = errors.New("it prints more than 4 MiB")

// By runs a command, whose Stdout and Stderr it sets, and returns what that has printed
// when it ends, also with an error.
//
// What the command has started may hold on to its output. os/exec waits for that, or
// fails with [exec.ErrWaitDelay]; and on a machine that is busy with a hundred such
// commands any of them fails, for the start of another one holds a copy of the pipe.
// Here a mark in the pipe says where the command ended.
func By(cmd *exec.Cmd) (stdout, stderr []byte, err error) {
	out, err := newPipe()
	if err != nil {
		return nil, nil, err
	}
	errs, err := newPipe()
	if err != nil {
		out.end()
		return nil, nil, err
	}
	cmd.Stdout, cmd.Stderr = out.to, errs.to
	err = cmd.Run()
	stdout, stderr = out.end(), errs.end()
	if max(len(stdout), len(stderr)) > most {
		err = ErrMuch
	}
	return stdout, stderr, err
}

// A pipe is read up to its mark.
type pipe struct {
	to   *os.File
	mark []byte
	read chan []byte
}

func newPipe() (*pipe, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &pipe{to, []byte(rand.Text()), make(chan []byte, 1)}
	go func() { // ends with the mark, or with too much, of which the program learns
		defer from.Close()
		p.read <- p.upToMark(from)
	}()
	return p, nil
}

// end returns what has been written so far.
func (p *pipe) end() []byte {
	_, _ = p.to.Write(p.mark) // who reads it ends no earlier
	p.to.Close()
	return <-p.read
}

func (p *pipe) upToMark(from io.Reader) []byte {
	var all []byte
	chunk := make([]byte, 4<<10)
	for {
		n, err := from.Read(chunk)
		all = append(all, chunk[:n]...)
		begin := max(0, len(all)-n-len(p.mark)) // it may come in two chunks
		if i := bytes.Index(all[begin:], p.mark); i >= 0 {
			return all[:begin+i]
		}
		if err != nil || len(all) > most {
			return all
		}
	}
}
