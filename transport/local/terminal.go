package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"gateway/transport"
)

// Terminal implements [transport.Transport].
func (t *Transport) Terminal(ctx context.Context, command string, options transport.TerminalOptions) (transport.Terminal, error) {
	master, slave, err := openPTY(options)
	if err != nil {
		return nil, &transport.Error{Code: "session.pty_refused", Message: fmt.Sprintf("local: open a pseudo-terminal: %v", err), Err: err}
	}
	term := options.Term
	if term == "" {
		term = "dumb"
	}
	cmd := t.command(command, term)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p, err := t.start(ctx, cmd)
	slave.Close()
	if err != nil {
		master.Close()
		return nil, err
	}
	return &terminal{program: p, master: master}, nil
}

// openPTY returns a new pseudo-terminal whose modes are set before any program
// can look at them.
func openPTY(options transport.TerminalOptions) (master, slave *os.File, err error) {
	blocking, slave, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer blocking.Close()
	size := options.Size.OrDefault()
	err = errors.Join(
		pty.Setsize(slave, &pty.Winsize{Cols: uint16(size.Cols), Rows: uint16(size.Rows)}),
		setModes(int(slave.Fd()), options.Interactive),
	)
	if err == nil {
		master, err = nonblocking(blocking)
	}
	if err != nil {
		slave.Close()
		return nil, nil, err
	}
	return master, slave, nil
}

// nonblocking returns a duplicate of f that the runtime can poll. creack/pty
// takes the descriptor with f.Fd(), which leaves the master in blocking mode:
// a pending Read then outlives Close and the shell is never hung up
// (creack/pty#174).
func nonblocking(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// setModes sets the modes of the terminal behind fd: those that a person
// expects, or no echo and no output translation.
func setModes(fd int, interactive bool) error {
	modes, err := unix.IoctlGetTermios(fd, ioctlGetTermios)
	if err != nil {
		return err
	}
	modes.Iflag |= unix.ICRNL | unix.IXON
	modes.Iflag &^= unix.INLCR | unix.IGNCR | unix.ISTRIP
	modes.Lflag |= unix.ICANON | unix.ISIG | unix.IEXTEN
	if interactive {
		modes.Oflag |= unix.OPOST | unix.ONLCR
		modes.Lflag |= unix.ECHO | unix.ECHOE | unix.ECHOK
	} else {
		modes.Oflag &^= unix.OPOST | unix.ONLCR
		modes.Lflag &^= unix.ECHO | unix.ECHOE | unix.ECHOK | unix.ECHONL
		// A stopped job would look like a finished command.
		modes.Cc[unix.VSUSP] = vdisable
	}
	return unix.IoctlSetTermios(fd, ioctlSetTermios, modes)
}

// terminal implements [transport.Terminal].
type terminal struct {
	*program
	master    *os.File
	closeOnce sync.Once
}

// reopen is how often a terminal that no program holds is looked at.
const reopen = 50 * time.Millisecond

// Read implements [transport.Terminal]. Linux reports EIO on the master when
// the last slave is closed, where other systems report EOF. The program may
// live on ("exec server >log 2>&1 </dev/null"), and may open the terminal
// again: its end is the end of file.
func (t *terminal) Read(b []byte) (int, error) {
	for {
		n, err := t.master.Read(b)
		if !errors.Is(err, syscall.EIO) && err != io.EOF || n > 0 {
			return n, err
		}
		select {
		case <-t.ended:
			return 0, io.EOF
		case <-time.After(reopen):
		}
	}
}

func (t *terminal) Write(b []byte) (int, error) { return t.master.Write(b) }

// Resize implements [transport.Terminal].
func (t *terminal) Resize(size transport.Size) error {
	size = size.OrDefault()
	raw, err := t.master.SyscallConn() // master.Fd would make it blocking again
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(size.Cols), Row: uint16(size.Rows)})
	})
	return errors.Join(err, failed)
}

// Close implements [transport.Program]. Closing the master makes the kernel
// hang up the terminal's foreground group; end does the same for the shell.
func (t *terminal) Close() error {
	t.closeOnce.Do(func() { t.master.Close() })
	t.end()
	return nil
}
