package local

import (
	"cmp"
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
	if err := transport.CheckTexts(command, options.Term); err != nil {
		return nil, err
	}
	master, slave, err := openPTY(options)
	if isExhausted(err) {
		return nil, exhausted("open a pseudo-terminal", err)
	}
	if err != nil {
		return nil, &transport.Error{
			Code: "session.pty_refused", Message: fmt.Sprintf("local: open a pseudo-terminal: %v", err), Err: err,
			Hint: "a chroot or a container needs /dev/ptmx, and devpts mounted at /dev/pts; if many terminals are open, see kernel.pty.max",
		}
	}
	raw, err := master.SyscallConn() // master.Fd would make it blocking again
	if err != nil {
		master.Close()
		slave.Close()
		return nil, err
	}
	cmd := t.command(command, cmp.Or(options.Term, "dumb"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p, err := t.start(ctx, cmd, terminalGrace)
	slave.Close()
	if err != nil {
		master.Close()
		return nil, err
	}
	return &terminal{program: p, master: master, raw: raw}, nil
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
	raw       syscall.RawConn // master's
	closeOnce sync.Once

	mu   sync.Mutex    // guards what follows
	out  bool          // Read has returned bytes, and was not called again
	back chan struct{} // closed when it is; nil: nobody waits
}

// reopen is how often a terminal that no program holds is looked at.
const reopen = 50 * time.Millisecond

// Read implements [transport.Terminal]. Linux reports EIO on the master when
// the last slave is closed, where other systems report EOF. The program may
// live on ("exec server >log 2>&1 </dev/null"), and may open the terminal
// again: its end is the end of file.
func (t *terminal) Read(b []byte) (int, error) {
	for {
		n, err := t.read(b)
		if !errors.Is(err, syscall.EIO) && err != io.EOF || n > 0 {
			return n, err
		}
		select {
		case <-t.Done():
			// It may have opened the terminal since, for a last word.
			if n, err := t.read(b); n > 0 {
				return n, err
			}
			return 0, io.EOF
		case <-time.After(reopen):
		}
	}
}

// read is the master's Read, in a way that Settle can look at.
func (t *terminal) read(b []byte) (n int, err error) {
	t.mu.Lock()
	t.out = false
	if t.back != nil {
		close(t.back)
		t.back = nil
	}
	t.mu.Unlock()
	failed := t.raw.Read(func(fd uintptr) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		for n, err = unix.Read(int(fd), b); errors.Is(err, unix.EINTR); n, err = unix.Read(int(fd), b) {
		}
		t.out = n > 0
		return !errors.Is(err, unix.EAGAIN)
	})
	switch {
	case failed != nil:
		return 0, t.failure(failed)
	case n == 0 && err == nil:
		err = io.EOF
	}
	return max(n, 0), err
}

// Settle waits until what has been written to the terminal by now was returned
// by Read, and Read called again, but no longer than limit, and reports whether it
// was. A poll looks into the kernel's queues too, where the bytes are before a reader
// may have them (n_tty_poll).
func (t *terminal) Settle(limit time.Duration) bool {
	var timeout <-chan time.Time
	for {
		t.mu.Lock()
		if !t.out && !t.readable() {
			t.mu.Unlock()
			return true
		}
		if t.back == nil {
			t.back = make(chan struct{})
		}
		back := t.back
		t.mu.Unlock()
		if timeout == nil {
			timeout = time.After(limit)
		}
		select {
		case <-back:
		case <-timeout:
			return false
		}
	}
}

func (t *terminal) readable() bool {
	var revents int16
	err := t.raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(fds, 0); n > 0 && err == nil {
			revents = fds[0].Revents
		}
	})
	return err == nil && revents&unix.POLLIN != 0
}

func (t *terminal) Write(b []byte) (int, error) {
	n, err := t.master.Write(b)
	return n, t.failure(err)
}

// failure is an error of the master's, which is its owner's doing once he has closed it.
func (t *terminal) failure(err error) error {
	if err != nil && t.hungUp.Load() {
		return fmt.Errorf("local: %s: %w", t.cmd.Path, transport.ErrClosed)
	}
	return err
}

// Resize implements [transport.Terminal].
func (t *terminal) Resize(size transport.Size) error {
	size = size.OrDefault()
	var failed error
	err := t.raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(size.Cols), Row: uint16(size.Rows)})
	})
	return t.failure(errors.Join(err, failed))
}

// Close implements [transport.Program]. Closing the master makes the kernel
// hang up the terminal's foreground group; end does the same for the shell.
func (t *terminal) Close() error {
	t.hungUp.Store(true)
	t.closeOnce.Do(func() { t.master.Close() })
	t.end()
	return nil
}
