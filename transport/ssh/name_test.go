package ssh_test

import (
	"context"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gateway/internal/sshdtest"
)

// nameServer has the names of this process asked of a server that knows the same
// IPv4 addresses for each of them. A nil answer is its silence.
func nameServer(t *testing.T, answer func(query []byte) []byte) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // ends with the server
		defer close(done)
		query := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			if reply := answer(query[:n]); reply != nil {
				_, _ = server.WriteTo(reply, from)
			}
		}
	}()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		server.Close()
		<-done
	})
}

// dnsAnswer is the reply to a query: a status, and addresses for those who ask
// for IPv4 (RFC 1035 section 4).
func dnsAnswer(query []byte, status byte, addresses ...string) []byte {
	const header, typeA = 12, 1
	end := header
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	kind := binary.BigEndian.Uint16(query[end+1:])
	end += 5
	if kind != typeA {
		addresses = nil
	}
	reply := append([]byte{query[0], query[1], 0x81, 0x80 | status, 0, 1, 0, byte(len(addresses)), 0, 0, 0, 0}, query[header:end]...)
	for _, address := range addresses {
		reply = append(reply, 0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 60, 0, 4)
		reply = append(reply, net.ParseIP(address).To4()...)
	}
	return reply
}

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
	if err := unix.Bind(l, addr); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(l, 0); err != nil {
		t.Fatal(err)
	}
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
