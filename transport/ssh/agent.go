package ssh

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
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

// signing knows when this process had an agent sign. One that waits for a person may
// hear nobody else meanwhile, as ssh-agent does for a confirmation (ssh-add -c) or a
// touch: that it is silent then does not mean that it hangs.
var signing = signatures{underWay: map[string]int{}, ended: map[string]time.Time{}}

type signatures struct {
	mu       sync.Mutex // guards what follows, each by the agent's socket
	underWay map[string]int
	ended    map[string]time.Time // when the last one did
}

// begin notes a signature until the function that it returns is called.
func (s *signatures) begin(socket string) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay[socket]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.underWay[socket]--
		s.ended[socket] = time.Now()
	}
}

// since reports whether a signature was under way since then.
func (s *signatures) since(socket string, then time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.underWay[socket] > 0 || s.ended[socket].After(then)
}

// An agentClient is a connection to an SSH agent and the keys that it held
// when it was opened.
type agentClient struct {
	conn net.Conn
	stop func() bool
	keys []agentKey
}

// An agentKey is one of the agent's keys, which may be a certificate.
type agentKey struct {
	*signer
	label string
}

// patientAgent asks an agent for its keys, and again where a signature for another
// machine has kept it from answering, for as long as that takes.
func (k *keyring) patientAgent() (*agentClient, error) {
	patience := min(agentPatience, k.config.ConnectTimeout/4)
	begun := time.Now()
	a, err := k.dialAgent(patience)
	for err != nil && time.Since(begun) >= patience && signing.since(k.config.Agent, begun) {
		begun = time.Now()
		resume := k.clock.pause()
		a, err = k.dialAgent(patience)
		resume()
	}
	return a, err
}

// dialAgent asks an agent for its keys. Everything ends with the keyring's context.
func (k *keyring) dialAgent(patience time.Duration) (*agentClient, error) {
	conn, err := (&net.Dialer{}).DialContext(k.ctx, "unix", k.config.Agent)
	if err != nil {
		return nil, err
	}
	a := &agentClient{conn: conn, stop: context.AfterFunc(k.ctx, func() { conn.Close() })}
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
		signs := &agentSigner{s.(gossh.AlgorithmSigner), conn, k, fingerprint(pub) + " (" + label + ")"}
		a.keys = append(a.keys, agentKey{&signer{pub: pub, load: func() (gossh.Signer, error) { return signs, nil }}, label})
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
	defer signing.begin(s.keys.config.Agent)()
	_ = s.conn.SetDeadline(time.Now().Add(signPatience)) // a unix socket has deadlines
	signature, err := s.AlgorithmSigner.SignWithAlgorithm(rand, data, algorithm)
	if err != nil && s.keys.ctx.Err() == nil {
		return nil, s.keys.problem(codeKeyUnreadable, err, "the agent may be locked, or want a confirmation that nobody gave: look at it with ssh-add -l, or set identity for this host",
			"key %s: the agent did not sign: %s", s.name, strings.TrimPrefix(reason(err), "agent: "))
	}
	return signature, err
}
