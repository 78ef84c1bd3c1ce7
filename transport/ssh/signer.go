package ssh

import (
	"fmt"
	"io"
	"slices"

	gossh "golang.org/x/crypto/ssh"
)

// A signer signs for a key, or a certificate of it, that may have to be unlocked first.
// With RSA it signs over SHA-2 alone (RFC 8332): OpenSSH has refused SHA-1 since 8.8.
type signer struct {
	pub  gossh.PublicKey
	load func() (gossh.Signer, error)
}

var _ gossh.MultiAlgorithmSigner = (*signer)(nil)

// PublicKey implements [gossh.Signer].
func (s *signer) PublicKey() gossh.PublicKey { return s.pub }

// Algorithms implements [gossh.MultiAlgorithmSigner].
func (s *signer) Algorithms() []string {
	kind := plainKey(s.pub).Type()
	if kind == gossh.KeyAlgoRSA {
		return []string{gossh.KeyAlgoRSASHA512, gossh.KeyAlgoRSASHA256}
	}
	return []string{kind}
}

// Sign implements [gossh.Signer].
func (s *signer) Sign(rand io.Reader, data []byte) (*gossh.Signature, error) {
	return s.SignWithAlgorithm(rand, data, s.Algorithms()[0])
}

// SignWithAlgorithm implements [gossh.AlgorithmSigner].
func (s *signer) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*gossh.Signature, error) {
	if !slices.Contains(s.Algorithms(), algorithm) {
		return nil, fmt.Errorf("ssh: no signature with %s", algorithm)
	}
	key, err := s.load()
	if err != nil {
		return nil, err
	}
	algorithmic, ok := key.(gossh.AlgorithmSigner)
	if !ok {
		return key.Sign(rand, data)
	}
	return algorithmic.SignWithAlgorithm(rand, data, algorithm)
}

// A shown signer tells when its key is shown. x/crypto does not do that where the
// server takes no signature that the signer makes, as one of RSA with SHA-2.
type shown struct {
	*signer
	tell func()
}

// PublicKey implements [gossh.Signer].
func (s shown) PublicKey() gossh.PublicKey { return shownKey{s.pub, s.tell} }

type shownKey struct {
	gossh.PublicKey
	tell func()
}

// Marshal implements [gossh.PublicKey]. What is shown is marshalled first.
func (k shownKey) Marshal() []byte {
	k.tell()
	return k.PublicKey.Marshal()
}
