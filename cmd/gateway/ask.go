package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gateway/gateway"
)

// ttyPath is the controlling terminal, whatever the streams are.
const ttyPath = "/dev/tty"

// asker is what puts questions to a person; nil where nobody is.
type asker func(context.Context, gateway.Question) (string, error)

// asker returns nil if nobody can be asked.
func (a *app) asker() asker {
	if a.config.CI || !a.console.attended() {
		return nil
	}
	return a.console.ask
}

// attended reports whether a person can be asked: there is a terminal, it is
// not another job's, which would stop whoever reads from it, and not all three
// streams are somewhere else, which is a program's doing.
func (c *console) attended() bool {
	f, err := os.OpenFile(ttyPath, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	job, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && job == unix.Getpgrp() &&
		(isTerminal(os.Stdin) || isTerminal(os.Stdout) || isTerminal(os.Stderr))
}

// errNoAnswer: the person typed an end of file.
var errNoAnswer = errors.New("no answer")

// ask puts a question to the person at the terminal.
func (c *console) ask(ctx context.Context, q gateway.Question) (string, error) {
	c.asking.Lock()
	defer c.asking.Unlock()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	f, err := os.OpenFile(ttyPath, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return readLine(ctx, f, wording(q), q)
}

// wording is a question as it is shown. One of a machine's own begins with who asks,
// as it does with ssh: else a bastion could ask for the password of what lies behind
// it, or for the passphrase of a key, in gateway's words.
func wording(q gateway.Question) string {
	said, asked, from := strings.TrimSpace(visible(q.Instruction)), visible(q.Prompt), ""
	if q.Kind == gateway.AskChallenge {
		said, asked, from = indent(said), indent(asked), "("+q.User+"@"+q.Host+") "
	}
	if said != "" {
		said = from + said + "\n"
	}
	return said + from + asked
}

// readLine shows a prompt and reads one line from a terminal. The context's end
// ends it at once, and puts the terminal right in any case.
func readLine(ctx context.Context, f *os.File, prompt string, q gateway.Question) (string, error) {
	echo := q.Echo
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	// What was typed before a question was asked is no answer to it, but what a
	// command asks may be typed ahead, as in any shell.
	afresh := q.Kind != gateway.AskCommand
	restore, err := lineMode(f, echo, afresh)
	if err != nil {
		return "", err
	}
	defer restore()
	// Behind the modes: whoever answers at the sight of it is heard.
	if _, err := io.WriteString(f, prompt); err != nil {
		return "", err
	}
	type reading struct {
		line []byte
		err  error
	}
	read := make(chan reading, 1)
	go func() { // ends with the line, with the file, or with the deadline below
		line := make([]byte, 4096) // the longest that the kernel gives
		n, err := f.Read(line)
		read <- reading{line[:n], err}
	}()
	for {
		select {
		case r := <-read:
			line, whole := bytes.CutSuffix(r.line, []byte("\n"))
			answered := r.err == nil && whole
			if !echo || !answered && afresh { // what a command shows ends with what comes next
				_, _ = io.WriteString(f, "\n") // the person's own was not shown, or is not there
			}
			if !answered {
				return "", errNoAnswer
			}
			return string(line), nil
		case <-continued:
			// While this process was stopped (^Z), a shell had the terminal, with
			// modes of its own: the answer would be shown.
			if _, err := lineMode(f, echo, afresh); err != nil {
				return "", err
			}
			if _, err := io.WriteString(f, cmp.Or(prompt, "an answer is awaited: ")); err != nil {
				return "", err
			}
		case <-ctx.Done():
			// Where the system cannot wait for a terminal along with other things,
			// the read stays until the process ends.
			_ = f.SetReadDeadline(time.Now())
			_, _ = io.WriteString(f, "\n")
			return "", context.Cause(ctx)
		}
	}
}

// lineMode makes the terminal collect a line, with or without showing it. With
// afresh it drops what is typed already, as readpassphrase of OpenSSH does.
func lineMode(f *os.File, echo, afresh bool) (restore func(), err error) {
	// File.Fd would make the descriptor blocking, and the read unstoppable.
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var before *unix.Termios
	set := func(request uint, change func(*unix.Termios)) {
		controlErr := raw.Control(func(fd uintptr) {
			if before, err = unix.IoctlGetTermios(int(fd), ioctlGetTermios); err != nil {
				return
			}
			modes := *before
			change(&modes)
			err = unix.IoctlSetTermios(int(fd), request, &modes)
		})
		err = errors.Join(err, controlErr)
	}
	request := uint(ioctlSetTermios)
	if afresh {
		request = ioctlSetTermiosFlush
	}
	set(request, func(modes *unix.Termios) {
		modes.Lflag |= unix.ICANON | unix.ISIG
		modes.Iflag |= unix.ICRNL
		modes.Lflag &^= unix.ECHO
		if echo {
			modes.Lflag |= unix.ECHO
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ttyPath, err)
	}
	original := *before
	return func() { set(ioctlSetTermios, func(modes *unix.Termios) { *modes = original }) }, nil
}
