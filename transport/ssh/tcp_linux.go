package ssh

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// quickAck returns a function that makes the kernel acknowledge what conn
// received at once, or nil if conn is no TCP socket.
func quickAck(conn byteStream) func() {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	set := func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) // costs 40 ms at worst
	}
	return func() { _ = raw.Control(set) }
}

// maxUnsent is how much the kernel takes of what it can't send yet.
const maxUnsent = 64 << 10

// shallow keeps what is written to conn from piling up in the kernel, which would take
// seconds of it on a slow link (TCP_NOTSENT_LOWAT, tcp(7)): what comes next, such as an
// interrupt, waits behind that, whatever channel it is for.
func shallow(conn byteStream) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent) // costs time at worst
		})
	}
}

// roundTrip is the least that the kernel has measured on conn; 0 if it can't be known.
func roundTrip(conn byteStream) (least time.Duration) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { // an error means that conn is closed
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			least = time.Duration(info.Min_rtt) * time.Microsecond
		}
	})
	return least
}
