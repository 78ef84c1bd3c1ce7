package ssh

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	gossh "golang.org/x/crypto/ssh"
)

// verdictKind is what is known about a key.
type verdictKind int

const (
	keyKnown verdictKind = iota
	keyUnknown
	keyChanged
	keyRevoked
	keyUnchecked // whether it is revoked cannot be told
	keyUnread    // this process has no descriptor left to find out
	keyNotPinned
)

// A verdict is what known_hosts and the pins say about a key.
type verdict struct {
	kind  verdictKind
	key   gossh.PublicKey // the plain key, also of a certificate
	entry *knownHost      // what contradicts or revokes it
	// cert is why a certificate of a known authority does not count; nil else.
	cert error
	// unchecked is why it cannot be told whether the key is revoked, or known; nil else.
	unchecked error
}

// Judge returns the code that a key is refused with, and what speaks against it,
// such as "differs from known_hosts:12". Both are empty for a key that is trusted,
// the latter also for one that is just unknown. It writes nothing and asks nobody.
func (h *HostKeys) Judge(key gossh.PublicKey) (code, conflict string) {
	v := h.known().judge(key)
	switch {
	case v.kind == keyKnown:
		return "", ""
	case v.kind == keyRevoked:
		conflict = "revoked by " + v.entry.place()
	case v.kind == keyUnchecked:
		conflict = "not checked against " + h.Revoked
	case v.kind == keyUnread:
		conflict = "not checked"
	case v.kind == keyNotPinned:
		conflict = "not pinned"
	case v.kind == keyChanged && v.entry.key.Type() != v.key.Type():
		conflict = "another type than " + v.entry.place()
	case v.kind == keyChanged:
		conflict = "differs from " + v.entry.place()
	}
	return h.refused(v).Code, conflict
}

// Refused returns why a key would be refused even if it were recorded, and is not
// recorded therefore: hostkey.revoked, or hostkey.changed where other keys are
// pinned. It is nil for any other key.
func (h *HostKeys) Refused(key gossh.PublicKey) error {
	switch v := h.known().judge(plainKey(key)); v.kind {
	case keyRevoked, keyUnchecked, keyUnread, keyNotPinned:
		return h.refused(v)
	}
	return nil
}

// Others returns the lines, such as "known_hosts:12", that trust a key for the
// host which is none of these.
func (h *HostKeys) Others(keys []gossh.PublicKey) (places []string) {
	k := h.known()
	for _, e := range k.entries {
		if e.marker == markNone && e.own(k.lookups) &&
			!slices.ContainsFunc(keys, func(key gossh.PublicKey) bool { return sameKey(plainKey(key), e.key) }) {
			places = append(places, e.place())
		}
	}
	return places
}

// judge looks a key up. It writes nothing and asks nobody.
func (k known) judge(key gossh.PublicKey) verdict {
	cert, isCert := key.(*gossh.Certificate)
	v := verdict{key: plainKey(key)}
	revoked, unchecked := k.revoked()
	if k.lack != nil || exhausted(unchecked) {
		v.kind, v.unchecked = keyUnread, cmp.Or(k.lack, unchecked)
		return v
	}
	for _, e := range slices.Concat(revoked, k.entries) {
		if e.marker == markRevoked && (sameKey(e.key, v.key) || isCert && sameKey(e.key, cert.SignatureKey)) {
			v.kind, v.entry = keyRevoked, e
			return v
		}
	}
	if unchecked != nil {
		v.kind, v.unchecked = keyUnchecked, unchecked
		return v
	}
	if len(k.Pins) > 0 {
		v.kind = keyNotPinned
		if k.pinned(v.key) {
			v.kind = keyKnown
		}
		return v
	}
	if isCert {
		if v.cert = checkHostCert(cert, k.entries, k.lookups); v.cert == nil {
			return v
		}
		if errors.Is(v.cert, errNoAuthority) {
			v.cert = nil
		}
		// As in ssh, the key in a certificate that does not count may be known by itself.
	}
	v.kind, v.entry = judgePlain(v.key, k.entries, k.lookups)
	return v
}

// judgePlain looks for the key among the lines without a marker. A key equal
// to that of an @cert-authority line is not known by it.
func judgePlain(key gossh.PublicKey, entries []*knownHost, lookups []lookup) (verdictKind, *knownHost) {
	var conflict *knownHost
	kind := keyUnknown
	for _, e := range entries {
		if e.marker != markNone {
			continue
		}
		same, own := sameKey(e.key, key), e.own(lookups)
		switch {
		case same && own:
			return keyKnown, nil
		case same && kind == keyUnknown:
			kind = keyKnown // by the fallback, unless another line contradicts
		case !same && own:
			kind = keyChanged
			// The line of the same type is the one to point at.
			if conflict == nil || conflict.key.Type() != key.Type() && e.key.Type() == key.Type() {
				conflict = e
			}
		}
	}
	return kind, conflict
}

// own reports whether the line is about one of the host's own names, not the fallback.
func (e *knownHost) own(lookups []lookup) bool {
	for i, hit := range e.hits {
		if hit && !lookups[i].fallback {
			return true
		}
	}
	return false
}

// errNoAuthority is checkHostCert's answer for a certificate of a stranger.
var errNoAuthority = errors.New("not signed by a known authority")

// checkHostCert returns nil if one of the lines names the certificate's signer
// as an authority for a name that the certificate is for.
func checkHostCert(cert *gossh.Certificate, entries []*knownHost, lookups []lookup) error {
	result := errNoAuthority
	for _, e := range entries {
		if e.marker != markCA || !sameKey(e.key, cert.SignatureKey) {
			continue
		}
		for i, hit := range e.hits {
			if !hit {
				continue
			}
			err := checkHostCertFor(cert, lookups[i].principal)
			if err == nil {
				return nil
			}
			result = err
		}
	}
	return result
}

// checkHostCertFor checks type, principal, validity, critical options and
// signature. The authority was found to be known before.
func checkHostCertFor(cert *gossh.Certificate, principal string) error {
	// CASignatureAlgorithms of ssh_config(5) is without SHA-1; x/crypto would verify it.
	if cert.Signature != nil && cert.Signature.Format == gossh.KeyAlgoRSA {
		return errors.New("signed with SHA-1")
	}
	if cert.CertType != gossh.HostCert {
		return errors.New("not a host certificate")
	}
	err := (&gossh.CertChecker{}).CheckCert(principal, cert)
	if err != nil {
		return errors.New(cut(strings.TrimPrefix(err.Error(), "ssh: ")))
	}
	return nil
}
