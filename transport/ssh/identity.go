package ssh

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	gossh "golang.org/x/crypto/ssh"

	"gateway/internal/regular"
)

// maxKey is more than any key's file has.
const maxKey = 1 << 20

// identity adds the candidates of one configured key.
func (k *keyring) identity(id Identity) {
	k.searched = append(k.searched, id.name())
	data, err := id.PEM, error(nil)
	if data == nil {
		data, err = regular.Read(k.ctx, id.Path, maxKey)
	}
	if errors.Is(err, fs.ErrNotExist) && k.addHeld(id, id.public()) {
		return
	}
	if err != nil {
		k.unusable(id, err, "check identity and the file's owner and mode")
		return
	}
	k.checkMode(id)
	k.parsed(id, data)
}

// checkMode tells about a private key that others can read. OpenSSH refuses
// such a key; in a CI job the file often can't be made otherwise.
func (k *keyring) checkMode(id Identity) {
	if id.Path == "" {
		return
	}
	info, err := os.Stat(id.Path)
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 && !strings.HasSuffix(id.Path, ".pub") {
		k.config.warn(fmt.Sprintf("ssh: key %s can be read by others (mode %04o): chmod 600", id.name(), info.Mode().Perm()))
	}
}

// parsed adds the candidates that a key file holds.
func (k *keyring) parsed(id Identity, data []byte) {
	if block, rest := pem.Decode(data); block != nil && block.Type == "EC PARAMETERS" { // openssl ecparam -genkey puts them first
		data = rest
	}
	private, err := gossh.ParsePrivateKey(data)
	if err == nil {
		k.addWithCerts(id, &signer{pub: private.PublicKey(), load: func() (gossh.Signer, error) { return private, nil }}, id.name())
		return
	}
	pub := id.public()
	if locked, ok := errors.AsType[*gossh.PassphraseMissingError](err); ok {
		if locked.PublicKey != nil { // the format of OpenSSH has it in clear text
			pub = locked.PublicKey
		}
		if !k.addHeld(id, pub) {
			k.addLocked(id, data, pub)
		}
		return
	}
	// A public key stands for the private one that an agent or a security
	// device holds; x/crypto can't read the files of the latter.
	public, _, _, _, noPublic := gossh.ParseAuthorizedKey(data)
	if noPublic == nil {
		pub = public
	}
	if k.addHeld(id, pub) {
		return
	}
	hint := "give a private key in OpenSSH or PEM format; a key on a security device works through the agent"
	switch {
	case noPublic == nil:
		err = errors.New("a public key, and " + cmp.Or(k.agentless, "the agent does not hold the private one"))
		hint = "add the private key to an agent with ssh-add, or name its own file"
	case bytes.Contains(data, []byte("BEGIN ENCRYPTED PRIVATE KEY")): // x/crypto can't read it
		err = errors.New("PKCS #8 with a passphrase is not understood")
		hint = "bring it into OpenSSH's format with ssh-keygen -p, or add it to an agent with ssh-add"
	}
	k.unusable(id, err, hint)
}

// addHeld adds the key that the agent holds to this public half, and reports whether there
// is one.
func (k *keyring) addHeld(id Identity, pub gossh.PublicKey) bool {
	key := k.agent.find(pub)
	if key == nil {
		return false
	}
	k.addWithCerts(id, key.signer, id.name()+" in the agent")
	return true
}

// unusable notes a key file that is none. One that nobody configured is no
// problem: such as id_ed25519_sk, which without its agent is of no use here.
func (k *keyring) unusable(id Identity, err error, hint string) {
	why := strings.TrimPrefix(reason(err), "ssh: ")
	if errors.Is(err, fs.ErrNotExist) {
		why = "no such file"
	}
	if exhausted(err) {
		k.unread("key "+id.name(), err)
		return
	}
	if id.Optional {
		k.searched[len(k.searched)-1] += " (" + why + ")"
		return
	}
	k.problem(codeKeyUnreadable, err, hint, "key %s: %s", id.name(), why)
}

// unread notes what no descriptor was left for: that says nothing of what is in it.
func (k *keyring) unread(what string, err error) {
	k.problem(codeLimit, err, hintNoFile, "%s: %s", what, reason(err))
}

// addLocked adds an encrypted key. If its public half is known, the passphrase
// is wanted only once the machine asks for a signature.
func (k *keyring) addLocked(id Identity, data []byte, pub gossh.PublicKey) {
	var opened gossh.Signer
	unlock := func() (gossh.Signer, error) {
		if opened != nil {
			return opened, nil
		}
		var err error
		opened, err = k.unlock(id, data)
		return opened, err
	}
	if pub != nil {
		k.addWithCerts(id, &signer{pub: pub, load: unlock}, id.name())
		return
	}
	k.candidates = append(k.candidates, candidate{label: id.name(), open: func() (*signer, error) {
		private, err := unlock()
		if err != nil {
			return nil, err
		}
		return &signer{pub: private.PublicKey(), load: unlock}, nil
	}})
}

// maxTyped is how often a person may mistype a passphrase; nothing is shown to
// the machine meanwhile.
const maxTyped = 3

var errNoPassphrase = errors.New("no passphrase")

// unlock decrypts a key, while the clock stands still: a person may have to
// think, and the key's derivation takes a busy machine seconds.
func (k *keyring) unlock(id Identity, data []byte) (gossh.Signer, error) {
	defer k.clock.pause()()
	name := id.name()
	hint := "set passphrase for this host, add the key to an agent, or use exec on this host alone at a terminal"
	tries, prompt := 1, "Passphrase for "
	secret := id.Passphrase
	switch {
	case secret == nil && k.config.Ask == nil:
		return nil, k.problem(codePassphrase, errNoPassphrase, hint, "key %s needs a passphrase, and there is none", name)
	case secret == nil:
		tries = maxTyped
		secret = func(context.Context, string) (string, error) {
			return k.ask(Question{Kind: AskPassphrase, Prompt: prompt + name + ": "})
		}
	}
	for range tries {
		passphrase, err := secret(k.ctx, name)
		var coded interface{ ErrorCode() string }
		switch {
		case errors.As(err, &coded) && coded.ErrorCode() == codeSecret:
			return nil, k.problem(codeSecret, err, "check the reference under passphrase", "passphrase of key %s: %v", name, err)
		case err != nil:
			return nil, k.problem(codePassphrase, err, hint, "passphrase of key %s: %v", name, err)
		}
		private, err := gossh.ParsePrivateKeyWithPassphrase(data, []byte(passphrase))
		if err == nil {
			return private, nil
		}
		if !errors.Is(err, x509.IncorrectPasswordError) {
			return nil, k.problem(codeKeyUnreadable, err, "", "key %s: %s", name, strings.TrimPrefix(err.Error(), "ssh: "))
		}
		prompt = "Bad passphrase, try again for "
	}
	if id.Passphrase != nil {
		hint = "what passphrase of this host refers to is not that of the key: see gateway hosts show " + k.config.Name + " --explain"
	}
	return nil, k.problem(codePassphrase, x509.IncorrectPasswordError, hint, "wrong passphrase for key %s", name)
}

// addWithCerts adds a key's certificates, and then the key.
func (k *keyring) addWithCerts(id Identity, key *signer, label string) {
	if id.Path != "" {
		path := strings.TrimSuffix(id.Path, ".pub") + "-cert.pub"
		if cert, err := k.readCertificate(path); err == nil {
			k.addCert(cert, key, path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			k.badCertificate(path, err)
		}
	}
	k.add(key, label)
}

// public returns the public key beside the private one's file, or nil. A key
// that is in no file has none: ".pub" alone is a file of the current directory.
func (id Identity) public() gossh.PublicKey {
	if id.Path == "" {
		return nil
	}
	key, _ := readPublic(context.Background(), id.Path+".pub") // nil beside an error
	return key
}

// readPublic reads a file with a public key, or a certificate.
func readPublic(ctx context.Context, path string) (gossh.PublicKey, error) {
	data, err := regular.Read(ctx, path, maxKey)
	if err != nil {
		return nil, err
	}
	key, _, _, _, err := gossh.ParseAuthorizedKey(data)
	return key, err
}
