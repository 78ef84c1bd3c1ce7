package ssh

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	gossh "golang.org/x/crypto/ssh"

	"gateway/internal/phrase"
	"gateway/transport"
)

// pinned reports whether the key is one of the pins. A pin that cannot be read
// matches nothing.
func (h *HostKeys) pinned(key gossh.PublicKey) bool {
	fingerprint := gossh.FingerprintSHA256(key)
	for _, pin := range h.Pins {
		pin = strings.TrimSpace(pin)
		if strings.HasPrefix(pin, "SHA256:") {
			// Some tools print the padding of base64.
			if strings.TrimRight(pin, "=") == fingerprint {
				return true
			}
			continue
		}
		pinned, err := parsePin(pin)
		if err != nil {
			h.warn("host key pin of " + h.display() + " is neither SHA256:… nor a public key: " + err.Error())
		} else if sameKey(pinned, key) {
			return true
		}
	}
	return false
}

// parsePin parses a public key as in authorized_keys, without options.
func parsePin(pin string) (gossh.PublicKey, error) {
	typ, rest := nextWord(pin)
	blob, _ := nextWord(rest)
	if blob == "" {
		return nil, fmt.Errorf("%.32q is no public key", pin)
	}
	return parseKeyWords(typ, blob)
}

// A pinSearch looks for the pinned key among those of a machine. It shows one
// key in a handshake, and which one that is depends on the types it is asked for;
// a pin that is a fingerprint does not say its type. Nothing but the handshake has
// been sent when a key turns out not to be pinned.
type pinSearch struct {
	keys  *HostKeys
	first string            // the type to ask for first; empty: what is known decides
	shown []gossh.PublicKey // of different types, none of them pinned
}

// notPinned is the cause of the error about a key that is not pinned.
type notPinned struct{ key gossh.PublicKey }

func (notPinned) Error() string { return "not a pinned key" }

// order returns those of the algorithms whose types were not shown yet. They may be none.
func (s *pinSearch) order(algorithms []string) []string {
	left := slices.DeleteFunc(algorithms, func(algorithm string) bool { return s.has(keyTypeOf(algorithm)) })
	first := slices.DeleteFunc(slices.Clone(left), func(algorithm string) bool { return keyTypeOf(algorithm) != s.first })
	return phrase.Unique(append(first, left...))
}

func (s *pinSearch) has(keyType string) bool {
	return slices.ContainsFunc(s.shown, func(key gossh.PublicKey) bool { return key.Type() == keyType })
}

// goOn reports whether another handshake may show another key, after one that
// failed with err. There are no more of them than types.
func (s *pinSearch) goOn(err error) bool {
	var miss notPinned
	if !errors.As(err, &miss) || s.has(miss.key.Type()) {
		return false
	}
	s.shown = append(s.shown, miss.key)
	return len(s.order(s.keys.Algorithms())) > 0
}

// outcome is the error of the whole search, whose last handshake failed with err.
func (s *pinSearch) outcome(err error) error {
	var miss notPinned
	if len(s.shown) > 0 && (lacksKey(err) || errors.As(err, &miss)) {
		return s.keys.unpinned(s.shown...)
	}
	return err
}

// unpinned is the error for keys that are not pinned.
func (h *HostKeys) unpinned(keys ...gossh.PublicKey) *transport.Error {
	shown := make([]string, len(keys))
	for i, key := range keys {
		shown[i] = describe(key)
	}
	return h.failure(codeHostKeyChanged, notPinned{keys[0]}, fmt.Sprintf("someone may be in between; if the key is right, put it into host_key of %s in the inventory", h.display()),
		"is not a pinned one: it shows %s, pinned is %s", strings.Join(shown, ", "), strings.Join(h.Pins, ", "))
}
