// Package fdpass hands open files to another process over a unix socket, as
// unix(7) describes under SCM_RIGHTS.
package fdpass

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// most is how many files go in one message.
const most = 8

// Send hands files over with one byte, their number. They stay the caller's to
// close.
func Send(conn *net.UnixConn, files ...*os.File) error {
	if len(files) == 0 || len(files) > most {
		return fmt.Errorf("fdpass: send %d descriptors: 1 to %d are possible", len(files), most)
	}
	return withDescriptors(files, nil, func(fds []int) error {
		_, _, err := conn.WriteMsgUnix([]byte{byte(len(fds))}, unix.UnixRights(fds...), nil)
		if err != nil {
			return fmt.Errorf("fdpass: send %d descriptors: %w", len(fds), err)
		}
		return nil
	})
}

// withDescriptors calls f while none of the files can be closed. File.Fd would
// make them blocking for everybody who holds them.
func withDescriptors(files []*os.File, fds []int, f func([]int) error) error {
	if len(files) == 0 {
		return f(fds)
	}
	raw, err := files[0].SyscallConn()
	if err != nil {
		return fmt.Errorf("fdpass: %w", err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = withDescriptors(files[1:], append(fds, int(fd)), f) })
	if err != nil {
		return fmt.Errorf("fdpass: %w", err)
	}
	return failed
}

// Receive takes what one Send handed over: the files belong to the caller, are
// closed on exec and do not block. It reads one byte and no more. A message
// that does not bring as many files as it says is an error, and leaves none
// open. io.EOF means that the other end is closed.
func Receive(conn *net.UnixConn) ([]*os.File, error) {
	count := make([]byte, 1)
	control := make([]byte, unix.CmsgSpace(most*4))
	n, controls, flags, _, err := conn.ReadMsgUnix(count, control) // it sets close-on-exec
	fds, malformed := descriptors(control[:controls])
	switch {
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case err != nil:
	case malformed != nil:
		err = malformed
	case flags&unix.MSG_CTRUNC != 0:
		err = errors.New("the kernel kept some: more than agreed, or no room for another descriptor")
	case n != 1 || len(fds) != int(count[0]) || len(fds) == 0:
		err = fmt.Errorf("%d came, %d were announced", len(fds), count[0])
	}
	files := make([]*os.File, 0, len(fds))
	for _, fd := range fds {
		if err == nil {
			err = unix.SetNonblock(fd, true)
		}
		files = append(files, os.NewFile(uintptr(fd), "passed"))
	}
	if err != nil {
		for _, f := range files {
			f.Close()
		}
		return nil, fmt.Errorf("fdpass: receive descriptors: %w", err)
	}
	return files, nil
}

// descriptors returns all that came, also beside an error.
func descriptors(control []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, err
	}
	var all []int
	for _, m := range messages {
		if m.Header.Level != unix.SOL_SOCKET || m.Header.Type != syscall.SCM_RIGHTS {
			continue
		}
		fds, wrong := unix.ParseUnixRights(&m)
		all = append(all, fds...)
		err = errors.Join(err, wrong)
	}
	return all, err
}
