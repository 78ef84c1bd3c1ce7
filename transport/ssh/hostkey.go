package ssh

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	gossh "golang.org/x/crypto/ssh"
)

// A Policy says what happens with a host whose key is not known. A key that
// differs from the known one is refused under every policy.
type Policy int

const (
	Strict    Policy = iota // refuse
	AcceptNew               // record and accept
	Ask                     // ask a person; record and accept on yes
)

// HostKeys checks the host keys of one hop as OpenSSH does. It is safe for
// concurrent use and must not be copied once in use. The zero value of every
// field but Name or Addr is useful; a zero HostKeys with a name refuses all keys.
//
// Keys are looked up under Alias alone if it is set. Else they are looked up
// under Name and under Addr in OpenSSH's form, "[addr]:port" unless the port is
// 22: a key known under either is good, a key that contradicts one and is known
// under none has changed. When neither knows anything, a key known under the
// plain Addr is good too, but never makes another one a changed one, as that
// line may speak of another server on port 22. So does ssh; it does not look at
// @revoked there, which counts here under every name.
//
// A Name that is the Addr is no name of its own, as ssh would take a line about
// the plain name for one about port 22.
type HostKeys struct {
	Name  string // configured name, under which keys are recorded; never the remote address
	Addr  string // host name or IP address; empty: Name
	Port  int    // 0: 22
	Alias string // HostKeyAlias of ssh_config: replaces Name and Addr

	Files   []string // known_hosts files, in order; missing ones are fine
	Write   string   // file for new keys; empty: the first of Files, "none": nowhere
	HashNew bool     // record hashed names, as HashKnownHosts of ssh_config

	// Pins are fingerprints ("SHA256:…") or public keys as in authorized_keys.
	// When there are any, a key that is not among them is refused and one that
	// is among them is accepted, unless it is @revoked.
	Pins []string

	// Revoked is a file of keys that are never accepted, one a line, as
	// RevokedHostKeys of ssh_config has it; a certificate is revoked with the key
	// that signed it. While the file cannot be read, no key is accepted; so it is
	// with a line that is no public key, and with the forms of ssh-keygen -k,
	// which are not understood.
	Revoked string

	Policy Policy
	// Why says what has made the policy Strict, for the hint about an unknown key;
	// empty if that is as it was asked for.
	Why string
	// Unlisted: "hosts trust" does not know the name, which is the address of a jump.
	Unlisted bool
	// Ask is called for a key that is not known under the policy Ask. It may
	// block until the context ends. Without it the policy is Strict.
	Ask func(context.Context, HostKeyQuestion) (bool, error)
	// Warn is told once of each line that was skipped, and of a file that could
	// not be read. It may be nil, and may be called concurrently.
	Warn func(msg string)

	mu     sync.Mutex      // guards warned
	warned map[string]bool // messages given to Warn
}

// A HostKeyQuestion is what a person needs to decide about a host key.
type HostKeyQuestion struct {
	Host        string // the name that the key would be recorded under
	Addr        string // "addr:port", as dialled
	Type        string // key type: "ssh-ed25519"
	Fingerprint string // "SHA256:…"
}

// A lookup is a name under which a host is looked up.
type lookup struct {
	name      string // as it stands in known_hosts, in lower case
	principal string // what a certificate must be for
	fallback  bool   // can accept a key but contradict none
}

// lookups returns the names, the one to record under first.
func (h *HostKeys) lookups() []lookup {
	// ssh lowers what was typed before it looks.
	alias, name, addr := strings.ToLower(h.Alias), strings.ToLower(h.Name), strings.ToLower(h.address())
	if alias != "" {
		return []lookup{{name: alias, principal: alias}}
	}
	var found []lookup
	if name != "" && name != addr {
		found = append(found, lookup{name: name, principal: name})
	}
	if port := h.port(); port != DefaultPort {
		return append(found,
			lookup{name: fmt.Sprintf("[%s]:%d", addr, port), principal: addr},
			lookup{name: addr, principal: addr, fallback: true})
	}
	return append(found, lookup{name: addr, principal: addr})
}

func (h *HostKeys) port() int { return cmp.Or(h.Port, DefaultPort) }

func (h *HostKeys) address() string { return cmp.Or(h.Addr, h.Name) }

// display is the host's name in messages, and the argument of "hosts trust".
func (h *HostKeys) display() string { return cmp.Or(h.Name, h.Addr) }

// recording says how a person records a key.
func (h *HostKeys) recording() string {
	name, fields := h.display(), ""
	if !h.Unlisted {
		return "gateway hosts trust " + name
	}
	if port := h.port(); port != DefaultPort {
		fields = fmt.Sprintf("port: %d", port)
	}
	return fmt.Sprintf("gateway hosts trust %s, with `%s: {%s}` among the inventory's hosts", name, name, fields)
}

// files returns the files to read: the one to write is among them, or what is
// recorded would not be known next time.
func (h *HostKeys) files() []string {
	write := h.writeFile()
	if write == "" || slices.Contains(h.Files, write) {
		return h.Files
	}
	return append(slices.Clip(h.Files), write)
}

// known is what the files say about a host.
type known struct {
	*HostKeys
	lookups []lookup
	entries []*knownHost
	// lack is that no descriptor was left for a file; nil else. The next moment it may
	// say something else.
	lack error
}

// known reads the lines about this host. A file that cannot be read is passed
// over with a warning, as ssh does it, with what it may revoke.
func (h *HostKeys) known() known {
	k := known{HostKeys: h, lookups: h.lookups()}
	names := make([]string, len(k.lookups))
	for i, l := range k.lookups {
		names[i] = l.name
	}
	for _, file := range h.files() {
		found, err := readKnownHosts(file, names, func(place, what string) { h.warn(place + ": " + what) })
		switch {
		case exhausted(err):
			k.lack = err
		case err != nil:
			h.warn("known_hosts: " + err.Error())
		}
		k.entries = append(k.entries, found...)
	}
	return k
}

func (h *HostKeys) warn(msg string) {
	h.mu.Lock()
	told := h.warned[msg]
	if h.warned == nil {
		h.warned = map[string]bool{}
	}
	h.warned[msg] = true
	h.mu.Unlock()
	if !told && h.Warn != nil {
		h.Warn(msg)
	}
}

// Callback returns the check for gossh.ClientConfig. It ignores the address
// that it is called with: through a bastion that is 0.0.0.0:0. The context
// covers a question to a person and the wait for a lock on the file.
//
// Its errors are *transport.Error with the codes hostkey.unknown,
// hostkey.changed and hostkey.revoked.
func (h *HostKeys) Callback(ctx context.Context) gossh.HostKeyCallback {
	return func(_ string, _ net.Addr, key gossh.PublicKey) error {
		v := h.known().judge(key)
		switch {
		case v.kind == keyKnown:
			return nil
		case v.kind != keyUnknown:
		case h.Policy == AcceptNew:
			return h.accept(ctx, v.key, true)
		case h.Policy == Ask && h.Ask != nil:
			return h.ask(ctx, v)
		}
		return h.refused(v)
	}
}

// begin returns what Algorithms and Callback do, with the files read once. They may have
// changed by the time that the key is there: what they said before decides if it is known
// by that, and nothing else.
func (h *HostKeys) begin(ctx context.Context) (algorithms []string, check gossh.HostKeyCallback) {
	before, anew := h.known(), h.Callback(ctx)
	return before.algorithms(), func(addr string, remote net.Addr, key gossh.PublicKey) error {
		if before.judge(key).kind == keyKnown {
			return nil
		}
		return anew(addr, remote, key)
	}
}

// ask lets a person decide. A yes counts even if it cannot be recorded.
func (h *HostKeys) ask(ctx context.Context, v verdict) error {
	yes, err := h.Ask(ctx, HostKeyQuestion{
		Host:        h.lookups()[0].name,
		Addr:        net.JoinHostPort(h.address(), strconv.Itoa(h.port())),
		Type:        v.key.Type(),
		Fingerprint: gossh.FingerprintSHA256(v.key),
	})
	if err != nil {
		return h.unanswered(v, err)
	}
	if !yes {
		return h.refused(v)
	}
	if err := h.record(ctx, v.key, false); err != nil {
		h.warn("host key of " + h.display() + " accepted but not recorded: " + err.Error())
	}
	return nil
}

// accept records the key, as record does, and accepts it. What cannot be recorded is
// refused: else every later connection would accept any key at all.
func (h *HostKeys) accept(ctx context.Context, key gossh.PublicKey, onlyNew bool) error {
	if err := h.record(ctx, key, onlyNew); err != nil {
		return h.unrecorded(key, err)
	}
	return nil
}

// sameKey reports whether the two are one key.
func sameKey(a, b gossh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }

// plainKey is the key in a certificate, which outlives it, or the key itself.
func plainKey(key gossh.PublicKey) gossh.PublicKey {
	if cert, ok := key.(*gossh.Certificate); ok {
		return cert.Key
	}
	return key
}
