package peer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strconv"

	"github.com/creack/pty"
	gossh "golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"gateway/bench/lab"
)

// FloorName and LocalFloorName are what the others are compared with.
const (
	FloorName      = "bare live shell, SSH pty (F)"
	LocalFloorName = "bare live shell, local pty (L)"
	ProcessName    = "sh -c"
)

var floors = []Peer{
	{
		Name: FloorName, Floor: true,
		How:     "x/crypto/ssh, one live dash on a terminal; a command and a `printf` are typed, the mark is awaited. No status, no streams, no recovery",
		Version: module("golang.org/x/crypto"),
		Warm:    warmBare(func(c *gossh.Client) (Shell, error) { return live(c) }),
		Again:   againBare(false, func(c *gossh.Client) (Shell, error) { return live(c) }),
		Many: func(_ context.Context, s *lab.Site, n int) ([]Shell, error) {
			const each = 8 // of sshd's ten, as gateway leaves two
			shells := make([]Shell, n)
			clients, err := dialAll(s, (n+each-1)/each)
			if err != nil {
				return nil, err
			}
			_, err = everywhere(n, 8, func(i int) (string, error) {
				shell, err := live(clients[i/each])
				if err != nil {
					return "", err
				}
				shells[i] = shell
				if i%each == 0 {
					shells[i] = owner{shell, clients[i/each]}
				}
				return "open", nil
			})
			return shells, err
		},
	},
	{
		Name: LocalFloorName, Floor: true,
		How:     "the same on a terminal of this machine",
		Version: module("github.com/creack/pty"),
		Local:   func(context.Context, *lab.Site) (Shell, error) { return localLoop() },
	},
	{
		Name: ProcessName, How: "a process for each command, on this machine",
		Version: func(*lab.Lab) string { return lab.Shell },
		Local: func(_ context.Context, s *lab.Site) (Shell, error) {
			return each{command: func(text string) *exec.Cmd { return process(s, text) }}, nil
		},
		Begin: begun(process),
	},
}

func process(s *lab.Site, text string) *exec.Cmd { return s.Command(lab.Shell, "-c", text) }

// A loop is a live shell that is typed to.
type loop struct {
	in     io.Writer
	out    io.Reader
	close  func() error
	buffer []byte
	n      int
}

// quiet is what starts a shell without prompts.
const quiet = "unset ENV; PS1= PS2= exec " + lab.Shell + " -i"

// Run types the command with a mark behind it. The mark's text is not what is
// typed, so that an echo would be no end.
func (l *loop) Run(_ context.Context, command string) (string, error) {
	l.n++
	number := strconv.Itoa(l.n)
	if _, err := io.WriteString(l.in, command+"; printf 'MARK%s;' "+number+"\n"); err != nil {
		return "", err
	}
	return until(l.out, l.buffer, "MARK"+number+";")
}

// until reads to a mark and returns what stands before it.
func until(r io.Reader, buffer []byte, mark string) (string, error) {
	for have := 0; ; {
		n, err := r.Read(buffer[have:])
		have += n
		if end := bytes.Index(buffer[:have], []byte(mark)); end >= 0 {
			return string(buffer[:end]), nil
		}
		if err != nil || have == len(buffer) {
			return "", fmt.Errorf("no mark: %w after %.100q", err, buffer[:have])
		}
	}
}

func (l *loop) Close() { _ = l.close() } // nothing is left to do about it

// begin waits for the shell.
func (l *loop) begin() (*loop, error) {
	l.buffer = make([]byte, 1<<16)
	if _, err := l.Run(context.Background(), "PS1=; PS2="); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// live starts a shell on a terminal of a connection.
func live(client *gossh.Client) (*loop, error) {
	s, err := client.NewSession()
	if err != nil {
		return nil, err
	}
	l := &loop{close: s.Close}
	if l.in, err = s.StdinPipe(); err == nil {
		l.out, err = s.StdoutPipe()
	}
	if err == nil {
		err = s.RequestPty("dumb", 24, 80, gossh.TerminalModes{gossh.ECHO: 0, gossh.ONLCR: 0})
	}
	if err == nil {
		err = s.Start(quiet)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return l.begin()
}

// localLoop is live without SSH.
func localLoop() (*loop, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	modes, err := unix.IoctlGetTermios(int(slave.Fd()), getModes)
	if err == nil {
		modes.Lflag &^= unix.ECHO
		modes.Oflag &^= unix.ONLCR
		err = unix.IoctlSetTermios(int(slave.Fd()), setModes, modes)
	}
	if err != nil {
		master.Close()
		return nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", quiet)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = onTerminal()
	if err := cmd.Start(); err != nil {
		master.Close()
		return nil, err
	}
	return (&loop{in: master, out: master, close: func() error {
		kill(cmd)
		_ = cmd.Wait() // it was killed
		return master.Close()
	}}).begin()
}
