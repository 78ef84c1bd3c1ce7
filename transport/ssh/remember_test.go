package ssh_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	gossh "golang.org/x/crypto/ssh"

	"gateway/gateway"
	"gateway/transport"
	"gateway/transport/ssh"
)

// TestTypedForFurtherConnections: on dropbear each session has a connection to itself. A
// password that has opened one opens the next, until it is refused; a one-time code is
// typed each time.
func TestTypedForFurtherConnections(t *testing.T) {
	for _, test := range []struct {
		name  string
		way   func(check func(string) error) *gossh.ServerConfig
		asked int64 // for two connections
	}{
		{"password", func(check func(string) error) *gossh.ServerConfig {
			return &gossh.ServerConfig{PasswordCallback: func(_ gossh.ConnMetadata, answer []byte) (*gossh.Permissions, error) {
				return nil, check(string(answer))
			}}
		}, 1},
		{"code", func(check func(string) error) *gossh.ServerConfig {
			return &gossh.ServerConfig{KeyboardInteractiveCallback: func(_ gossh.ConnMetadata, challenge gossh.KeyboardInteractiveChallenge) (*gossh.Permissions, error) {
				answers, err := challenge("", "", []string{"Code: "}, []bool{false})
				if err != nil {
					return nil, err
				}
				return nil, check(answers[0])
			}}
		}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			var changed atomic.Bool
			secret := func() string {
				if changed.Load() {
					return "another"
				}
				return "one"
			}
			config := test.way(func(answer string) error {
				if answer != secret() {
					return errors.New("wrong")
				}
				return nil
			})
			config.ServerVersion = "SSH-2.0-dropbear_2022.83"
			c := serveChannels(t, config, func(channel gossh.NewChannel) {
				_, requests, err := channel.Accept()
				if err != nil {
					return
				}
				go func() { // ends with the connection
					for request := range requests {
						_ = request.Reply(true, nil)
					}
				}()
			})
			var asked atomic.Int64
			c.Ask = func(context.Context, ssh.Question) (string, error) {
				asked.Add(1)
				return secret(), nil
			}
			tr := dial(t, c)
			open := func(group string) error {
				_, err := tr.Pipe(transport.Together(t.Context(), group), "true")
				return err
			}
			for _, group := range []string{"a", "b"} {
				must(t, open(group))
			}
			if n := asked.Load(); n != test.asked {
				t.Errorf("asked %d times for two connections, want %d", n, test.asked)
			}
			if changed.Store(true); test.asked > 1 {
				return
			}
			if err := open("c"); gateway.Code(err) != "auth.rejected" {
				t.Errorf("with what was typed for others: %v, want auth.rejected", err)
			}
			if err := open("d"); err != nil || asked.Load() != 2 {
				t.Errorf("then %v, asked %d times, want it asked once more", err, asked.Load())
			}
		})
	}
}
