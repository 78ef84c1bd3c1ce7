package ssh

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

// endless is what a hostile server says: lines that look like ours, and too
// much of it.
var endless = "no\ngateway: all is well\x1b[2J" + strings.Repeat("\u202ex", 50<<10)

// wantTame wants a message on one short line.
func wantTame(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	text := err.Error()
	t.Logf("%.1000s", text)
	if len(text) > 2000 || strings.ContainsAny(text, "\n\x1b\u202e") {
		t.Errorf("the message has %d bytes: %.300q", len(text), text)
	}
}

func TestWordsOfAServer(t *testing.T) {
	c := &Config{Name: "web1", Addr: "web1", Port: DefaultPort, User: "u", ConnectTimeout: time.Second}
	far, near := net.Pipe()
	t.Cleanup(func() { far.Close(); near.Close() })
	banner := newWire(near)
	shake := func(trusted bool, err error) error {
		h := &handshake{config: c, wire: banner, auth: &authenticator{said: cut(endless)}}
		h.trusted.Store(trusted)
		return h.failure(t.Context(), err)
	}
	for name, err := range map[string]error{
		"key exchange":   shake(false, errors.New("ssh: unknown key algorithm: "+endless)),
		"authentication": shake(true, errors.New("ssh: signature type "+endless)),
		"algorithms":     shake(false, &gossh.AlgorithmNegotiationError{What: "cipher", RequestedAlgorithms: []string{endless}}),
		"lost":           (&conn{config: *c, cause: errors.New(endless)}).lostError(),
		"no channel":     (&Transport{config: *c}).limit(&gossh.OpenChannelError{Reason: 9, Message: endless}),
		"no way":         c.tunnelError(t.Context(), &conn{config: *c}, &gossh.OpenChannelError{Reason: gossh.ConnectionFailed, Message: endless}),
	} {
		t.Run(name, func(t *testing.T) { wantTame(t, err) })
	}
}

func TestMethodsOfAServer(t *testing.T) {
	key := sshdtest.NewKey(t, "ed25519").File
	for _, test := range []struct {
		name, key     string
		ask           bool
		first, second []string // what the server allows before and after the first key
		passed        []string
	}{
		{"nobody to answer", "", false, []string{"password", endless}, nil, nil},
		{"no key", "", true, []string{"publickey", endless}, nil, nil},
		{"refused", key, true, []string{"publickey"}, []string{endless}, nil},
		{"not enough", key, true, []string{"publickey"}, []string{endless}, []string{endless}},
		{"many", key, true, []string{"publickey"}, strings.Split(strings.Repeat("none,", 10_000), ","), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &Config{Name: "web1", Addr: "web1", Port: DefaultPort, User: "u", ConnectTimeout: time.Second}
			if test.key != "" {
				c.Identities = []Identity{{Path: test.key}}
			}
			if test.ask {
				c.Ask = func(context.Context, Question) (string, error) { return "", errors.New("unexpected question") }
			}
			far, near := net.Pipe()
			t.Cleanup(func() { far.Close(); near.Close() })
			ctx, clock := newClock(t.Context(), time.Minute)
			defer clock.stop()
			a := newAuthenticator(ctx, c, clock, newWire(near))
			defer a.close()
			_, err := a.next(&gossh.ClientAuthContext{AllowedMethods: test.first})
			if err == nil {
				_, err = a.next(&gossh.ClientAuthContext{AllowedMethods: test.second, PartialSuccessMethods: test.passed})
			}
			wantTame(t, err)
		})
	}
	if got, want := list([]string{"publickey", "x@y.example"}, " or "), "publickey or x@y.example"; got != want {
		t.Errorf("list = %q, want %q", got, want)
	}
}

// TestHostKeyStays: a server that shows another key when the keys are renewed is refused,
// and nobody is asked about the first one again.
func TestHostKeyStays(t *testing.T) {
	ctx, clock := newClock(t.Context(), time.Hour)
	defer clock.stop()
	asked := 0
	h := &handshake{config: &Config{}, clock: clock}
	check := h.checker(func(string, net.Addr, gossh.PublicKey) error { asked++; return nil })
	first, other := sshdtest.NewKey(t, "ed25519").Public(), sshdtest.NewKey(t, "ed25519").Public()
	if err := errors.Join(ctx.Err(), check("", nil, first), check("", nil, first)); err != nil || asked != 1 {
		t.Errorf("the same key twice = %v, asked %d times", err, asked)
	}
	if check("", nil, other) == nil {
		t.Error("another key is accepted in the middle of the connection")
	}
}
