package lab

import (
	"os"

	gossh "golang.org/x/crypto/ssh"

	"gateway/internal/sshdtest"
)

// Portable is what another process needs to know of a site.
type Portable struct {
	Options             Options
	Home, User, KeyFile string
	HostKey             []byte
	Hosts               []Host
}

// Portable describes the site to another process.
func (s *Site) Portable() Portable {
	return Portable{s.Options, s.Home, s.Server.User, s.Server.KeyFile, s.Server.HostKey.Marshal(), s.Hosts}
}

// Site is the site, as a client sees it.
func (p Portable) Site() (*Site, error) {
	text, err := os.ReadFile(p.KeyFile)
	if err != nil {
		return nil, err
	}
	key, err := gossh.ParsePrivateKey(text)
	if err != nil {
		return nil, err
	}
	host, err := gossh.ParsePublicKey(p.HostKey)
	if err != nil {
		return nil, err
	}
	return &Site{
		Lab: &Lab{Options: p.Options}, Home: p.Home, Hosts: p.Hosts, Key: key,
		Server: &sshdtest.Server{User: p.User, KeyFile: p.KeyFile, HostKey: host},
	}, nil
}
