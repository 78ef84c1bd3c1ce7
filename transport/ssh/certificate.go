package ssh

import (
	"errors"
	"slices"
	"time"

	gossh "golang.org/x/crypto/ssh"
)

// readCertificates reads those that were named.
func (k *keyring) readCertificates() {
	for _, path := range k.config.Certificates {
		if cert, err := k.readCertificate(path); err == nil {
			k.certs = append(k.certs, cert)
		} else {
			k.badCertificate(path, err)
		}
	}
}

func (k *keyring) badCertificate(path string, err error) {
	if exhausted(err) {
		k.unread("certificate "+path, err)
		return
	}
	k.problem(codeKeyUnreadable, err, "check certificate, or what stands beside the key", "certificate %s: %s", path, reason(err))
}

// addCert adds a certificate if it is for the key.
func (k *keyring) addCert(cert *gossh.Certificate, key *signer, label string) {
	if sameKey(cert.Key, key.pub) {
		k.offer(&signer{pub: cert, load: key.load}, label)
	}
}

// notFor says of a certificate what may be why a machine refuses it: it is not for the
// account, though sshd may have a list of whom else the account takes
// (AuthorizedPrincipalsFile).
func (k *keyring) notFor(cert *gossh.Certificate) string {
	switch principals := cert.ValidPrincipals; {
	case cert.CertType != gossh.UserCert:
		return ", no certificate of a user"
	case len(principals) == 0:
		return ", for no account"
	case !slices.Contains(principals, k.config.User):
		return ", for " + list(principals, " or ")
	}
	return ""
}

// expired notes a certificate whose time is not now. It is not shown: the
// server would count it as one of few attempts.
func (k *keyring) expired(cert *gossh.Certificate, label string) bool {
	now := time.Now()
	stamp := func(t uint64) string { return time.Unix(int64(t), 0).UTC().Format(time.RFC3339) }
	switch {
	case cert.ValidBefore != gossh.CertTimeInfinity && uint64(now.Unix()) >= cert.ValidBefore:
		k.problem(codeCertExpired, nil, "get a new certificate", "%s expired at %s", label, stamp(cert.ValidBefore))
	case uint64(now.Unix()) < cert.ValidAfter:
		k.problem(codeCertExpired, nil, "check this machine's clock", "%s is not valid before %s", label, stamp(cert.ValidAfter))
	default:
		return false
	}
	return true
}

func (k *keyring) readCertificate(path string) (*gossh.Certificate, error) {
	key, err := readPublic(k.ctx, path)
	if err != nil {
		return nil, err
	}
	cert, ok := key.(*gossh.Certificate)
	if !ok {
		return nil, errors.New("a plain public key, no certificate")
	}
	return cert, nil
}
