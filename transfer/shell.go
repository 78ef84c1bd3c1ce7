package transfer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gateway/transport"
)

// A starter starts a program on a machine.
type starter func(ctx context.Context, command string) (*transport.Pipe, error)

// A shell is a plain sh that reads what it is to do from its stdin. One
// goroutine at a time uses it.
type shell struct {
	pipe *transport.Pipe
	out  *bufio.Reader
	mark string // the end of an answer; nobody can guess it
}

// errNoShell: the account runs no programs of ours.
var errNoShell = errors.New("no shell answers")

// maxNoise is how much the login shell may say before ours begins.
const maxNoise = 1 << 20

// aShell says that it is one before anything is typed to it: what is none, as a menu, would
// take that for a choice. Every login shell knows exec, whatever else it is.
const aShell = "exec sh -c 'LC_ALL=C; export LC_ALL; unset CDPATH; echo; echo " + ready + "; exec sh'"

// openShell starts a shell and waits for its first word, but not for longer than patience.
func openShell(ctx context.Context, start starter, patience time.Duration) (*shell, error) {
	pipe, err := start(ctx, aShell)
	if err != nil {
		return nil, err
	}
	go drain(pipe.Stderr) // ends with the pipe
	s := &shell{pipe: pipe, out: bufio.NewReaderSize(pipe.Stdout, 64<<10), mark: rand.Text()}
	first, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer context.AfterFunc(first, func() { pipe.Close() })()
	err = skipPast(s.out, "\n"+ready+"\n")
	if first.Err() != nil { // which has closed the pipe, or is about to
		err = fmt.Errorf("it has said nothing for %v", patience)
	}
	if err = ended(ctx, err); err != nil {
		s.close()
		if errors.Is(err, transport.ErrLost) || ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", errNoShell, err)
	}
	return s, nil
}

// drain reads what nobody wants, so that who writes it does not block.
func drain(r io.Reader) { _, _ = io.Copy(io.Discard, r) }

// send has the shell read a script. Its answer ends with a line that has the
// mark and the status of its last command. The shell's own stdin it has as 3.
func (s *shell) send(script string) error {
	_, err := io.WriteString(s.pipe.Stdin, "{\n"+script+"\n} 3<&0 </dev/null; printf '\\n%s %d\\n' "+s.mark+" $?\n")
	return err
}

// collect sends a script and returns what it wrote, up to a limit.
func (s *shell) collect(ctx context.Context, script string, limit int) (answer, error) {
	defer context.AfterFunc(ctx, func() { s.pipe.Close() })()
	if err := s.send(script); err != nil {
		return answer{}, ended(ctx, err)
	}
	var out bytes.Buffer
	for {
		line, err := s.out.ReadSlice('\n')
		if status, ok := s.isEnd(line); ok {
			return answer{bytes.TrimSuffix(out.Bytes(), []byte("\n")), status}, nil
		}
		out.Write(line)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return answer{}, ended(ctx, err)
		}
		if out.Len() > limit {
			return answer{}, errors.New("the shell says too much")
		}
	}
}

// An answer is what a script wrote, and the status of its last command.
type answer struct {
	out    []byte
	status int
}

func (s *shell) isEnd(line []byte) (status int, ok bool) {
	rest, ok := strings.CutPrefix(string(line), s.mark+" ")
	if !ok {
		return 0, false
	}
	status, err := strconv.Atoi(strings.TrimSuffix(rest, "\n"))
	return status, err == nil
}

var errEnded = errors.New("the shell has ended")

// ended is the error of a shell whose pipe is gone.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return transport.Cause(ctx)
	}
	if err == io.EOF || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE) {
		return errEnded
	}
	return err
}

func (s *shell) close() { s.pipe.Close() }

// over reports whether the shell has ended: a server may end one that nobody has used for a
// while, as sshd does with a ChannelTimeout.
func (s *shell) over() bool {
	select {
	case <-s.pipe.Done():
		return true
	default:
		return false
	}
}

// quote makes a word of the shell of any bytes but NUL.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// operand returns a path that no program takes for an option.
func operand(path string) string {
	if path == "" {
		return "."
	}
	if strings.HasPrefix(path, "/") || strings.HasPrefix(path, "./") {
		return path
	}
	return "./" + path
}
