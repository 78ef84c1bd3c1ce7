package ssh

import (
	"slices"

	gossh "golang.org/x/crypto/ssh"
)

// A keyAlgorithm is how a type of key signs, by itself and in a certificate.
type keyAlgorithm struct{ keyType, plain, cert string }

// keyAlgorithms are OpenSSH's host key algorithms in its order of preference,
// HostKeyAlgorithms in ssh_config(5). SHA-1 signatures (ssh-rsa) are not among them.
//
// Those of certificates are offered only where an authority is known for the host, or
// where something is revoked for it, which may be an authority: to anyone else a
// certificate is worth no more than the key in it.
var keyAlgorithms = []keyAlgorithm{
	{gossh.KeyAlgoED25519, gossh.KeyAlgoED25519, gossh.CertAlgoED25519v01},
	{gossh.KeyAlgoECDSA256, gossh.KeyAlgoECDSA256, gossh.CertAlgoECDSA256v01},
	{gossh.KeyAlgoECDSA384, gossh.KeyAlgoECDSA384, gossh.CertAlgoECDSA384v01},
	{gossh.KeyAlgoECDSA521, gossh.KeyAlgoECDSA521, gossh.CertAlgoECDSA521v01},
	{gossh.KeyAlgoSKED25519, gossh.KeyAlgoSKED25519, gossh.CertAlgoSKED25519v01},
	{gossh.KeyAlgoSKECDSA256, gossh.KeyAlgoSKECDSA256, gossh.CertAlgoSKECDSA256v01},
	{gossh.KeyAlgoRSA, gossh.KeyAlgoRSASHA512, gossh.CertAlgoRSASHA512v01},
	{gossh.KeyAlgoRSA, gossh.KeyAlgoRSASHA256, gossh.CertAlgoRSASHA256v01},
}

// plainly and certified are the algorithms of a type of key.
func plainly(a keyAlgorithm) string   { return a.plain }
func certified(a keyAlgorithm) string { return a.cert }

// keyTypeOf returns the type of the keys that sign with an algorithm, by themselves
// or in a certificate.
func keyTypeOf(algorithm string) string {
	for _, a := range keyAlgorithms {
		if algorithm == a.plain || algorithm == a.cert {
			return a.keyType
		}
	}
	return ""
}

// Algorithms returns the value for gossh.ClientConfig.HostKeyAlgorithms. What
// is known about the host comes first, so that a server with several keys shows
// the known one (go.dev/issue/29286). The others follow, as with ssh: a server
// that no longer has the known key shows another, and the error is a changed
// key instead of a failed negotiation.
func (h *HostKeys) Algorithms() []string { return h.known().algorithms() }

func (k known) algorithms() []string {
	revocable := k.Revoked != "" || slices.ContainsFunc(k.entries, func(e *knownHost) bool { return e.marker == markRevoked })
	if len(k.Pins) > 0 {
		return appendRest(appendKnown(nil, k.pinTypes(k.entries), revocable), revocable)
	}
	var order []string
	for i, l := range k.lookups {
		if l.fallback && len(order) > 0 {
			break // it may speak of another server
		}
		types, authority := knownUnder(i, k.entries)
		if authority {
			order = appendAlgorithms(order, certified, nil)
		}
		if len(types) > 0 {
			order = appendKnown(order, types, revocable)
		}
	}
	return appendRest(order, revocable)
}

// knownUnder returns the types of the keys that are known under one of the names, and
// whether an authority is.
func knownUnder(name int, entries []*knownHost) (types map[string]bool, authority bool) {
	types = map[string]bool{}
	for _, e := range entries {
		switch {
		case !e.hits[name]:
		case e.marker == markNone:
			types[e.key.Type()] = true
		case e.marker == markCA:
			authority = true
		}
	}
	return types, authority
}

// appendKnown appends the algorithms for the types of known keys. Where something
// is revoked, a key is seen with its certificate, if it has one: the authority that
// has signed it may be what is revoked. As in order_hostkeyalgs of OpenSSH's
// sshconnect2.c, those are all certificates if the type that comes first is known.
func appendKnown(order []string, types map[string]bool, revocable bool) []string {
	switch {
	case revocable && types[keyAlgorithms[0].keyType]:
		order = appendAlgorithms(order, certified, nil)
	case revocable:
		order = appendAlgorithms(order, certified, types)
	}
	return appendAlgorithms(order, plainly, types)
}

// appendRest appends what is not there yet.
func appendRest(order []string, revocable bool) []string {
	if revocable {
		order = appendAlgorithms(order, certified, nil)
	}
	return appendAlgorithms(order, plainly, nil)
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
// if types is nil, in the fixed order. None is there twice.
func appendAlgorithms(order []string, used func(keyAlgorithm) string, types map[string]bool) []string {
	for _, a := range keyAlgorithms {
		if algorithm := used(a); (types == nil || types[a.keyType]) && !slices.Contains(order, algorithm) {
			order = append(order, algorithm)
		}
	}
	return order
}
