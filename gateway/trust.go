package gateway

import (
	"context"
	"fmt"
	"os"

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
	// Code is what a connection would be refused with for the key; empty if it is
	// known. Conflict says what speaks against it, such as "differs from
	// known_hosts:12"; empty if nothing does.
	Code, Conflict string

	key  gossh.PublicKey
	rule *ssh.HostKeys
}

// Known reports whether the key is trusted already.
func (k HostKey) Known() bool { return k.Code == "" }

// Refused returns why [Gateway.Trust] would not record the key: it is revoked, or
// others are pinned. It is nil for any other key.
func (k HostKey) Refused() error { return k.rule.Refused(k.key) }

// HostKeys returns the keys that a host shows now, without entering it.
func (g *Gateway) HostKeys(ctx context.Context, name string) ([]HostKey, error) {
	host, err := g.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	if host.Local() {
		return nil, &transport.Error{Code: "usage", Message: fmt.Sprintf("gateway: %s: this machine has no host key to trust", name)}
	}
	host.Identity = []string{} // they are for entering it, and one may be a command
	config, err := g.sshConfig(ctx, host)
	if err != nil {
		return nil, err
	}
	shown, err := ssh.ScanHostKeys(ctx, *config)
	if err != nil {
		return nil, err
	}
	keys := make([]HostKey, len(shown))
	for i, key := range shown {
		code, conflict := config.HostKeys.Judge(key)
		keys[i] = HostKey{
			Type: key.Type(), Fingerprint: gossh.FingerprintSHA256(key),
			Code: code, Conflict: conflict,
			key: key, rule: config.HostKeys,
		}
	}
	return keys, nil
}

// StillTrusted returns the lines of known_hosts, such as "known_hosts:12", that
// trust a key of a host which is none of those that it shows. [Gateway.Trust]
// leaves them as they are.
func StillTrusted(shown []HostKey) []string {
	if len(shown) == 0 {
		return nil
	}
	keys := make([]gossh.PublicKey, len(shown))
	for i, key := range shown {
		keys[i] = key.key
	}
	return shown[0].rule.Others(keys)
}

// Trust records a key that HostKeys has returned, and returns the file that it
// stands in.
func (g *Gateway) Trust(key HostKey) (file string, err error) {
	file = key.rule.Write
	hint := "set known_hosts, or pin the key with host_key: " + key.Fingerprint
	if file == "none" {
		return "", &transport.Error{Code: "usage", Message: fmt.Sprintf("gateway: %s has no known_hosts file to record a key in", key.rule.Name), Hint: hint}
	}
	// Such as /dev/null, which takes a key and does not have it afterwards.
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		message := fmt.Sprintf("gateway: nothing was recorded: the known_hosts file of %s is %s, which keeps nothing", key.rule.Name, file)
		return "", &transport.Error{Code: "hostkey.unknown", Message: message, Hint: hint}
	}
	return file, key.rule.Trust(key.key)
}
