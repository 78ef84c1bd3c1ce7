package ssh_test

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/internal/sshdtest"
	"gateway/transport/ssh"
)

// What ssh refuses for RevokedHostKeys, is refused here.
func TestRevokedHostKeysLikeSSH(t *testing.T) {
	t.Parallel()
	client, err := exec.LookPath("ssh")
	if err != nil {
		sshdtest.Skip(t, "no ssh here: install the package openssh-client")
	}
	ca := sshdtest.NewKey(t, "ed25519")
	plain := sshdtest.Start(t, sshdtest.Options{})
	certified := sshdtest.Start(t, sshdtest.Options{HostCA: ca})
	key, other := keyLine(plain.HostKey), keyLine(signerOf(2).PublicKey())
	for _, tt := range []struct {
		name   string
		server *sshdtest.Server
		file   string
	}{
		{"listed", plain, knownFile(t, "# stolen\n"+other+"\n"+key+" web1\n")},
		{"not listed", plain, knownFile(t, other+"\n")},
		{"no such", plain, "/nonexistent"},
		{"bad line", plain, knownFile(t, other+"\nhash: "+gossh.FingerprintSHA256(plain.HostKey)+"\n")},
		{"its certificate", plain, knownFile(t, keyLine(hostCert(t, signerOf(7), func(c *gossh.Certificate) { c.Key = plain.HostKey })))},
		{"its authority", certified, ca.File + ".pub"},
		{"another authority", certified, knownFile(t, other+"\n")},
	} {
		s := tt.server
		out, sshErr := exec.Command(client, "-F", "none", "-i", s.KeyFile, "-o", "UserKnownHostsFile="+s.KnownHosts, "-o", "RevokedHostKeys="+tt.file,
			"-o", "BatchMode=yes", "-p", strconv.Itoa(s.Port), s.User+"@127.0.0.1", "true").CombinedOutput()
		c := config(s)
		c.HostKeys.Revoked = tt.file
		tr, err := ssh.Dial(t.Context(), c)
		if err == nil {
			tr.Close()
		}
		if (err == nil) != (sshErr == nil) || err != nil && codeOf(err) != "hostkey.revoked" {
			t.Errorf("%s: %v, ssh says %v:\n%s", tt.name, err, sshErr, out)
		}
	}
}

// The verdict on a real server's key must be that of ssh.
func TestHostKeysLikeSSH(t *testing.T) {
	t.Parallel()
	client, err := exec.LookPath("ssh")
	if err != nil {
		sshdtest.Skip(t, "no ssh here: install the package openssh-client")
	}
	ca := sshdtest.NewKey(t, "ed25519")
	server := sshdtest.Start(t, sshdtest.Options{HostKeys: []string{"ed25519", "ecdsa"}})
	certified := sshdtest.Start(t, sshdtest.Options{HostCA: ca})
	both := sshdtest.Start(t, sshdtest.Options{HostCA: ca, HostKeys: []string{"ed25519", "ecdsa"}})
	expired := sshdtest.Start(t, sshdtest.Options{HostCA: ca, HostCert: func(c *gossh.Certificate) { c.ValidBefore = c.ValidAfter + 1 }})
	elsewhere := sshdtest.Start(t, sshdtest.Options{HostCA: ca, HostCert: func(c *gossh.Certificate) { c.ValidPrincipals = []string{"web9"} }})

	other := keyLine(signerOf(2).PublicKey())
	for _, tt := range []struct {
		name   string
		server *sshdtest.Server
		text   string // PORT, KEY, ECDSA, CA, CERT and OTHER are replaced
		alias  string
	}{
		{"nothing", server, "", ""},
		{"known", server, "[127.0.0.1]:PORT KEY", ""},
		{"known by a wildcard", server, "[127.0.0.*]:* KEY", ""},
		{"CRLF", server, "[127.0.0.1]:PORT KEY\r\n", ""},
		{"the second key", server, "[127.0.0.1]:PORT ECDSA", ""},
		{"the second key right, the first changed", server, "[127.0.0.1]:PORT ECDSA\n[127.0.0.1]:PORT OTHER", ""},
		{"changed", server, "[127.0.0.1]:PORT OTHER", ""},
		{"two, one right", server, "[127.0.0.1]:PORT OTHER\n[127.0.0.1]:PORT KEY", ""},
		{"plain address", server, "127.0.0.1 KEY", ""},
		{"plain address, another", server, "127.0.0.1 OTHER", ""},
		{"plain address right, port changed", server, "127.0.0.1 KEY\n[127.0.0.1]:PORT OTHER", ""},
		{"plain address changed, port right", server, "127.0.0.1 OTHER\n[127.0.0.1]:PORT KEY", ""},
		{"negated port", server, "*,![127.0.0.1]:PORT KEY", ""},
		{"negated", server, "*,!127.0.0.1 KEY", ""},
		{"negated both", server, "*,!*127.0.0.1* KEY", ""},
		{"revoked", server, "[127.0.0.1]:PORT KEY\n@revoked * KEY", ""},
		{"revoked by a certificate", server, "[127.0.0.1]:PORT KEY\n@revoked * CERT", ""},
		{"bad lines around", server, "x\n[127.0.0.1]:PORT ssh-ed25519 AAAA\n[127.0.0.1]:PORT ssh-future AAAA\n@odd * KEY\n[127.0.0.1]:PORT KEY\n@revoked", ""},
		{"alias", server, "farm KEY\n[127.0.0.1]:PORT OTHER", "farm"},
		{"alias with port", server, "[farm]:PORT KEY", "farm"},
		{"key of an authority", server, "@cert-authority * KEY", ""},
		{"certificate", certified, "@cert-authority * CA", ""},
		{"certificate, authority under the plain address", certified, "@cert-authority 127.0.0.1 CA", ""},
		{"certificate, authority revoked", certified, "@cert-authority * CA\n@revoked * CA", ""},
		{"certificate, authority revoked, key known", certified, "@revoked * CA\n[127.0.0.1]:PORT KEY", ""},
		{"certificate, authority revoked for another host, key known", certified, "@revoked web9 CA\n[127.0.0.1]:PORT KEY", ""},
		{"certificate, another authority revoked, key known", certified, "@revoked * OTHER\n[127.0.0.1]:PORT KEY", ""},
		{"certificate, another authority revoked", certified, "@revoked * OTHER", ""},
		{"certificate, authority revoked, second key known", both, "@revoked * CA\n[127.0.0.1]:PORT ECDSA", ""},
		{"certificate, another authority revoked, second key known", both, "@revoked * OTHER\n[127.0.0.1]:PORT ECDSA", ""},
		{"certificate, another authority revoked, first key changed", both, "@revoked * OTHER\n[127.0.0.1]:PORT OTHER", ""},
		{"certificate, key revoked", certified, "@cert-authority * CA\n@revoked * KEY", ""},
		{"certificate, alias", certified, "@cert-authority * CA", "farm"},
		{"certificate, unknown authority", certified, "@cert-authority * OTHER", ""},
		{"certificate, unknown authority, key known", certified, "@cert-authority * OTHER\n[127.0.0.1]:PORT KEY", ""},
		{"expired", expired, "@cert-authority * CA", ""},
		{"expired, key known", expired, "@cert-authority * CA\n[127.0.0.1]:PORT KEY", ""},
		{"for another host", elsewhere, "@cert-authority * CA", ""},
		{"for another host, by its alias", elsewhere, "@cert-authority * CA", "web9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ecdsa := ""
			if len(tt.server.HostKeys) > 1 {
				ecdsa = keyLine(tt.server.HostKeys[1])
			}
			text := strings.NewReplacer("PORT", strconv.Itoa(tt.server.Port), "KEY", keyLine(tt.server.HostKey), "ECDSA", ecdsa, "CA", ca.Line(), "OTHER", other,
				"CERT", keyLine(hostCert(t, signerOf(7), func(c *gossh.Certificate) { c.Key = tt.server.HostKey }))).
				Replace(tt.text)
			file := knownFile(t, text)
			args := []string{
				"-F", "none", "-i", tt.server.KeyFile, "-o", "UserKnownHostsFile=" + file, "-o", "GlobalKnownHostsFile=none",
				"-o", "StrictHostKeyChecking=yes", "-o", "UpdateHostKeys=no", "-o", "BatchMode=yes", "-p", strconv.Itoa(tt.server.Port),
			}
			if tt.alias != "" {
				args = append(args, "-o", "HostKeyAlias="+tt.alias)
			}
			out, sshErr := exec.Command(client, append(args, tt.server.User+"@127.0.0.1", "true")...).CombinedOutput()
			want := ""
			switch {
			case sshErr == nil:
			case strings.Contains(string(out), "REVOKED"):
				want = "hostkey.revoked"
			case strings.Contains(string(out), "IDENTIFICATION HAS CHANGED"):
				want = "hostkey.changed"
			case strings.Contains(string(out), "host key is known for"):
				want = "hostkey.unknown"
			default:
				t.Fatalf("ssh: %v: %s", sshErr, out)
			}
			h := &ssh.HostKeys{Name: "127.0.0.1", Addr: "127.0.0.1", Port: tt.server.Port, Alias: tt.alias, Files: []string{file}}
			c, err := gossh.Dial("tcp", tt.server.Addr, &gossh.ClientConfig{
				User: tt.server.User, Auth: []gossh.AuthMethod{gossh.PublicKeys(tt.server.Key.Signer)},
				HostKeyCallback: h.Callback(t.Context()), HostKeyAlgorithms: h.Algorithms(), Timeout: 20 * time.Second,
			})
			if err == nil {
				c.Close()
			}
			if got := codeOf(err); got != want {
				t.Errorf("code = %q, ssh says %q:\n%s", got, want, out)
			}
		})
	}
}
