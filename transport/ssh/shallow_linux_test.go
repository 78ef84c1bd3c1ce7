package ssh

import (
	"errors"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestKernelTakesLittle: where the link takes nothing more, neither does the kernel for long.
func TestKernelTakesLittle(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // nobody accepts, nor reads
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer newWire(conn).Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		for failed == nil {
			var n int
			n, failed = unix.Write(int(fd), make([]byte, 32<<10))
			taken += max(0, n)
		}
		return true
	})
	if err != nil || !errors.Is(failed, unix.EAGAIN) {
		t.Fatal(err, failed)
	}
	if most := 512 << 10; taken > most {
		t.Errorf("%d bytes were taken, want %d at most", taken, most)
	}
}
