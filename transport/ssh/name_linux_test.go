package ssh_test

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gateway/internal/sshdtest"
)

// deadAddress takes a port of an address of this machine and lets nobody in: the
// queue of those who wait there is full, and the kernel drops what comes.
func deadAddress(t *testing.T, address string, port int) {
	t.Helper()
	addr := &unix.SockaddrInet4{Port: port, Addr: [4]byte(net.ParseIP(address).To4())}
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(l) })
	must(t, unix.Bind(l, addr))
	must(t, unix.Listen(l, 0))
	for range 4 {
		c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(c) })
		if err := unix.Connect(c, addr); err != nil && err != unix.EINPROGRESS {
			t.Fatal(err)
		}
	}
}

// TestFirstAddressIsDead has the others of a name tried within the time.
func TestFirstAddressIsDead(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	deadAddress(t, "127.0.0.2", s.Port)
	nameServer(t, func(query []byte) []byte { return dnsAnswer(query, 0, "127.0.0.2", s.Host) })
	c := config(s)
	c.Addr, c.ConnectTimeout = "two.example", 4*time.Second
	if got := output(t, dial(t, c), "echo in"); got != "in\n" {
		t.Errorf("output = %q", got)
	}
}
