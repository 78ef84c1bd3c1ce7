package ssh

import (
	"context"
	"fmt"
	"strings"

	gossh "golang.org/x/crypto/ssh"

	"gateway/transport"
)

// A keyring holds what can be shown to one machine under publickey, in this
// order: each identity, its certificates before the key itself, and then what
// else the agent has.
type keyring struct {
	ctx    context.Context
	config *Config
	clock  *clock

	agent      *agentClient
	agentless  string // why there is no agent; empty if there is one
	candidates []candidate
	seen       map[string]bool // public keys among the candidates
	certs      []*gossh.Certificate
	searched   []string
	problems   []*transport.Error
	answered   bool // a person has answered a question
}

// A candidate is a key whose turn may come. open may need a passphrase.
type candidate struct {
	label string
	open  func() (*signer, error)
}

// next returns the next key that can sign, or nil.
func (k *keyring) next() (*signer, string) {
	for len(k.candidates) > 0 {
		c := k.candidates[0]
		k.candidates = k.candidates[1:]
		if signer, err := c.open(); err == nil { // open has noted the problem
			return signer, c.label
		}
	}
	return nil, ""
}

// looked names the places without a key.
func (k *keyring) looked() string {
	if len(k.searched) == 0 {
		return "no identity file and no agent"
	}
	return strings.Join(k.searched, ", ")
}

func (k *keyring) close() {
	if k.agent != nil {
		k.agent.close()
	}
}

// gather finds the candidates.
func (k *keyring) gather() {
	k.seen = map[string]bool{}
	k.readCertificates()
	k.openAgent()
	for _, id := range k.config.Identities {
		k.identity(id)
	}
	if k.agent == nil || k.config.IdentitiesOnly {
		return
	}
	for _, key := range k.agent.keys {
		k.add(key.signer, key.label)
	}
}

func (k *keyring) openAgent() {
	if k.config.Agent == "" {
		k.agentless = "there is no agent"
		return
	}
	where := "agent " + k.config.Agent
	agent, err := k.patientAgent()
	if exhausted(err) {
		k.unread(where, err)
	}
	switch {
	case err != nil:
		where += fmt.Sprintf(" (%v)", reason(err))
		k.agentless = "no agent answers at " + k.config.Agent + ": " + reason(err)
	case len(agent.keys) == 0:
		where += " (no keys)"
	}
	k.agent = agent
	k.searched = append(k.searched, where)
}

// add adds a key after those certificates for it that were named.
func (k *keyring) add(key *signer, label string) {
	for _, cert := range k.certs {
		k.addCert(cert, key, "certificate "+cert.KeyId)
	}
	k.offer(key, label)
}

// offer adds a candidate, unless it is one already or its time is not now.
func (k *keyring) offer(key *signer, label string) {
	if cert, ok := key.pub.(*gossh.Certificate); ok {
		if k.expired(cert, label) {
			return
		}
		label += k.notFor(cert)
	}
	blob := string(key.pub.Marshal())
	if k.seen[blob] {
		return
	}
	k.seen[blob] = true
	k.candidates = append(k.candidates, candidate{
		label: fmt.Sprintf("%s %s (%s)", key.pub.Type(), fingerprint(key.pub), label),
		open:  func() (*signer, error) { return key, nil },
	})
}

// fingerprint is that of the key, also for a certificate: ssh-add -l and
// ssh-keygen -l show the same.
func fingerprint(key gossh.PublicKey) string { return gossh.FingerprintSHA256(plainKey(key)) }

// worst returns the problem with a key that is to be told; nil if there is none.
func (k *keyring) worst() *transport.Error {
	for _, code := range []string{codeLimit, codeSecret, codePassphrase, codeCertExpired, codeKeyUnreadable} {
		for _, problem := range k.problems {
			if problem.Code == code {
				return problem
			}
		}
	}
	return nil
}

// problem is a key that can't be used.
func (k *keyring) problem(code string, cause error, hint, format string, args ...any) error {
	err := k.config.failure(code, cause, hint, format, args...)
	k.problems = append(k.problems, err)
	return err
}

// ask puts a question to a person, while the clock stands still.
func (k *keyring) ask(q Question) (string, error) {
	q.Host, q.User = k.config.Name, k.config.User
	defer k.clock.pause()()
	answer, err := k.config.Ask(k.ctx, q)
	if err == nil {
		err = k.ctx.Err()
	}
	k.answered = k.answered || err == nil
	return answer, err
}
