package ssh_test

import (
	"io"
	"net"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/internal/sshdtest"
)

// TestUnansweredRequest: a server may never answer the request to start a program, and
// start it. What is written to that arrives once it has said something.
func TestUnansweredRequest(t *testing.T) {
	tr := dial(t, serveChannels(t, &gossh.ServerConfig{NoClientAuth: true}, func(channel gossh.NewChannel) {
		remote, requests, err := channel.Accept()
		if err != nil {
			return
		}
		go func() { // ends with the channel
			for range requests {
			}
		}()
		go func() {
			_, _ = io.WriteString(remote, "up\n")
			_, _ = io.Copy(remote, remote)
			_, _ = remote.SendRequest("exit-status", false, gossh.Marshal(struct{ Status uint32 }{3}))
			remote.Close()
		}()
	}))
	pipe := pipe(t, tr, "echo up; cat; exit 3")
	within(t, "a program that nobody has confirmed", func() {
		if _, err := io.WriteString(pipe.Stdin, "in\n"); err != nil {
			t.Error(err)
		}
		pipe.Stdin.Close()
		if got := read(t, pipe.Stdout); got != "up\nin\n" {
			t.Errorf("output = %q", got)
		}
		if exit, err := pipe.Wait(); exit.Code != 3 || err != nil {
			t.Errorf("Wait = %+v, %v", exit, err)
		}
	})
}

// TestKeepaliveOfTinyssh: what is silent for long goes on where the server knows no request
// but those of a channel.
func TestKeepaliveOfTinyssh(t *testing.T) {
	server := &gossh.ServerConfig{NoClientAuth: true, ServerVersion: "SSH-2.0-tinyssh_20230101-1 szhazw8S"}
	server.AddHostKey(sshdtest.NewKey(t, "ed25519").Signer)
	c := listen(t, func(conn net.Conn) {
		s, channels, requests, err := gossh.NewServerConn(conn, server)
		if err != nil {
			return
		}
		go func() { // ends with the connection
			for range requests {
				s.Close() // as x/crypto does for its answer
			}
		}()
		for channel := range channels {
			remote, requests, err := channel.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the channel
				asked := 0
				for r := range requests {
					_ = r.Reply(r.Type == "exec", nil)
					if r.Type == "keepalive@openssh.com" {
						asked++
					}
					if asked == 3 {
						_, _ = io.WriteString(remote, "alive\n")
						remote.Close()
					}
				}
			}()
		}
	})
	c.ConnectTimeout, c.Keepalive = patience, 20*time.Millisecond
	if got := output(t, dial(t, c), "sleep 60; echo alive"); got != "alive\n" {
		t.Errorf("output = %q", got)
	}
}
