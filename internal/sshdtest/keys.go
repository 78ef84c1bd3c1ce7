package sshdtest

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// A Key is a key pair in a file, as a user, a host or a CA has it.
type Key struct {
	File    string // the private key, unencrypted; File + ".pub" is the public one
	Signer  gossh.Signer
	Private crypto.Signer
	Cert    *gossh.Certificate // of the last UserCert; an agent offers it too
}

// NewKey makes a key in a temporary directory. The type is "ed25519", "ecdsa"
// or "rsa". RSA keys are made once a process, as that takes long: all of
// them are the same key.
func NewKey(t testing.TB, typ string) *Key {
	t.Helper()
	return newKeyIn(t, t.TempDir(), "id_"+typ, typ)
}

// rsaKey is shared by all users of an RSA key in this process.
var rsaKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newKeyIn(t testing.TB, dir, name, typ string) *Key {
	t.Helper()
	k := &Key{File: filepath.Join(dir, name)}
	var err error
	switch typ {
	case "ed25519":
		_, k.Private, err = ed25519.GenerateKey(rand.Reader)
	case "ecdsa":
		k.Private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa":
		k.Private, err = rsaKey()
	default:
		t.Fatalf("no key type %q", typ)
	}
	if err != nil {
		t.Fatal(err)
	}
	if k.Signer, err = gossh.NewSignerFromSigner(k.Private); err != nil {
		t.Fatal(err)
	}
	block, err := gossh.MarshalPrivateKey(k.Private, "test")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, k.File, string(pem.EncodeToMemory(block)))
	writeFile(t, k.File+".pub", k.Line()+"\n")
	return k
}

// Public returns the public key.
func (k *Key) Public() gossh.PublicKey { return k.Signer.PublicKey() }

// Line returns the public key as it stands in authorized_keys, without a newline.
func (k *Key) Line() string {
	return strings.TrimSuffix(string(gossh.MarshalAuthorizedKey(k.Public())), "\n")
}

// Encrypted writes the private key under a passphrase to a new file. To unlock
// it takes little of the time that is usual: see [Key.EncryptedWith].
func (k *Key) Encrypted(t testing.TB, passphrase string) string {
	t.Helper()
	return k.EncryptedWith(t, passphrase, 1)
}

// EncryptedWith has a number of rounds of the key's derivation. 16 are usual,
// and with the race detector take a second.
func (k *Key) EncryptedWith(t testing.TB, passphrase string, rounds int) string {
	t.Helper()
	text, err := os.ReadFile(k.File)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), filepath.Base(k.File))
	writeFile(t, file, string(text))
	if out, err := exec.Command("ssh-keygen", "-q", "-p", "-a", strconv.Itoa(rounds), "-N", passphrase, "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	return file
}

// UserCert writes a certificate for the key, signed by ca, to File +
// "-cert.pub" and returns that path. It holds for an hour, for principal; edit
// may be nil, or change the certificate before it is signed.
func (k *Key) UserCert(t testing.TB, ca *Key, principal string, edit func(*gossh.Certificate)) string {
	t.Helper()
	return k.cert(t, ca, gossh.UserCert, principal, edit)
}

func (k *Key) cert(t testing.TB, ca *Key, typ uint32, principal string, edit func(*gossh.Certificate)) string {
	t.Helper()
	now := time.Now()
	k.Cert = &gossh.Certificate{
		Key:             k.Public(),
		CertType:        typ,
		KeyId:           "test",
		ValidPrincipals: []string{principal},
		ValidAfter:      uint64(now.Add(-time.Minute).Unix()),
		ValidBefore:     uint64(now.Add(time.Hour).Unix()),
	}
	if typ == gossh.UserCert {
		k.Cert.Extensions = map[string]string{"permit-pty": "", "permit-port-forwarding": "", "permit-agent-forwarding": ""}
	}
	if edit != nil {
		edit(k.Cert)
	}
	if err := k.Cert.SignCert(rand.Reader, ca.Signer); err != nil {
		t.Fatal(err)
	}
	file := k.File + "-cert.pub"
	writeFile(t, file, string(gossh.MarshalAuthorizedKey(k.Cert)))
	return file
}

// Agent serves the keys, and their certificates, as an ssh-agent in this
// process until the test ends. It returns the socket's path.
func Agent(t testing.TB, keys ...*Key) string {
	t.Helper()
	return ServeAgent(t, newRing(t, keys))
}

// RefusingAgent is [Agent], but it signs nothing, as one whose owner confirms
// nothing.
func RefusingAgent(t testing.TB, keys ...*Key) string {
	t.Helper()
	return ServeAgent(t, refusing{newRing(t, keys)})
}

type refusing struct{ agent.Agent }

func (refusing) Sign(gossh.PublicKey, []byte) (*gossh.Signature, error) {
	return nil, errors.New("refused")
}

func newRing(t testing.TB, keys []*Key) agent.Agent {
	t.Helper()
	ring := agent.NewKeyring()
	for _, k := range keys {
		if err := ring.Add(agent.AddedKey{PrivateKey: k.Private}); err != nil {
			t.Fatal(err)
		}
		if k.Cert == nil {
			continue
		}
		if err := ring.Add(agent.AddedKey{PrivateKey: k.Private, Certificate: k.Cert}); err != nil {
			t.Fatal(err)
		}
	}
	return ring
}

// ServeAgent is [Agent] for an agent of the test's own.
func ServeAgent(t testing.TB, a agent.Agent) string {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(ShortDir(t), "s"))
	if err != nil {
		t.Fatal(err)
	}
	over, end := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(over, func() { conn.Close() })
			serving.Go(func() { agent.ServeAgent(a, conn); conn.Close() })
		}
	})
	t.Cleanup(func() {
		l.Close()
		end()
		serving.Wait()
	})
	return l.Addr().String()
}
