package ssh_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	gossh "golang.org/x/crypto/ssh"

	"gateway/internal/sshdtest"
	"gateway/transport/ssh"
)

// The keys of a name are those of one machine, also where the name changes hands
// between two of them.
func TestScanOneMachine(t *testing.T) {
	var fingerprints [2][]string
	var servers [2]*gossh.ServerConfig
	for i := range servers {
		servers[i] = &gossh.ServerConfig{NoClientAuth: true}
		for _, kind := range []string{"ed25519", "ecdsa"} {
			key := sshdtest.NewKey(t, kind)
			servers[i].AddHostKey(key.Signer)
			fingerprints[i] = append(fingerprints[i], gossh.FingerprintSHA256(key.Public()))
		}
	}
	var accepted atomic.Int32
	port := "0"
	addresses := []string{"127.0.0.1", "127.0.0.2"}
	for i, address := range addresses {
		l, err := net.Listen("tcp", net.JoinHostPort(address, port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		_, port, _ = net.SplitHostPort(l.Addr().String())
		go func() { // ends with the listener
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				accepted.Add(1)
				go func() {
					defer conn.Close()
					_, _, _, _ = gossh.NewServerConn(conn, servers[i]) // the scan leaves before its end
				}()
			}
		}()
	}
	nameServer(t, func(query []byte) []byte { return dnsAnswer(query, 0, addresses[accepted.Load()%2]) })
	c := ssh.Config{Name: "web1", Addr: "turns.example", User: "u", HostKeys: &ssh.HostKeys{Name: "web1", Write: "none"}}
	fmt.Sscan(port, &c.Port)
	for range 2 {
		keys, err := ssh.ScanHostKeys(t.Context(), c)
		var got []string
		for _, key := range keys {
			got = append(got, gossh.FingerprintSHA256(key))
		}
		if err != nil || !slices.Equal(got, fingerprints[0]) && !slices.Equal(got, fingerprints[1]) {
			t.Errorf("ScanHostKeys = %s, %v, want the keys of one machine: %s", strings.Join(got, " "), err, fingerprints)
		}
	}
}
