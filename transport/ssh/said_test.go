package ssh_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/internal/sshdtest"
)

// What a server says without a question is why it refuses, or what it waits for. So sshd
// says what PAM has against an account. What everyone is told is no reason.
func TestSaidWithoutQuestion(t *testing.T) {
	notice := func(gossh.ConnMetadata) string { return "no trespassing\n" }
	password := func(err error) *gossh.ServerConfig {
		return &gossh.ServerConfig{BannerCallback: notice, PasswordCallback: func(gossh.ConnMetadata, []byte) (*gossh.Permissions, error) {
			return nil, err
		}}
	}
	for _, test := range []struct {
		name, code, text, not string
		server                *gossh.ServerConfig
	}{
		{
			"before it refuses", "auth.rejected", "account has expired", "trespassing",
			password(&gossh.BannerError{Err: errors.New("no"), Message: "Your account has expired\n"}),
		},
		{"to everyone", "auth.rejected", "password", "trespassing", password(errors.New("no"))},
		{"in a challenge", "auth.rejected", "account is locked", "trespassing", &gossh.ServerConfig{
			BannerCallback: notice,
			KeyboardInteractiveCallback: func(_ gossh.ConnMetadata, challenge gossh.KeyboardInteractiveChallenge) (*gossh.Permissions, error) {
				_, err := challenge("", "The account is locked\n", nil, nil)
				return nil, errors.Join(err, errors.New("no"))
			},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := serve(t, test.server)
			c.Password = func(context.Context) (string, error) { return "x", nil }
			if err := refused(t, c, test.code, test.text); strings.Contains(err.Error(), test.not) {
				t.Errorf("%v has what everyone is told", err)
			}
		})
	}
	t.Run("before it ends the connection", func(t *testing.T) {
		key := sshdtest.NewKey(t, "ed25519").Signer
		c := listen(t, func(conn net.Conn) {
			server := &gossh.ServerConfig{BannerCallback: notice, PasswordCallback: func(login gossh.ConnMetadata, _ []byte) (*gossh.Permissions, error) {
				defer conn.Close()
				return nil, login.(gossh.ServerPreAuthConn).SendAuthBanner("Your account has expired\n")
			}}
			server.AddHostKey(key)
			_, _, _, _ = gossh.NewServerConn(conn, server)
		})
		c.ConnectTimeout = 5 * time.Second
		c.Password = func(context.Context) (string, error) { return "x", nil }
		if err := refused(t, c, "ssh.closed", "account has expired"); !strings.Contains(err.Hint, "account") {
			t.Errorf("hint = %q, want one about the account", err.Hint)
		}
	})
	t.Run("while it waits", func(t *testing.T) {
		held := make(chan struct{})
		defer close(held)
		c := serve(t, &gossh.ServerConfig{NoClientAuth: true, BannerCallback: notice, NoClientAuthCallback: func(gossh.ConnMetadata) (*gossh.Permissions, error) {
			<-held
			return nil, errors.New("no")
		}})
		c.ConnectTimeout = 500 * time.Millisecond
		refused(t, c, "ssh.handshake", "authentication not finished", "trespassing")
	})
}
