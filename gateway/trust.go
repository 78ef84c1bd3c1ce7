package gateway

import (
	"context"
	"fmt"

	gossh "golang.org/x/crypto/ssh"

	"gateway/transport"
	"gateway/transport/ssh"
)

// HostKey is a key that a host shows.
type HostKey struct {
	// Type is the key's type, such as ssh-ed25519.
	Type string
	// Fingerprint is "SHA256:…".
	Fingerprint string
	// Known: it is trusted already.
	Known bool

	key gossh.PublicKey
}

// HostKeys returns the keys that a host shows now, without entering it.
func (g *Gateway) HostKeys(ctx context.Context, name string) ([]HostKey, error) {
	config, err := g.remote(ctx, name)
	if err != nil {
		return nil, err
	}
	shown, err := ssh.ScanHostKeys(ctx, *config)
	if err != nil {
		return nil, err
	}
	strict := g.strict(config)
	keys := make([]HostKey, len(shown))
	for i, key := range shown {
		keys[i] = HostKey{
			Type: key.Type(), Fingerprint: gossh.FingerprintSHA256(key),
			Known: strict(config.Addr, nil, key) == nil,
			key:   key,
		}
	}
	return keys, nil
}

// strict returns the check that asks nobody and records nothing.
func (g *Gateway) strict(config *ssh.Config) gossh.HostKeyCallback {
	h := config.HostKeys
	keys := &ssh.HostKeys{Name: h.Name, Addr: h.Addr, Port: h.Port, Alias: h.Alias, Files: h.Files, Pins: h.Pins}
	return keys.Callback(context.Background())
}

// Trust records a key that HostKeys has returned, and returns the file that it
// stands in.
func (g *Gateway) Trust(ctx context.Context, name string, key HostKey) (file string, err error) {
	config, err := g.remote(ctx, name)
	if err != nil {
		return "", err
	}
	return config.HostKeys.Write, config.HostKeys.Trust(key.key)
}

// remote returns how to reach a host that is not this machine.
func (g *Gateway) remote(ctx context.Context, name string) (*ssh.Config, error) {
	host, err := g.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	if host.Local() {
		return nil, &transport.Error{Code: "usage", Message: fmt.Sprintf("gateway: %s: this machine has no host key to trust", name)}
	}
	return g.sshConfig(ctx, host)
}
