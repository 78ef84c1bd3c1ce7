package ssh_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/internal/sshdtest"
	"gateway/transport"
)

// TestOneProgram: a server that opens any number of channels may run one program on a
// connection, as libssh's example does. With max_sessions each gets its own.
func TestOneProgram(t *testing.T) {
	key := sshdtest.NewKey(t, "ed25519").Signer
	c := listen(t, func(conn net.Conn) {
		server := &gossh.ServerConfig{NoClientAuth: true}
		server.AddHostKey(key)
		s, channels, requests, err := gossh.NewServerConn(conn, server)
		if err != nil {
			return
		}
		defer s.Close()
		go gossh.DiscardRequests(requests)
		runs := false
		for channel := range channels {
			_, asked, err := channel.Accept()
			if err != nil {
				return
			}
			if request := <-asked; request != nil {
				_ = request.Reply(!runs, nil)
			}
			runs = true
			go gossh.DiscardRequests(asked)
		}
	})
	c.ConnectTimeout = 5 * time.Second
	for _, most := range []int{0, 1} {
		c.MaxSessions = most
		tr := dial(t, c)
		for i := range 2 {
			pipe := pipe(t, tr, "run")
			ends := make(chan error, 1)
			go func() {
				_, err := pipe.Wait()
				ends <- err
			}()
			refused := i == 1 && most == 0
			if _, err := pipe.Stdin.Write([]byte("x")); (err != nil) != refused {
				t.Errorf("max_sessions %d, program %d: Write = %v", most, i, err)
			}
			if !refused {
				continue
			}
			typed := new(transport.Error)
			if err := <-ends; !errors.As(err, &typed) || typed.Code != "session.forced_command" || !strings.Contains(typed.Hint, "max_sessions: 1") {
				t.Errorf("Wait = %v, hint %q", err, typed.Hint)
			}
		}
	}
}
