package ssh_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/transport"
	"gateway/transport/ssh"
)

// signerOf returns the same ed25519 signer for the same number.
func signerOf(n byte) gossh.Signer {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = n
	signer, err := gossh.NewSignerFromKey(ed25519.NewKeyFromSeed(seed))
	if err != nil {
		panic(err)
	}
	return signer
}

// keyLine is a public key as it stands in known_hosts.
func keyLine(key gossh.PublicKey) string {
	return strings.TrimSpace(string(gossh.MarshalAuthorizedKey(key)))
}

// hostCert certifies key number 1 as a host, by the signer; edit may be nil.
func hostCert(t testing.TB, ca gossh.Signer, edit func(*gossh.Certificate)) *gossh.Certificate {
	t.Helper()
	c := &gossh.Certificate{
		Key:             signerOf(1).PublicKey(),
		CertType:        gossh.HostCert,
		ValidPrincipals: []string{"web1", "10.0.0.7"},
		ValidBefore:     gossh.CertTimeInfinity,
	}
	if edit != nil {
		edit(c)
	}
	must(t, c.SignCert(rand.Reader, ca))
	return c
}

// certForNobody has no principals. ssh-keygen makes such a certificate, and SignCert
// does not.
func certForNobody(t testing.TB, ca gossh.Signer) *gossh.Certificate {
	t.Helper()
	c := hostCert(t, ca, nil)
	c.ValidPrincipals, c.Signature = nil, nil
	text := c.Marshal()
	signature, err := ca.Sign(rand.Reader, text[:len(text)-4]) // without the signature's length
	if err != nil {
		t.Fatal(err)
	}
	c.Signature = signature
	return c
}

// knownFile writes a known_hosts file.
func knownFile(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "known_hosts")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func check(h *ssh.HostKeys, key gossh.PublicKey) error {
	// The address is what a connection through a bastion shows.
	return h.Callback(context.Background())("0.0.0.0:0", &net.TCPAddr{}, key)
}

// codeOf returns an error's code, or "" for nil.
func codeOf(err error) string {
	var e *transport.Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return "not a transport.Error: " + err.Error()
	}
	return ""
}

func TestHostKeyVerdict(t *testing.T) {
	k1, k2 := keyLine(signerOf(1).PublicKey()), keyLine(signerOf(2).PublicKey())
	plain := signerOf(1).PublicKey()
	ca := signerOf(7)
	caLine := keyLine(ca.PublicKey())
	only := func(names ...string) func(*gossh.Certificate) {
		return func(c *gossh.Certificate) { c.ValidPrincipals = names }
	}
	type host = ssh.HostKeys
	web := func() host { return host{Name: "web1", Addr: "10.0.0.7"} }
	web2222 := func() host { return host{Name: "web1", Addr: "10.0.0.7", Port: 2222} }
	same2222 := func() host { return host{Name: "10.0.0.7", Addr: "10.0.0.7", Port: 2222} }
	alias := func() host { return host{Name: "web1", Addr: "10.0.0.7", Port: 2222, Alias: "Farm"} }
	const unknown, changed, revoked = "hostkey.unknown", "hostkey.changed", "hostkey.revoked"
	for _, tt := range []struct {
		name string
		host func() host
		text string
		key  gossh.PublicKey // plain if nil
		want string
	}{
		{name: "nothing known", host: web, want: unknown},
		{name: "under the name", host: web, text: "web1 " + k1},
		{name: "under the address", host: web, text: "10.0.0.7 " + k1},
		{name: "under the address with its port", host: web2222, text: "[10.0.0.7]:2222 " + k1},
		{name: "under the plain address, port not 22", host: web2222, text: "10.0.0.7 " + k1},
		{name: "another under the plain address, port not 22", host: web2222, text: "10.0.0.7 " + k2, want: unknown},
		{name: "changed with port, right under the plain address", host: web2222, text: "[10.0.0.7]:2222 " + k2 + "\n10.0.0.7 " + k1, want: changed},
		{name: "name that is the address speaks of port 22", host: same2222, text: "10.0.0.7 " + k2, want: unknown},
		{name: "name that is the address, its port", host: same2222, text: "[10.0.0.7]:2222 " + k2, want: changed},
		{name: "another under the name", host: web, text: "web1 " + k2, want: changed},
		{name: "another under the address", host: web, text: "10.0.0.7 " + k2, want: changed},
		{name: "right under one, another under the other", host: web, text: "10.0.0.7 " + k2 + "\nweb1 " + k1},
		{name: "several, one right", host: web, text: "web1 " + k2 + "\nweb1 " + k1},
		{name: "only another type known", host: web, text: "web1 " + keyLine(ecdsaKey(t)), want: changed},
		{name: "of another host", host: web, text: "web2 " + k2, want: unknown},
		{name: "alias alone counts", host: alias, text: "farm " + k1 + "\nweb1 " + k2},
		{name: "alias has no port", host: alias, text: "[farm]:2222 " + k1 + "\nweb1 " + k1, want: unknown},
		{name: "revoked", host: web, text: "web1 " + k1 + "\n@revoked * " + k1, want: revoked},
		{name: "revoked under the plain address", host: web2222, text: "web1 " + k1 + "\n@revoked 10.0.0.7 " + k1, want: revoked},
		{name: "revoked by a certificate", host: web, text: "web1 " + k1 + "\n@revoked * " + keyLine(hostCert(t, ca, nil)), want: revoked},
		{name: "revoked for another host", host: web, text: "web1 " + k1 + "\n@revoked web2 " + k1},
		{name: "another one revoked", host: web, text: "@revoked web1 " + k2 + "\nweb1 " + k1},

		{name: "key of an authority is no host key", host: web, text: "@cert-authority * " + k1, want: unknown},
		{name: "certificate", host: web, text: "@cert-authority * " + caLine, key: hostCert(t, ca, nil)},
		{name: "certificate for the name", host: web, text: "@cert-authority web1 " + caLine, key: hostCert(t, ca, only("web1"))},
		{name: "certificate for the address", host: web2222, text: "@cert-authority * " + caLine, key: hostCert(t, ca, only("x", "10.0.0.7"))},
		{name: "certificate for the alias", host: alias, text: "@cert-authority farm " + caLine, key: hostCert(t, ca, only("farm"))},
		{name: "authority under the plain address", host: same2222, text: "@cert-authority 10.0.0.7 " + caLine, key: hostCert(t, ca, nil)},
		{name: "principal of another name than the authority's", host: web, text: "@cert-authority web1 " + caLine, key: hostCert(t, ca, only("10.0.0.7")), want: unknown},
		{name: "certificate for another host", host: web, text: "@cert-authority * " + caLine, key: hostCert(t, ca, only("web2")), want: unknown},
		{name: "certificate for nobody", host: web, text: "@cert-authority * " + caLine, key: certForNobody(t, ca), want: unknown},
		{name: "principals have no wildcards", host: web, text: "@cert-authority * " + caLine, key: hostCert(t, ca, only("*")), want: unknown},
		{name: "user certificate", host: web, text: "@cert-authority * " + caLine, key: hostCert(t, ca, func(c *gossh.Certificate) { c.CertType = gossh.UserCert }), want: unknown},
		{name: "expired", host: web, text: "@cert-authority * " + caLine, key: hostCert(t, ca, func(c *gossh.Certificate) { c.ValidBefore = 1000 }), want: unknown},
		{name: "not yet valid", host: web, text: "@cert-authority * " + caLine, key: hostCert(t, ca, func(c *gossh.Certificate) { c.ValidAfter = uint64(time.Now().Add(time.Hour).Unix()) }), want: unknown},
		{name: "critical option", host: web, text: "@cert-authority * " + caLine, key: hostCert(t, ca, func(c *gossh.Certificate) { c.CriticalOptions = map[string]string{"x": ""} }), want: unknown},
		{name: "signature of another text", host: web, text: "@cert-authority * " + caLine, key: func() gossh.PublicKey {
			c := hostCert(t, ca, only("web2"))
			c.ValidPrincipals = []string{"web1"}
			return c
		}(), want: unknown},
		{name: "authority of another host", host: web, text: "@cert-authority web2 " + caLine, key: hostCert(t, ca, nil), want: unknown},
		{name: "authority without the marker", host: web, text: "web1 " + caLine, key: hostCert(t, ca, nil), want: changed},
		{name: "expired, but the key in it is known", host: web, text: "@cert-authority * " + caLine + "\nweb1 " + k1, key: hostCert(t, ca, func(c *gossh.Certificate) { c.ValidBefore = 1000 })},
		{name: "unknown authority, key in it known", host: web, text: "web1 " + k1, key: hostCert(t, ca, nil)},
		{name: "unknown authority, key in it changed", host: web, text: "web1 " + k2, key: hostCert(t, ca, nil), want: changed},
		{name: "authority revoked", host: web, text: "@cert-authority * " + caLine + "\nweb1 " + k1 + "\n@revoked * " + caLine, key: hostCert(t, ca, nil), want: revoked},
		{name: "key in the certificate revoked", host: web, text: "@cert-authority * " + caLine + "\n@revoked web1 " + k1, key: hostCert(t, ca, nil), want: revoked},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tt.host()
			h.Files = []string{filepath.Join(t.TempDir(), "missing"), knownFile(t, tt.text+"\n")}
			key := tt.key
			if key == nil {
				key = plain
			}
			if got := codeOf(check(&h, key)); got != tt.want {
				t.Errorf("code = %q, want %q", got, tt.want)
			}
			if _, err := os.Stat(h.Files[0]); err == nil {
				t.Error("the policy is strict, yet a file was written")
			}
		})
	}
}

func ecdsaKey(t testing.TB) gossh.PublicKey { return sshdtest.NewKey(t, "ecdsa").Public() }

func TestHostKeyErrorsSayWhatToDo(t *testing.T) {
	k1, k2 := signerOf(1).PublicKey(), signerOf(2).PublicKey()
	file := knownFile(t, "# first\nweb1 "+keyLine(k2)+"\n@revoked web2 "+keyLine(k1)+"\n")
	for name, texts := range map[string][]string{
		"web1": {file + ":2", gossh.FingerprintSHA256(k1), gossh.FingerprintSHA256(k2), "ssh-ed25519", "gateway hosts trust web1"},
		"web2": {file + ":3", gossh.FingerprintSHA256(k1)},
		"web3": {"unknown", "ssh-ed25519 " + gossh.FingerprintSHA256(k1), "gateway hosts trust web3"},
	} {
		err := check(&ssh.HostKeys{Name: name, Files: []string{file}}, k1)
		var e *transport.Error
		if !errors.As(err, &e) || !errors.Is(err, transport.ErrHostKey) {
			t.Errorf("%s: error = %v, want a *transport.Error that is ErrHostKey", name, err)
			continue
		}
		for _, text := range texts {
			if !strings.Contains(e.Message+"\n"+e.Hint, text) {
				t.Errorf("%s: %q, hint %q: want %q in it", name, e.Message, e.Hint, text)
			}
		}
	}
}

func TestHostKeyPins(t *testing.T) {
	k1, k2 := signerOf(1).PublicKey(), signerOf(2).PublicKey()
	for _, tt := range []struct {
		name, text string
		pins       []string
		want       string
	}{
		{"fingerprint", "", []string{gossh.FingerprintSHA256(k1)}, ""},
		{"padded fingerprint", "", []string{gossh.FingerprintSHA256(k1) + "="}, ""},
		{"public key", "", []string{keyLine(k1) + " comment"}, ""},
		{"one of two", "", []string{gossh.FingerprintSHA256(k2), gossh.FingerprintSHA256(k1)}, ""},
		{"known, but not pinned", "web1 " + keyLine(k1), []string{gossh.FingerprintSHA256(k2)}, "hostkey.changed"},
		{"pinned, another known", "web1 " + keyLine(k2), []string{gossh.FingerprintSHA256(k1)}, ""},
		{"pinned, yet revoked", "@revoked * " + keyLine(k1), []string{gossh.FingerprintSHA256(k1)}, "hostkey.revoked"},
		{"unreadable pin", "web1 " + keyLine(k1), []string{"MD5:00:11"}, "hostkey.changed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &ssh.HostKeys{Name: "web1", Files: []string{knownFile(t, tt.text)}, Pins: tt.pins, Policy: ssh.AcceptNew}
			if got := codeOf(check(h, k1)); got != tt.want {
				t.Errorf("code = %q, want %q", got, tt.want)
			}
		})
	}
}

// A pin that is a fingerprint does not say of which of the host's keys it is.
func TestPinOfAnyKey(t *testing.T) {
	t.Parallel()
	type start func(testing.TB, sshdtest.Options) *sshdtest.Server
	for name, start := range map[string]start{"openssh": sshdtest.Start, "dropbear": sshdtest.StartDropbear} {
		t.Run(name, func(t *testing.T) {
			s := start(t, sshdtest.Options{HostKeys: []string{"ed25519", "ecdsa", "rsa"}})
			for _, key := range s.HostKeys {
				c := config(s)
				c.HostKeys = &ssh.HostKeys{Name: "web1", Pins: []string{gossh.FingerprintSHA256(key)}}
				dial(t, c)
				// A line that something is revoked has certificates asked for.
				c.HostKeys = &ssh.HostKeys{Name: "web1", Pins: c.HostKeys.Pins, Files: []string{knownFile(t, "@revoked * "+keyLine(signerOf(2).PublicKey()))}}
				dial(t, c)
			}
			c := config(s)
			c.HostKeys = &ssh.HostKeys{Name: "web1", Pins: []string{gossh.FingerprintSHA256(signerOf(2).PublicKey())}}
			err := refused(t, c, "hostkey.changed")
			for _, key := range s.HostKeys {
				if !strings.Contains(err.Message, gossh.FingerprintSHA256(key)) {
					t.Errorf("message = %q, want the key of type %s in it", err.Message, key.Type())
				}
			}
		})
	}
}

// The search for a pinned key ends, and passes over none that is revoked.
func TestPinSearchEnds(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{HostKeys: []string{"ed25519", "ecdsa"}})
	proxy := netsim.Start(t, s.Addr, 0)
	c := behind(proxy, s)
	c.HostKeys = &ssh.HostKeys{Name: "web1", Pins: []string{gossh.FingerprintSHA256(signerOf(2).PublicKey())}}
	refused(t, c, "hostkey.changed")
	if n := proxy.Conns(); n != 3 {
		t.Errorf("%d connections, want one for each key and one for none", n)
	}
	c.HostKeys = &ssh.HostKeys{
		Name: "web1", Pins: []string{gossh.FingerprintSHA256(s.HostKeys[1])},
		Files: []string{knownFile(t, "@revoked * "+keyLine(s.HostKeys[0]))},
	}
	refused(t, c, "hostkey.revoked")
}

func TestAcceptNew(t *testing.T) {
	k1, k2 := signerOf(1).PublicKey(), signerOf(2).PublicKey()
	for _, hash := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "new", "dir", "known_hosts")
		h := &ssh.HostKeys{Name: "Web1", Addr: "10.0.0.7", Port: 2222, Files: []string{file}, Policy: ssh.AcceptNew, HashNew: hash}
		for range 2 {
			must(t, check(h, k1))
		}
		if got := codeOf(check(h, k2)); got != "hostkey.changed" {
			t.Errorf("code for a second key = %q, want hostkey.changed", got)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if want := "web1 " + keyLine(k1) + "\n"; !hash && string(text) != want || hash && (!strings.HasPrefix(string(text), "|1|") || strings.Count(string(text), "\n") != 1) {
			t.Errorf("file = %q, want %q (hashed: %v)", text, want, hash)
		}
		for path, want := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("mode of %s = %v, %v, want %v", path, info.Mode(), err, want)
			}
		}
		strict := &ssh.HostKeys{Name: "web1", Files: []string{file}}
		if err := check(strict, k1); err != nil {
			t.Errorf("strict afterwards: %v", err)
		}
	}
}

// vagrant ssh-config has accept-new, in our words, and /dev/null.
func TestAcceptNewIntoNothing(t *testing.T) {
	h := &ssh.HostKeys{Name: "web1", Files: []string{os.DevNull}, Policy: ssh.AcceptNew}
	for n := range byte(2) {
		if err := check(h, signerOf(n).PublicKey()); err != nil {
			t.Error(err)
		}
	}
}

// What is written elsewhere than to the files read is known the next time.
func TestAcceptNewIntoAnotherFile(t *testing.T) {
	write := filepath.Join(t.TempDir(), "own")
	h := &ssh.HostKeys{Name: "web1", Files: []string{knownFile(t, "")}, Write: write, Policy: ssh.AcceptNew}
	must(t, check(h, signerOf(1).PublicKey()))
	if got := codeOf(check(h, signerOf(2).PublicKey())); got != "hostkey.changed" {
		t.Errorf("code for a second key = %q, want hostkey.changed", got)
	}
}

func TestAcceptNewFailsClosed(t *testing.T) {
	for name, h := range map[string]*ssh.HostKeys{
		// Root may write to anything, so a file stands where a directory should.
		"no directory": {Name: "web1", Files: []string{filepath.Join(knownFile(t, ""), "known_hosts")}},
		"no file":      {Name: "web1"},
		"none of them": {Name: "web1", Files: []string{knownFile(t, "")}, Write: "none"},
		"a pattern":    {Name: "web*", Files: []string{knownFile(t, "")}},
		"two lines":    {Name: "web1\nweb2", Files: []string{knownFile(t, "")}},
	} {
		h.Policy = ssh.AcceptNew
		err := check(h, signerOf(1).PublicKey())
		if codeOf(err) != "hostkey.unknown" || !strings.Contains(err.Error(), "cannot be recorded") {
			t.Errorf("%s: error = %v, want hostkey.unknown, cannot be recorded", name, err)
		}
	}
}

func TestAsk(t *testing.T) {
	key := signerOf(1).PublicKey()
	broken := errors.New("no terminal")
	for _, tt := range []struct {
		name     string
		answer   bool
		err      error
		nobody   bool
		want     string
		recorded bool
	}{
		{name: "yes", answer: true, recorded: true},
		{name: "no", want: "hostkey.unknown"},
		{name: "error", err: broken, want: "hostkey.unknown"},
		{name: "nobody to ask", nobody: true, want: "hostkey.unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := knownFile(t, "")
			h := &ssh.HostKeys{Name: "web1", Addr: "10.0.0.7", Files: []string{file}, Policy: ssh.Ask}
			if !tt.nobody {
				h.Ask = func(_ context.Context, q ssh.HostKeyQuestion) (bool, error) {
					want := ssh.HostKeyQuestion{Host: "web1", Addr: "10.0.0.7:22", Type: "ssh-ed25519", Fingerprint: gossh.FingerprintSHA256(key)}
					if q != want {
						t.Errorf("question = %+v, want %+v", q, want)
					}
					return tt.answer, tt.err
				}
			}
			err := check(h, key)
			if got := codeOf(err); got != tt.want {
				t.Errorf("code = %q, want %q", got, tt.want)
			}
			if tt.err != nil && !errors.Is(err, tt.err) {
				t.Errorf("error = %v, want %v wrapped", err, tt.err)
			}
			text, _ := os.ReadFile(file)
			if recorded := len(text) > 0; recorded != tt.recorded {
				t.Errorf("recorded = %v, want %v", recorded, tt.recorded)
			}
		})
	}
}

// A person's yes holds even where nothing can be written.
func TestAskUnwritable(t *testing.T) {
	var warned []string
	h := &ssh.HostKeys{
		Name: "web1", Files: []string{filepath.Join(knownFile(t, ""), "known_hosts")}, Policy: ssh.Ask,
		Ask:  func(context.Context, ssh.HostKeyQuestion) (bool, error) { return true, nil },
		Warn: func(msg string) { warned = append(warned, msg) },
	}
	if err := check(h, signerOf(1).PublicKey()); err != nil {
		t.Error(err)
	}
	if !slices.ContainsFunc(warned, func(s string) bool { return strings.Contains(s, "not recorded") }) {
		t.Errorf("warnings = %q, want one that says not recorded", warned)
	}
}

func TestTrust(t *testing.T) {
	k1, k2 := signerOf(1).PublicKey(), signerOf(2).PublicKey()
	file := knownFile(t, "web2 "+keyLine(k2)) // no newline at the end
	h := &ssh.HostKeys{Name: "10.0.0.7", Port: 2222, Files: []string{file}}
	for range 2 {
		must(t, h.Trust(k1))
	}
	must(t, h.Trust(hostCert(t, signerOf(7), nil))) // of key 1
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "web2 " + keyLine(k2) + "\n[10.0.0.7]:2222 " + keyLine(k1) + "\n"; string(text) != want {
		t.Errorf("file = %q, want %q", text, want)
	}
	h.Files = []string{knownFile(t, "@revoked * "+keyLine(k1))}
	if got := codeOf(h.Trust(k1)); got != "hostkey.revoked" {
		t.Errorf("code for a revoked key = %q, want hostkey.revoked", got)
	}
}

func TestJudge(t *testing.T) {
	k1 := signerOf(1).PublicKey()
	l1, l2 := keyLine(k1), keyLine(signerOf(2).PublicKey())
	for _, tt := range []struct{ name, text, pin, code, conflict string }{
		{name: "known", text: "web1 " + l1},
		{name: "unknown", text: "web2 " + l2, code: "hostkey.unknown"},
		{name: "another", text: "#\nweb1 " + l2, code: "hostkey.changed", conflict: "differs from FILE:2"},
		{name: "of another type", text: "web1 " + keyLine(ecdsaKey(t)), code: "hostkey.changed", conflict: "another type than FILE:1"},
		{name: "not pinned", text: "web1 " + l1, pin: l2, code: "hostkey.changed", conflict: "not pinned"},
		{name: "revoked", text: "@revoked * " + l1, code: "hostkey.revoked", conflict: "revoked by FILE:1"},
	} {
		h := &ssh.HostKeys{Name: "web1", Files: []string{knownFile(t, tt.text)}, Policy: ssh.AcceptNew}
		if tt.pin != "" {
			h.Pins = []string{tt.pin}
		}
		code, conflict := h.Judge(k1)
		if want := strings.Replace(tt.conflict, "FILE", h.Files[0], 1); code != tt.code || conflict != want {
			t.Errorf("%s: Judge = %q, %q, want %q, %q", tt.name, code, conflict, tt.code, want)
		}
		if trusted := codeOf(h.Trust(k1)); tt.pin != "" && trusted != tt.code {
			t.Errorf("%s: Trust = %q, want %q", tt.name, trusted, tt.code)
		}
	}
}

// What RevokedHostKeys lists is refused, and all else while it cannot be told.
func TestRevokedHostKeys(t *testing.T) {
	k1, ca := signerOf(1).PublicKey(), signerOf(7)
	l1, l2 := keyLine(k1), keyLine(signerOf(2).PublicKey())
	for _, tt := range []struct {
		name, revoked string
		key           gossh.PublicKey
		want, says    string
	}{
		{"listed", "# stolen\n\n" + l2 + "\n" + l1 + " web1\n", k1, "hostkey.revoked", ":4"},
		{"not listed", l2 + "\n", k1, "", ""},
		{"a bad line before", "ssh-future AAAA\n" + l1, k1, "hostkey.revoked", ":2"},
		{"a bad line and nothing else", "# " + l1 + "\n\nssh-future AAAA\n", k1, "hostkey.revoked", ":3: "},
		{"a bad line behind others", l2 + "\n" + l1[:40] + "\n", k1, "hostkey.revoked", ":2: "},
		{"a fingerprint", "hash: " + gossh.FingerprintSHA256(k1), k1, "hostkey.revoked", ":1: "},
		{"a certificate", keyLine(hostCert(t, ca, nil)), k1, "hostkey.revoked", ":1"},
		{"another certificate", keyLine(hostCert(t, ca, func(c *gossh.Certificate) { c.Key = signerOf(2).PublicKey() })), k1, "", ""},
		{"key of a certificate", l1, hostCert(t, ca, nil), "hostkey.revoked", ":1"},
		{"authority", keyLine(ca.PublicKey()), hostCert(t, ca, nil), "hostkey.revoked", ":1"},
		{"binary", "SSHKRL\n\x00\x00\x00\x00\x01", k1, "hostkey.revoked", "ssh-keygen -k"},
		{"missing", "", k1, "hostkey.revoked", "no such file"},
	} {
		file := filepath.Join(t.TempDir(), "none")
		if tt.revoked != "" {
			file = knownFile(t, tt.revoked)
		}
		h := &ssh.HostKeys{
			Name: "web1", Files: []string{knownFile(t, "web1 "+l1+"\n@cert-authority * "+keyLine(ca.PublicKey()))},
			Pins: []string{l1}, Revoked: file, Policy: ssh.AcceptNew,
		}
		err := check(h, tt.key)
		if got := codeOf(err); got != tt.want || err != nil && (!strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: error = %v, want %q with %s and %q", tt.name, err, tt.want, file, tt.says)
		}
		if got := codeOf(h.Trust(tt.key)); got != tt.want && tt.key == k1 {
			t.Errorf("%s: Trust = %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The files are read before the handshake. What is recorded while it lasts counts, too.
func TestRecordedDuringTheHandshake(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	c := config(s)
	c.HostKeys.Files = []string{knownFile(t, "")}
	line := mustRead(t, s.KnownHosts)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c.Port = l.Addr().(*net.TCPAddr).Port
	go func() {
		client, err := l.Accept()
		if err != nil {
			return // the test says so
		}
		defer client.Close()
		begun := make([]byte, 1)
		_, err = io.ReadFull(client, begun)
		server, dialed := net.Dial("tcp", s.Addr)
		if err := errors.Join(err, dialed, os.WriteFile(c.HostKeys.Files[0], line, 0o600)); err != nil {
			t.Error(err)
			return
		}
		defer server.Close()
		go io.Copy(server, io.MultiReader(bytes.NewReader(begun), client))
		_, _ = io.Copy(client, server) // ends with the connection
	}()
	dial(t, c)
}

// Of two keys that come at once for one host, one is recorded and the other
// one refused; every line is whole.
func TestRecordConcurrently(t *testing.T) {
	file := knownFile(t, "# no newline")
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[string]int{}
	for i := range 40 {
		wg.Go(func() {
			h := &ssh.HostKeys{Name: fmt.Sprintf("web%d", i/4), Files: []string{file}, Policy: ssh.AcceptNew}
			code := codeOf(check(h, signerOf(byte(i%2)).PublicKey()))
			mu.Lock()
			codes[code]++
			mu.Unlock()
		})
	}
	wg.Wait()
	if codes[""] != 20 || codes["hostkey.changed"] != 20 {
		t.Errorf("codes = %v, want 20 accepted and 20 changed", codes)
	}
	text, _ := os.ReadFile(file)
	if got := strings.Count(string(text), "\n"); got != 11 {
		t.Errorf("%d lines, want a comment and one for each of 10 hosts:\n%s", got, text)
	}
}

func TestWarnOnce(t *testing.T) {
	var warned []string
	file := knownFile(t, "web1 ssh-future AAAA\n@odd web1 x y\n")
	h := &ssh.HostKeys{Name: "web1", Files: []string{file, t.TempDir()}, Warn: func(msg string) { warned = append(warned, msg) }}
	for range 3 {
		h.Algorithms()
		check(h, signerOf(1).PublicKey())
	}
	if len(warned) != 3 || !strings.HasPrefix(warned[0], file+":1: ") || !strings.HasPrefix(warned[1], file+":2: ") {
		t.Errorf("warnings = %q, want lines 1 and 2 of %s and the directory, once each", warned, file)
	}
}

func TestAlgorithms(t *testing.T) {
	ed, ec, rsa := keyLine(signerOf(1).PublicKey()), keyLine(ecdsaKey(t)), keyLine(sshdtest.NewKey(t, "rsa").Public())
	fingerprint := gossh.FingerprintSHA256(signerOf(1).PublicKey())
	const edA, ecA, rsaA = "ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512 rsa-sha2-256"
	const edCert, rsaCert = "ssh-ed25519-cert-v01@openssh.com", "rsa-sha2-512-cert-v01@openssh.com rsa-sha2-256-cert-v01@openssh.com"
	for _, tt := range []struct {
		name, text string
		pins       []string
		want       string // the first ones
	}{
		{"nothing known", "", nil, edA + " " + ecA},
		{"rsa", "web1 " + rsa, nil, rsaA + " " + edA},
		{"two in the fixed order", "web1 " + rsa + "\nweb1 " + ec, nil, ecA + " " + rsaA + " " + edA},
		{"name before address", "[10.0.0.7]:2222 " + ed + "\nweb1 " + rsa, nil, rsaA + " " + edA},
		{"plain address does not meddle", "10.0.0.7 " + ed + "\nweb1 " + rsa + "\nweb1 " + ec, nil, ecA + " " + rsaA + " " + edA},
		{"plain address alone", "10.0.0.7 " + rsa, nil, rsaA + " " + edA},
		{"other host", "web2 " + rsa, nil, edA},
		{"revoked is not known", "@revoked web1 " + rsa, nil, edCert + " ecdsa-sha2-nistp256-cert-v01@openssh.com"},
		{"something revoked, rsa known", "@revoked * " + ed + "\nweb1 " + rsa, nil, rsaCert + " " + rsaA + " " + edCert},
		{"something revoked, ed25519 known", "@revoked * " + ec + "\nweb1 " + ed, nil, edCert + " ecdsa-sha2-nistp256-cert-v01@openssh.com"},
		{"something revoked, rsa pinned", "@revoked * " + ed, []string{rsa}, rsaCert + " " + rsaA + " " + edCert},
		{"revoked for another host", "@revoked web2 " + rsa, nil, edA},
		{"authority", "@cert-authority * " + ec + "\nweb1 " + rsa, nil, "ssh-ed25519-cert-v01@openssh.com"},
		{"pinned key", "web1 " + ec, []string{rsa}, rsaA + " " + edA},
		{"pinned fingerprint of a known key", "web1 " + rsa + "\nweb1 " + ed, []string{fingerprint}, edA + " " + ecA},
	} {
		h := &ssh.HostKeys{Name: "web1", Addr: "10.0.0.7", Port: 2222, Files: []string{knownFile(t, tt.text)}, Pins: tt.pins}
		got := h.Algorithms()
		if !strings.HasPrefix(strings.Join(got, " ")+" ", tt.want+" ") {
			t.Errorf("%s: algorithms = %q, want %q first", tt.name, got, tt.want)
		}
		if slices.Contains(got, "ssh-rsa") || len(slices.Compact(slices.Sorted(slices.Values(got)))) != len(got) {
			t.Errorf("%s: algorithms = %q, want no ssh-rsa, none twice", tt.name, got)
		}
		if hasCert := strings.Contains(strings.Join(got, " "), "-cert-"); hasCert != strings.Contains(tt.want, "-cert-") {
			t.Errorf("%s: algorithms = %q: certificates only with an authority, or where something is revoked", tt.name, got)
		}
	}
}
