package sshdtest_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"gateway/internal/sshdtest"
)

func config(s *sshdtest.Server, auth ...gossh.AuthMethod) *gossh.ClientConfig {
	return &gossh.ClientConfig{
		User:              s.User,
		Auth:              auth,
		HostKeyCallback:   gossh.FixedHostKey(s.HostKey),
		HostKeyAlgorithms: []string{s.HostKey.Type()},
		Timeout:           20 * time.Second,
	}
}

func dial(t *testing.T, s *sshdtest.Server, auth ...gossh.AuthMethod) *gossh.Client {
	t.Helper()
	c, err := gossh.Dial("tcp", s.Addr, config(s, auth...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func output(t *testing.T, c *gossh.Client, command string) string {
	t.Helper()
	session, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	out, err := session.Output(command)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return strings.TrimSpace(string(out))
}

func TestLogin(t *testing.T) {
	for name, start := range map[string]func(testing.TB, sshdtest.Options) *sshdtest.Server{
		"sshd": sshdtest.Start, "dropbear": sshdtest.StartDropbear,
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, sshdtest.Options{})
			c := dial(t, s, gossh.PublicKeys(s.Key.Signer))
			if got := output(t, c, "echo $HOME"); got != s.Home {
				t.Errorf("HOME = %q, want %q", got, s.Home)
			}
			if !strings.Contains(s.Log(), "127.0.0.1") {
				t.Errorf("Log() = %q, want the connection in it", s.Log())
			}
			if s.Pid == 0 {
				t.Error("Pid = 0")
			}
		})
	}
}

func TestHostKeyTypesAndKnownHosts(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{HostKeys: []string{"rsa", "ecdsa", "ed25519"}})
	for i, want := range []string{"ssh-rsa", "ecdsa-sha2-nistp256", "ssh-ed25519"} {
		if got := s.HostKeys[i].Type(); got != want {
			t.Errorf("HostKeys[%d] = %s, want %s", i, got, want)
		}
	}
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		sshdtest.Skip(t, "no ssh here: install the package openssh-client")
	}
	out, err := exec.Command(ssh, "-F", "none", "-i", s.KeyFile, "-o", "UserKnownHostsFile="+s.KnownHosts, "-o", "GlobalKnownHostsFile=none",
		"-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes", "-p", strconv.Itoa(s.Port), s.User+"@"+s.Host, "echo", "in").CombinedOutput()
	if err != nil || string(out) != "in\n" {
		t.Errorf("ssh = %q, %v, want %q", out, err, "in\n")
	}
}

func TestConfigWithMatchBlock(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{
		Config: []string{"MaxSessions 3", "Match all", "ForceCommand echo forced"},
	})
	if got := output(t, dial(t, s, gossh.PublicKeys(s.Key.Signer)), "echo free"); got != "forced" {
		t.Errorf("output = %q, want %q", got, "forced")
	}
}

func TestAccount(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{
		Config:  []string{"PasswordAuthentication yes"},
		Account: &sshdtest.Account{Shell: "/bin/sh", Password: "correct horse"},
	})
	c := dial(t, s, gossh.Password("correct horse"))
	if got, want := output(t, c, "cd && pwd; echo $SHELL"), s.Home+"\n/bin/sh"; got != want {
		t.Errorf("output = %q, want %q", got, want)
	}
	if _, err := gossh.Dial("tcp", s.Addr, config(s, gossh.Password("battery staple"))); err == nil {
		t.Error("a wrong password was accepted")
	}
}

func TestAgentAndCertificate(t *testing.T) {
	ca, key := sshdtest.NewKey(t, "ed25519"), sshdtest.NewKey(t, "ecdsa")
	s := sshdtest.Start(t, sshdtest.Options{Config: []string{"TrustedUserCAKeys " + ca.File + ".pub"}})
	key.UserCert(t, ca, s.User, nil)

	conn, err := net.Dial("unix", sshdtest.Agent(t, key))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		t.Fatal(err)
	}
	if len(signers) != 2 {
		t.Fatalf("the agent has %d keys, want the key and the certificate", len(signers))
	}
	if _, err := gossh.Dial("tcp", s.Addr, config(s, gossh.PublicKeys(signers[0]))); err == nil {
		t.Error("the bare key was accepted")
	}
	dial(t, s, gossh.PublicKeys(signers[1]))
}

func TestHostCertificate(t *testing.T) {
	ca := sshdtest.NewKey(t, "ed25519")
	s := sshdtest.Start(t, sshdtest.Options{HostCA: ca})
	conf := config(s, gossh.PublicKeys(s.Key.Signer))
	checker := gossh.CertChecker{IsHostAuthority: func(auth gossh.PublicKey, _ string) bool {
		return bytes.Equal(auth.Marshal(), ca.Public().Marshal())
	}}
	conf.HostKeyCallback = checker.CheckHostKey
	conf.HostKeyAlgorithms = []string{gossh.CertAlgoED25519v01}
	c, err := gossh.Dial("tcp", s.Addr, conf)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestEncryptedKey(t *testing.T) {
	key := sshdtest.NewKey(t, "ed25519")
	text, err := os.ReadFile(key.Encrypted(t, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gossh.ParsePrivateKey(text); err == nil {
		t.Error("the key can be read without the passphrase")
	}
	signer, err := gossh.ParsePrivateKeyWithPassphrase(text, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(signer.PublicKey().Marshal(), key.Public().Marshal()) {
		t.Error("another key came out")
	}
}

// What a session leaves behind with setsid is ended with the server, and the
// server before the test's other cleanups that were registered earlier.
func TestEverythingEnds(t *testing.T) {
	var server, left int
	t.Run("server", func(t *testing.T) {
		s := sshdtest.Start(t, sshdtest.Options{})
		out := output(t, dial(t, s, gossh.PublicKeys(s.Key.Signer)), "setsid -f sleep 1000 >/dev/null 2>&1 </dev/null; sleep 1000 >/dev/null 2>&1 & echo $!")
		var err error
		if left, err = strconv.Atoi(out); err != nil {
			t.Fatal(err)
		}
		server = s.Pid
	})
	for _, pid := range []int{server, left} {
		if alive(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
}

// alive reports whether the process runs: it exists and is not a zombie that
// init has yet to collect. The kill is asynchronous, so it is given time.
func alive(pid int) bool {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if syscall.Kill(pid, 0) != nil {
			return false
		}
		if out, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output(); strings.HasPrefix(strings.TrimSpace(string(out)), "Z") {
			return false
		}
	}
	return true
}
