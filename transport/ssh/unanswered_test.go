package ssh_test

import (
	"io"
	"testing"

	gossh "golang.org/x/crypto/ssh"
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
	pipe, err := tr.Pipe(t.Context(), "echo up; cat; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	within(t, patience, "a program that nobody has confirmed", func() {
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
