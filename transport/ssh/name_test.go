package ssh_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"time"

	"gateway/transport/ssh"
)

// nameServer has the names of this process asked of a server of the test's, until
// it ends. A nil answer is its silence.
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
	// A lookup goes on behind whoever gave it up, until it has lost its sockets.
	over, end := context.WithCancel(context.Background())
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		if over.Err() != nil {
			return nil, over.Err()
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
		if err == nil {
			context.AfterFunc(over, func() { conn.Close() })
		}
		return conn, err
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		end()
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

// TestNoNameServer tells a name that does not exist from one that nobody knows of.
func TestNoNameServer(t *testing.T) {
	c := ssh.Config{
		Name: "web1", Addr: "web1.example", Port: 22, User: "u", ConnectTimeout: 300 * time.Millisecond,
		HostKeys: &ssh.HostKeys{Name: "web1", Write: "none"},
	}
	const misbehaving, noSuchName, refusing = 2, 3, 5 // RFC 1035 section 4.1.1
	nameServer(t, func(query []byte) []byte { return dnsAnswer(query, noSuchName) })
	refused(t, c, "dns.not_found", "web1.example")
	nameServer(t, func(query []byte) []byte { return dnsAnswer(query, refusing) })
	refused(t, c, "dns.failed", "name server", "web1.example")
	nameServer(t, func(query []byte) []byte { return dnsAnswer(query, misbehaving) })
	refused(t, c, "dns.failed", "name server", "web1.example")
	nameServer(t, func([]byte) []byte { return nil })
	if err := refused(t, c, "dns.failed", "name server", "web1.example", "no answer within 300ms"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v is no %v", err, context.DeadlineExceeded)
	}
}
