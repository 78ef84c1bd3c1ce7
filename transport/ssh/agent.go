package ssh

import (
	"context"
	"io"
	"net"
	"strings"
	"time"

	gossh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// agentPatience is how long an agent may take to list its keys. One that hangs
// must not keep the identity files from being tried.
const agentPatience = 2 * time.Second

// signPatience is how long an agent may take for a signature: it may ask for a
// confirmation, or wait for a touch of a security key.
const signPatience = time.Minute

// An agentClient is a connection to an SSH agent and the keys that it held
// when it was opened.
type agentClient struct {
	conn net.Conn
	stop func() bool
	keys []agentKey
}

// An agentKey is one of the agent's keys.
type agentKey struct {
	pub    gossh.PublicKey // a certificate as such
	label  string
	signer func(*keyring) *signer
}

// dialAgent asks an agent for its keys. Everything ends with ctx.
func dialAgent(ctx context.Context, socket string, patience time.Duration) (*agentClient, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	a := &agentClient{conn: conn, stop: context.AfterFunc(ctx, func() { conn.Close() })}
	_ = conn.SetDeadline(time.Now().Add(patience)) // a unix socket has deadlines
	remote := agent.NewClient(conn)
	signers, err := remote.Signers()
	if err != nil {
		a.close()
		return nil, err
	}
	for _, s := range signers {
		// The agent's own type hides that a key is a certificate.
		pub, err := gossh.ParsePublicKey(s.PublicKey().Marshal())
		if err != nil {
			continue // a kind that x/crypto does not know; it could not be shown
		}
		label := "agent"
		if key, ok := s.PublicKey().(*agent.Key); ok && key.Comment != "" {
			label += ": " + key.Comment
		}
		a.keys = append(a.keys, agentKey{pub: pub, label: label, signer: func(k *keyring) *signer {
			load := func() (gossh.Signer, error) {
				return &agentSigner{s.(gossh.AlgorithmSigner), conn, k, fingerprint(pub) + " (" + label + ")"}, nil
			}
			return &signer{pub: pub, load: load}
		}})
	}
	return a, nil
}

// find returns the agent's key with this public half, or nil.
func (a *agentClient) find(pub gossh.PublicKey) *agentKey {
	if a == nil || pub == nil {
		return nil
	}
	for i := range a.keys {
		if sameKey(a.keys[i].pub, pub) {
			return &a.keys[i]
		}
	}
	return nil
}

func (a *agentClient) close() {
	a.stop()
	a.conn.Close()
}

// An agentSigner lets the agent sign, while the hop's clock stands still. The
// machine wanted the key by then: that the agent did not sign is why it is no use.
type agentSigner struct {
	gossh.AlgorithmSigner
	conn net.Conn
	keys *keyring
	name string // what messages call the key
}

// SignWithAlgorithm implements [gossh.AlgorithmSigner].
func (s *agentSigner) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*gossh.Signature, error) {
	defer s.keys.clock.pause()()
	_ = s.conn.SetDeadline(time.Now().Add(signPatience)) // a unix socket has deadlines
	signature, err := s.AlgorithmSigner.SignWithAlgorithm(rand, data, algorithm)
	if err != nil && s.keys.ctx.Err() == nil {
		return nil, s.keys.problem(codeKeyUnreadable, err, "the agent may be locked, or want a confirmation that nobody gave: look at it with ssh-add -l, or set identity for this host",
			"key %s: the agent did not sign: %s", s.name, strings.TrimPrefix(reason(err), "agent: "))
	}
	return signature, err
}
