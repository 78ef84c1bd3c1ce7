package transfer

import (
	"io"
	"net"
	"testing"
	"time"

	"gateway/transport"
)

// TestCloseWhileSending: a server that takes nothing more does not keep a link
// from being closed.
func TestCloseWhileSending(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	sending := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(far, make([]byte, 9)) // SSH_FXP_INIT
		if err == nil {
			_, err = far.Write([]byte{0, 0, 0, 5, 2, 0, 0, 0, 3}) // SSH_FXP_VERSION
		}
		if err == nil {
			_, err = far.Read(make([]byte, 1)) // the rest of the request waits
		}
		sending <- err
	}()
	l, err := newLink(t.Context(), &transport.Pipe{Stdin: near, Stdout: near, Program: program{near}})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-sending; err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() {
		l.close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("close waits for the server")
	}
}
