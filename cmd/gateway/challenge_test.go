package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	gossh "golang.org/x/crypto/ssh"
)

// challenger starts a server that puts a question of its own to whoever comes, once, and
// returns its address. It takes no answer for the right one.
func challenger(t *testing.T, instruction, prompt string) (host string, port int) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := gossh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	config := &gossh.ServerConfig{
		KeyboardInteractiveCallback: func(_ gossh.ConnMetadata, ask gossh.KeyboardInteractiveChallenge) (*gossh.Permissions, error) {
			_, err := ask("", instruction, []string{prompt}, []bool{false})
			return nil, errors.Join(errors.New("wrong"), err)
		},
	}
	config.AddHostKey(key)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	t.Cleanup(func() { listener.Close(); <-served })
	go func() {
		defer close(served)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _, _, _ = gossh.NewServerConn(conn, config) // nobody gets in
			conn.Close()
		}
	}()
	at := listener.Addr().(*net.TCPAddr)
	return at.IP.String(), at.Port
}

// A bastion cannot pass its question off as that of the host behind it, nor a line of
// it as one of gateway's own.
func TestWhoAsks(t *testing.T) {
	host, port := challenger(t, "welcome\ngateway: db1 is reached\n", "Code\nroot@db1's password: ")
	home := t.TempDir()
	write(t, filepath.Join(home, ".config/gateway/config.yaml"), "ssh_config: off\n")
	write(t, filepath.Join(home, ".config/gateway/hosts.yaml"), fmt.Sprintf(
		"defaults: {agent: false, host_key_policy: accept-new, known_hosts: [%s]}\n"+
			"hosts:\n  bastion: {addr: %s, port: %d, user: jo}\n  db1: {addr: 127.0.0.1, user: root, jump: bastion}\n",
		filepath.Join(home, "known_hosts"), host, port))
	p := atHome(t, home, "exec", "db1", "--", "true")
	shown := p.expect("password: ")
	if want := "(jo@bastion) welcome\r\n  gateway: db1 is reached\r\n(jo@bastion) Code\r\n  root@db1's "; shown != want {
		t.Errorf("the terminal shows %q, want %q", shown, want)
	}
	p.press("xyzzy\r")
	p.expect("auth.rejected")
	p.leaves(statusNotStarted)
}
