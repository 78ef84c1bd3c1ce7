package peer

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	gossh "golang.org/x/crypto/ssh"

	"gateway/bench/lab"
)

// apart are what a result costs at the least that has a status and two streams apart:
// the floors know neither.
var apart = []Peer{
	{
		Name: "bare live shell, status and streams apart (S)", Floor: true,
		How:     "F with a second channel, whose program does nothing: the command writes to its stdout and stderr by name, and a mark with the status behind it. No recovery",
		Version: module("golang.org/x/crypto"),
		Warm:    warmBare(func(c *gossh.Client) (Shell, error) { return liveApart(c) }),
	},
	{
		Name: "bare live shell, local, status and streams apart (T)", Floor: true,
		How:     "L with two pipes, which the command opens by name",
		Version: module("github.com/creack/pty"),
		Local:   func(context.Context, *lab.Site) (Shell, error) { return localApart() },
	},
}

// A twoStreams is a live shell whose commands write to streams of their own.
type twoStreams struct {
	*loop
	stdout, stderr string // by name
	out, errs      io.Reader
	outBuffer      []byte
	errBuffer      []byte
}

// Run types the command with a mark behind each stream.
func (s *twoStreams) Run(_ context.Context, command string) (string, error) {
	s.n++
	number := strconv.Itoa(s.n)
	line := "{ " + command + "; printf 'MARK%s:%s;' " + number + " $?; printf 'MARK%s;' " + number + " >&2; } >|" + s.stdout + " 2>|" + s.stderr + "\n"
	if _, err := io.WriteString(s.in, line); err != nil {
		return "", err
	}
	out, err := until(s.out, s.outBuffer, "MARK"+number+":0;")
	if err == nil { // one after the other: this is a floor
		_, err = until(s.errs, s.errBuffer, "MARK"+number+";")
	}
	return out, err
}

func newTwoStreams(l *loop, dir string, out, errs int, stdout, stderr io.Reader) *twoStreams {
	return &twoStreams{
		loop: l, stdout: fmt.Sprintf("%s/%d", dir, out), stderr: fmt.Sprintf("%s/%d", dir, errs),
		out: stdout, errs: stderr,
		outBuffer: make([]byte, 1<<16), errBuffer: make([]byte, 1<<16),
	}
}

// liveApart is live with a channel for the streams.
func liveApart(client *gossh.Client) (*twoStreams, error) {
	holder, err := client.NewSession()
	if err != nil {
		return nil, err
	}
	// Its own stdin keeps the program; it ends with the channel.
	if _, err = holder.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := holder.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := holder.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := holder.Start("echo /proc/$$/fd; read x"); err != nil {
		return nil, err
	}
	dir, err := until(stdout, make([]byte, 100), "\n")
	if err != nil {
		return nil, err
	}
	l, err := live(client)
	if err != nil {
		return nil, err
	}
	return newTwoStreams(l, strings.TrimSpace(dir), 1, 2, stdout, stderr), nil
}

// localApart is localLoop with pipes for the streams.
func localApart() (*twoStreams, error) {
	var ends [4]*os.File
	var err error
	for i := 0; i < len(ends) && err == nil; i += 2 {
		ends[i], ends[i+1], err = os.Pipe()
	}
	if err != nil {
		return nil, err
	}
	l, err := localLoop()
	if err != nil {
		return nil, err
	}
	end := l.close
	l.close = func() error {
		for _, f := range ends {
			f.Close()
		}
		return end()
	}
	return newTwoStreams(l, fmt.Sprintf("/proc/%d/fd", os.Getpid()), int(ends[1].Fd()), int(ends[3].Fd()), ends[0], ends[2]), nil
}
