package ssh

import (
	"slices"

	gossh "golang.org/x/crypto/ssh"
)

// keyAlgorithms are OpenSSH's host key algorithms in its order of preference,
// HostKeyAlgorithms in ssh_config(5), with the key type each is for. SHA-1
// signatures (ssh-rsa) are not among them.
var keyAlgorithms = []struct{ algorithm, keyType string }{
	{gossh.KeyAlgoED25519, gossh.KeyAlgoED25519},
	{gossh.KeyAlgoECDSA256, gossh.KeyAlgoECDSA256},
	{gossh.KeyAlgoECDSA384, gossh.KeyAlgoECDSA384},
	{gossh.KeyAlgoECDSA521, gossh.KeyAlgoECDSA521},
	{gossh.KeyAlgoSKED25519, gossh.KeyAlgoSKED25519},
	{gossh.KeyAlgoSKECDSA256, gossh.KeyAlgoSKECDSA256},
	{gossh.KeyAlgoRSASHA512, gossh.KeyAlgoRSA},
	{gossh.KeyAlgoRSASHA256, gossh.KeyAlgoRSA},
}

// certAlgorithms are those of host certificates, in OpenSSH's order. They are
// offered only where an authority is known for the host: to anyone else a
// certificate is worth no more than the key in it.
var certAlgorithms = []string{
	gossh.CertAlgoED25519v01,
	gossh.CertAlgoECDSA256v01, gossh.CertAlgoECDSA384v01, gossh.CertAlgoECDSA521v01,
	gossh.CertAlgoSKED25519v01, gossh.CertAlgoSKECDSA256v01,
	gossh.CertAlgoRSASHA512v01, gossh.CertAlgoRSASHA256v01,
}

// Algorithms returns the value for gossh.ClientConfig.HostKeyAlgorithms. What
// is known about the host comes first, so that a server with several keys shows
// the known one (go.dev/issue/29286). The others follow, as with ssh: a server
// that no longer has the known key shows another, and the error is a changed
// key instead of a failed negotiation.
func (h *HostKeys) Algorithms() []string {
	lookups := h.lookups()
	entries := h.load(lookups)
	var order []string
	if len(h.Pins) > 0 {
		order = appendAlgorithms(order, h.pinTypes(entries))
		return appendAlgorithms(order, nil)
	}
	for i, l := range lookups {
		if l.fallback && len(order) > 0 {
			break // it may speak of another server
		}
		types := map[string]bool{}
		authority := false
		for _, e := range entries {
			if !e.hits[i] {
				continue
			}
			switch e.marker {
			case markNone:
				types[e.key.Type()] = true
			case markCA:
				authority = true
			}
		}
		if authority {
			order = appendNew(order, certAlgorithms...)
		}
		if len(types) > 0 {
			order = appendAlgorithms(order, types)
		}
	}
	return appendAlgorithms(order, nil)
}

// pinTypes returns the key types of the pins, as far as they can be told: a
// fingerprint has none, unless a line of known_hosts has its key.
func (h *HostKeys) pinTypes(entries []*knownHost) map[string]bool {
	types := map[string]bool{}
	for _, pin := range h.Pins {
		if key, err := parsePin(pin); err == nil {
			types[key.Type()] = true
		}
	}
	for _, e := range entries {
		if e.marker == markNone && h.pinned(e.key) {
			types[e.key.Type()] = true
		}
	}
	return types
}

// appendAlgorithms appends the algorithms for the key types, or for all types
// if types is nil, in the fixed order.
func appendAlgorithms(order []string, types map[string]bool) []string {
	for _, a := range keyAlgorithms {
		if types == nil || types[a.keyType] {
			order = appendNew(order, a.algorithm)
		}
	}
	return order
}

// appendNew appends what is not there yet.
func appendNew(list []string, more ...string) []string {
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}
