package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	gossh "golang.org/x/crypto/ssh"

	"gateway/gateway"
	"gateway/internal/sshdtest"
)

// Whatever the hosts' policies are, a check records no host key and asks about
// none, on the way neither.
func TestCheckRecordsNoHostKey(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	for _, policy := range []string{"accept-new", "ask"} {
		for way, inventory := range map[string]string{
			"direct":  "hosts: {web1: {%s}}",
			"bastion": "hosts: {web1: {%[1]s, jump: door}, door: {%[1]s}}",
		} {
			t.Run(policy+" "+way, func(t *testing.T) {
				known := filepath.Join(t.TempDir(), "known_hosts")
				fields := fmt.Sprintf("addr: %s, port: %d, user: %s, identity: %s, agent: false, known_hosts: %s, host_key_policy: %s",
					server.Host, server.Port, server.User, server.KeyFile, known, policy)
				g := with(t, fmt.Sprintf(inventory, fields), func(c *gateway.Config) {
					c.Ask = func(_ context.Context, q gateway.Question) (string, error) {
						t.Errorf("asked %q", q.Prompt)
						return "yes", nil
					}
				})
				var last gateway.Step
				err := g.Check(t.Context(), "web1", func(s gateway.Step) { last = s })
				if gateway.Code(err) != "hostkey.unknown" || last.Layer != "hostkey" {
					t.Errorf("Check = %v at %s, want hostkey.unknown at hostkey", err, last.Layer)
				}
				if _, err := os.Stat(known); !os.IsNotExist(err) {
					t.Errorf("%s is there: %v", known, err)
				}
			})
		}
	}
}

// Each layer is told once, also where the session or sftp needs a connection of its own.
func TestCheckTellsOneConnection(t *testing.T) {
	for name, server := range map[string]*sshdtest.Server{
		"one channel each": sshdtest.Start(t, sshdtest.Options{Config: []string{"MaxSessions 1"}}),
		"dropbear":         sshdtest.StartDropbear(t, sshdtest.Options{}),
	} {
		t.Run(name, func(t *testing.T) {
			inventory := fmt.Sprintf("hosts: {web1: {addr: %s, port: %d, user: %s, identity: %s, agent: false, host_key: %q}}",
				server.Host, server.Port, server.User, server.KeyFile, gossh.FingerprintSHA256(server.HostKey))
			var steps []string
			must(t, with(t, inventory, nil).Check(t.Context(), "web1", func(s gateway.Step) { steps = append(steps, s.Layer) }))
			if want := []string{"tcp", "hostkey", "banner", "kex", "auth", "auth", "session", "shell", "sftp"}; !slices.Equal(steps, want) {
				t.Errorf("steps %q, want %q", steps, want)
			}
		})
	}
}

// A server may grant sftp, as dropbear does always, and have no program for it.
func TestCheckWithoutSFTP(t *testing.T) {
	for name, program := range map[string]string{"ends": "/bin/false", "says something else": "/bin/cat"} {
		t.Run(name, func(t *testing.T) {
			server := sshdtest.Start(t, sshdtest.Options{NoSftp: true, Config: []string{"Subsystem sftp " + program}})
			inventory := fmt.Sprintf("hosts: {web1: {addr: %s, port: %d, user: %s, identity: %s, agent: false, host_key: %q}}",
				server.Host, server.Port, server.User, server.KeyFile, gossh.FingerprintSHA256(server.HostKey))
			var last gateway.Step
			must(t, with(t, inventory, nil).Check(t.Context(), "web1", func(s gateway.Step) { last = s }))
			if last.Layer != "sftp" || last.OK || last.Code != "file.no_subsystem" {
				t.Errorf("the last step is %+v, want no sftp", last)
			}
		})
	}
}

// Each layer is told with the name of the machine that it is one of, and so is
// the one that fails.
func TestCheckThroughJump(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	const settings = "addr: %s, port: %d, user: %s, identity: %s, agent: false, host_key: %q"
	fields := fmt.Sprintf(settings, server.Host, server.Port, server.User, server.KeyFile, gossh.FingerprintSHA256(server.HostKey))
	inventory := fmt.Sprintf(`
hosts:
  inner: {%[1]s, jump: door}
  door: {%[1]s}
  lost: {%[1]s, jump: dead}
  far: {%[1]s, jump: lost}
  dead: {addr: 127.0.0.1, port: 1, user: me, identity: []}
  shut: {%[1]s, jump: locked}
  locked: {addr: 127.0.0.1, port: 1, user: me, identity: "env:GATEWAY_TEST_NO_KEY"}
  loop: {%[1]s, jump: localhost}
`, fields)
	for _, test := range []struct {
		host  string
		steps []string // a layer, and of which jump
		code  string
		said  string
	}{
		{"inner", []string{
			"tcp door", "hostkey door", "banner door", "kex door", "auth door", "auth door",
			"tcp ", "hostkey ", "banner ", "kex ", "auth ", "auth ", "session ", "shell ", "sftp ",
		}, "", ""},
		{"lost", []string{"tcp dead"}, "tcp.refused", "ssh: jump of lost: dead (127.0.0.1:1): connection refused"},
		{"far", []string{"tcp dead"}, "tcp.refused", "ssh: jump of far: jump of lost: dead (127.0.0.1:1): connection refused"},
		{"shut", []string{"auth locked"}, "secret.unreadable", "ssh: jump of shut: gateway: identity of locked: gateway: secret env:GATEWAY_TEST_NO_KEY: the variable is not set"},
		{"loop", []string{"inventory "}, "inventory.invalid", "gateway: jump of loop: localhost: this machine is no bastion"},
	} {
		t.Run(test.host, func(t *testing.T) {
			var steps []string
			said := ""
			err := with(t, inventory, nil).Check(t.Context(), test.host, func(s gateway.Step) { steps = append(steps, s.Layer+" "+s.Jump) })
			if err != nil {
				said = err.Error()
			}
			if !slices.Equal(steps, test.steps) || said != test.said || gateway.Code(err) != test.code {
				t.Errorf("steps %q, %s: %v, want %q, %q", steps, gateway.Code(err), err, test.steps, test.said)
			}
		})
	}
}

// A handshake that fails names its phase: a server that has shown its banner is one.
func TestCheckNamesThePhase(t *testing.T) {
	hold := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	hostKey := sshdtest.NewKey(t, "ed25519").Signer
	for layer, handle := range map[string]func(net.Conn){
		"banner": hold,
		"kex":    func(conn net.Conn) { fmt.Fprint(conn, "SSH-2.0-x\r\n"); hold(conn) },
		"auth": func(conn net.Conn) {
			server := &gossh.ServerConfig{PublicKeyCallback: func(gossh.ConnMetadata, gossh.PublicKey) (*gossh.Permissions, error) {
				conn.Close()
				return nil, net.ErrClosed
			}}
			server.AddHostKey(hostKey)
			_, _, _, _ = gossh.NewServerConn(conn, server)
		},
	} {
		t.Run(layer, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var serving sync.WaitGroup
			defer serving.Wait()
			defer l.Close()
			serving.Go(func() {
				if conn, err := l.Accept(); err == nil {
					defer conn.Close()
					handle(conn)
				}
			})
			inventory := fmt.Sprintf("hosts: {web1: {addr: 127.0.0.1, port: %d, user: me, identity: %s, agent: false, host_key: %q, connect_timeout: 2s}}",
				l.Addr().(*net.TCPAddr).Port, sshdtest.NewKey(t, "ed25519").File, gossh.FingerprintSHA256(hostKey.PublicKey()))
			var last gateway.Step
			err = with(t, inventory, nil).Check(t.Context(), "web1", func(s gateway.Step) { last = s })
			if err == nil || last.OK || last.Layer != layer {
				t.Errorf("Check = %v at %s, want it at %s", err, last.Layer, layer)
			}
		})
	}
}

// A jump host that is connected already is told of as well.
func TestCheckThroughSharedJump(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	fields := fmt.Sprintf("addr: %s, port: %d, user: %s, identity: %s, agent: false, host_key: %q",
		server.Host, server.Port, server.User, server.KeyFile, gossh.FingerprintSHA256(server.HostKey))
	g := with(t, fmt.Sprintf("hosts: {a: {%[1]s, jump: door}, b: {%[1]s, jump: door}, door: {%[1]s}}", fields), nil)
	s, err := g.Open(t.Context(), "a", gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var first gateway.Step
	var jumps int
	if err := g.Check(t.Context(), "b", func(s gateway.Step) {
		if first.Layer == "" {
			first = s
		}
		if s.Jump != "" {
			jumps++
		}
	}); err != nil {
		t.Fatal(err)
	}
	if first.Layer != "tcp" || first.Jump != "door" || first.Detail != "connected already, for another host" || jumps != 1 {
		t.Errorf("%+v, %d layers of the jump", first, jumps)
	}
}
