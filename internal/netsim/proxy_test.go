package netsim_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"gateway/internal/netsim"
)

// echo starts a server that sends back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }() // ends with the connection
		}
	}()
	return l.Addr().String()
}

func connect(t *testing.T, p *netsim.Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}

// trip sends the text and reads it back.
func trip(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	back := make([]byte, len(text))
	if _, err := io.ReadFull(c, back); err != nil || string(back) != text {
		t.Fatalf("read %q, %v, want %q", back, err, text)
	}
}

func TestDelay(t *testing.T) {
	const delay = 30 * time.Millisecond
	p := netsim.Start(t, echo(t), delay)
	c := connect(t, p)
	for range 3 {
		start := time.Now()
		trip(t, c, "ping")
		if got := time.Since(start); got < 2*delay {
			t.Errorf("round trip took %v, want at least %v", got, 2*delay)
		}
	}
	if got := p.Conns(); got != 1 {
		t.Errorf("Conns = %d, want 1", got)
	}
}

// A delay that were served chunk after chunk would take a second a write here.
func TestDelayIsPipelined(t *testing.T) {
	const delay, writes = 500 * time.Millisecond, 40
	p := netsim.Start(t, echo(t), delay)
	c := connect(t, p)
	start := time.Now()
	want := make([]byte, 0, writes)
	for i := range writes {
		want = append(want, byte(i))
		if _, err := c.Write(want[i:]); err != nil {
			t.Fatal(err)
		}
		// One byte a chunk: wait until the proxy has most likely read it.
		for spin := time.Now(); time.Since(spin) < time.Millisecond; {
		}
	}
	got := make([]byte, writes)
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("read %v, %v, want %v", got, err, want)
	}
	if took := time.Since(start); took < 2*delay || took > writes*delay/2 {
		t.Errorf("took %v, want about %v", took, 2*delay)
	}
}

func TestBytesAndHalfClose(t *testing.T) {
	p := netsim.Start(t, echo(t), 0)
	c := connect(t, p)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // 2 MiB
	go func() { c.Write(sent); c.(*net.TCPConn).CloseWrite() }()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d bytes came back, %v, want %d", len(got), err, len(sent))
	}
	for _, d := range []netsim.Direction{netsim.Up, netsim.Down} {
		if n := p.Bytes(d); n != int64(len(sent)) {
			t.Errorf("Bytes(%v) = %d, want %d", d, n, len(sent))
		}
	}
}

func TestCut(t *testing.T) {
	p := netsim.Start(t, echo(t), 0)
	c := connect(t, p)
	trip(t, c, "x")
	p.Cut(netsim.FIN)
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read after FIN = %v, want EOF", err)
	}
	c = connect(t, p)
	trip(t, c, "x")
	p.Cut(netsim.RST)
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read after RST = %v, want ECONNRESET", err)
	}
	trip(t, connect(t, p), "a later connection")
}

// A server that closes with bytes unread sends a reset (RFC 1122, 4.2.2.13), and
// what it has said before comes all the same: sshd turns connections away so.
func TestResetDoesNotOvertake(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // ends with the connection
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.Read(make([]byte, 1))
		io.WriteString(c, "full")
	}()
	c := connect(t, netsim.Start(t, l.Addr().String(), 20*time.Millisecond))
	io.WriteString(c, "two")
	got, err := io.ReadAll(c)
	if string(got) != "full" || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read %q, %v, want the word and ECONNRESET", got, err)
	}
}

func TestStallOneDirection(t *testing.T) {
	p := netsim.Start(t, echo(t), 0)
	c := connect(t, p)
	trip(t, c, "x")
	p.Stall(netsim.Down)
	if _, err := io.WriteString(c, "held"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); p.Bytes(netsim.Up) < 5; {
		if time.Now().After(deadline) {
			t.Fatalf("Bytes(Up) = %d, want 5: up is not stalled", p.Bytes(netsim.Up))
		}
	}
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("read %d bytes, %v while stalled", n, err)
	}
	c.SetReadDeadline(time.Now().Add(30 * time.Second))
	p.Resume()
	back := make([]byte, 4)
	if _, err := io.ReadFull(c, back); err != nil || string(back) != "held" {
		t.Errorf("read %q, %v, want %q", back, err, "held")
	}
}

func TestTruncate(t *testing.T) {
	p := netsim.Start(t, echo(t), 0)
	p.Truncate(netsim.Down, 5, netsim.FIN)
	c := connect(t, p)
	if _, err := io.WriteString(c, "0123456789"); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if string(got) != "01234" || err != nil {
		t.Errorf("read %q, %v, want %q and EOF", got, err, "01234")
	}
	if n := p.Bytes(netsim.Down); n != 5 {
		t.Errorf("Bytes(Down) = %d, want 5", n)
	}
}

// A link that hangs swallows everything, the end of file included, until it is
// cut; later connections are served.
func TestHang(t *testing.T) {
	p := netsim.Start(t, echo(t), 0)
	c := connect(t, p)
	trip(t, c, "x")
	p.Truncate(netsim.Up, 2, netsim.Hang)
	io.WriteString(c, "0123")
	back := make([]byte, 4)
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := io.ReadFull(c, back); n > 2 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %q, %v, want at most two bytes and silence", back[:n], err)
	}
	c.(*net.TCPConn).CloseWrite()
	if n, err := c.Read(back); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %q, %v, want silence", back[:n], err)
	}
	p.Truncate(netsim.Up, -1, netsim.Hang)
	trip(t, connect(t, p), "a later connection")
	c.SetReadDeadline(time.Now().Add(30 * time.Second))
	p.Cut(netsim.RST)
	if _, err := c.Read(back); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read after RST = %v, want ECONNRESET", err)
	}
}

// Close with a stalled connection, a FIN cut and unread bytes must not hang.
func TestCloseEndsEverything(t *testing.T) {
	p := netsim.Start(t, echo(t), time.Hour)
	for range 3 {
		c := connect(t, p)
		io.WriteString(c, "never comes back")
	}
	p.Stall()
	p.Cut(netsim.FIN)
	p.Close()
	if _, err := net.Dial("tcp", p.Addr()); err == nil {
		t.Error("a connection was accepted after Close")
	}
}
