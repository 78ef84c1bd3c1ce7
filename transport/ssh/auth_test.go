package ssh_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"gateway/internal/sshdtest"
	"gateway/transport"
	"gateway/transport/ssh"
)

func secret(text string) func(context.Context, string) (string, error) {
	return func(context.Context, string) (string, error) { return text, nil }
}

func TestAuthKeys(t *testing.T) {
	t.Parallel()
	rsa, ecdsa, other := sshdtest.NewKey(t, "rsa"), sshdtest.NewKey(t, "ecdsa"), sshdtest.NewKey(t, "ed25519")
	ca, certified := sshdtest.NewKey(t, "ed25519"), sshdtest.NewKey(t, "rsa")
	caFile := filepath.Join(t.TempDir(), "ca.pub")
	must(t, os.WriteFile(caFile, []byte(ca.Line()+"\n"), 0o644))
	s := sshdtest.Start(t, sshdtest.Options{
		AuthorizedKeys: []string{rsa.Line(), ecdsa.Line()},
		Config:         []string{"TrustedUserCAKeys " + caFile},
	})
	certFile := certified.UserCert(t, ca, s.User, nil)
	pem, err := os.ReadFile(ecdsa.File)
	if err != nil {
		t.Fatal(err)
	}
	locked := rsa.Encrypted(t, "open sesame")
	alone := filepath.Join(t.TempDir(), "other") // without the certificate beside it
	must(t, os.WriteFile(alone, mustRead(t, certified.File), 0o600))

	for _, test := range []struct {
		name string
		edit func(*ssh.Config)
	}{
		{"ed25519 file", func(*ssh.Config) {}},
		{"rsa file", func(c *ssh.Config) { c.Identities = []ssh.Identity{{Path: rsa.File}} }},
		{"pem behind its parameters", func(c *ssh.Config) {
			parameters := "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
			c.Identities = []ssh.Identity{{Name: "env:KEY", PEM: append([]byte(parameters), pem...)}}
		}},
		{"pem by reference", func(c *ssh.Config) { c.Identities = []ssh.Identity{{Name: "env:KEY", PEM: pem}} }},
		{"second of three, one of them missing", func(c *ssh.Config) {
			c.Identities = []ssh.Identity{{Path: "/nonexistent", Optional: true}, {Path: other.File}, {Path: ecdsa.File}}
		}},
		{"encrypted", func(c *ssh.Config) {
			c.Identities = []ssh.Identity{{Path: locked, Passphrase: secret("open sesame")}}
		}},
		{"encrypted, typed at the second try", func(c *ssh.Config) {
			c.Identities = []ssh.Identity{{Path: locked}}
			answers := []string{"no", "open sesame"}
			c.Ask = func(_ context.Context, q ssh.Question) (string, error) {
				if q.Kind != ssh.AskPassphrase || q.Echo {
					return "", errors.New("unexpected question")
				}
				answer := answers[0]
				answers = answers[1:]
				return answer, nil
			}
		}},
		{"encrypted, but in the agent", func(c *ssh.Config) {
			c.Identities = []ssh.Identity{{Path: locked}}
			c.Agent = sshdtest.Agent(t, other, rsa)
		}},
		{"an encrypted key that is not wanted stays closed", func(c *ssh.Config) {
			c.Identities = []ssh.Identity{{Path: other.Encrypted(t, "x")}, {Path: ecdsa.File}}
		}},
		{"an agent that hangs", func(c *ssh.Config) { c.Agent, c.ConnectTimeout = silentAgent(t), 4*time.Second }},
		{"agent alone", func(c *ssh.Config) { c.Identities, c.Agent = nil, sshdtest.Agent(t, other, ecdsa) }},
		{"file, before more of the agent's than the server takes", func(c *ssh.Config) {
			var wrong []*sshdtest.Key
			for range 8 { // MaxAuthTries is 6
				wrong = append(wrong, sshdtest.NewKey(t, "ed25519"))
			}
			c.Agent = sshdtest.Agent(t, wrong...)
		}},
		{"public key with the agent", func(c *ssh.Config) {
			c.Identities, c.Agent = []ssh.Identity{{Path: rsa.File + ".pub"}}, sshdtest.Agent(t, ecdsa, rsa)
		}},
		{"certificate beside the key", func(c *ssh.Config) { c.Identities = []ssh.Identity{{Path: certified.File}} }},
		{"certificate by path", func(c *ssh.Config) {
			c.Identities, c.Certificates = []ssh.Identity{{Path: alone}}, []string{certFile}
		}},
		{"certificate in the agent", func(c *ssh.Config) { c.Identities, c.Agent = nil, sshdtest.Agent(t, certified) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := config(s)
			test.edit(&c)
			if got := output(t, dial(t, c), "echo in"); got != "in\n" {
				t.Errorf("output = %q", got)
			}
		})
	}
}

// A key that is in no file has no public half in the current directory.
func TestAuthKeyWithoutFile(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, ".pub"), []byte(s.Key.Line()+"\n"), 0o600))
	t.Chdir(dir)
	c := config(s)
	c.Identities, c.IdentitiesOnly, c.Agent = []ssh.Identity{{Name: "cmd:…", PEM: []byte("no key\n")}}, true, sshdtest.Agent(t, s.Key)
	refused(t, c, "auth.key_unreadable", "cmd:…")
}

// silentAgent accepts connections and says nothing.
func silentAgent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(sshdtest.ShortDir(t), "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// busyAgent hears nobody else while its owner is asked to confirm a signature, as
// ssh-agent with a key of ssh-add -c.
type busyAgent struct {
	agent.Agent
	mu            sync.Mutex
	called, asked chan struct{} // its keys were asked for, its owner was
	confirmed     chan struct{}
}

func (a *busyAgent) List() ([]*agent.Key, error) {
	a.called <- struct{}{}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Agent.List()
}

func (a *busyAgent) Sign(key gossh.PublicKey, data []byte) (*gossh.Signature, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked <- struct{}{}
	<-a.confirmed
	return a.Agent.Sign(key, data)
}

// TestAgentIsBusy: an agent that waits for its owner on behalf of one machine is not
// taken for one that hangs by those who want to reach others.
func TestAgentIsBusy(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t, sshdtest.Options{})
	ring := agent.NewKeyring()
	must(t, ring.Add(agent.AddedKey{PrivateKey: s.Key.Private}))
	busy := &busyAgent{Agent: ring, called: make(chan struct{}, 100), asked: make(chan struct{}, 2), confirmed: make(chan struct{})}
	c := config(s)
	c.Identities, c.Agent, c.ConnectTimeout = nil, sshdtest.ServeAgent(t, busy), 4*time.Second
	failed := make(chan error, 2)
	reach := func() {
		tr, err := ssh.Dial(t.Context(), c)
		if err == nil {
			tr.Close()
		}
		failed <- err
	}
	within(t, "both", func() {
		go reach()
		<-busy.called
		<-busy.asked
		go reach()
		<-busy.called
		select {
		case <-busy.called: // once more: the first time there was no answer
		case err := <-failed:
			t.Errorf("Dial while the agent waits = %v", err)
			failed <- nil
		}
		close(busy.confirmed)
		for range 2 {
			if err := <-failed; err != nil {
				t.Errorf("Dial = %v", err)
			}
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAuthFails(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t, sshdtest.Options{Config: []string{"PasswordAuthentication no", "KbdInteractiveAuthentication no"}})
	other := sshdtest.NewKey(t, "ed25519")
	expired := sshdtest.NewKey(t, "ed25519")
	expired.UserCert(t, sshdtest.NewKey(t, "ed25519"), s.User, func(c *gossh.Certificate) {
		c.ValidBefore = uint64(time.Now().Add(-time.Minute).Unix())
	})
	others, hosts := sshdtest.NewKey(t, "ed25519"), sshdtest.NewKey(t, "ed25519")
	others.UserCert(t, other, "bob", nil)
	hosts.UserCert(t, other, s.User, func(c *gossh.Certificate) { c.CertType = gossh.HostCert })
	unreadable := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(unreadable, []byte("not a key"), 0o600))
	pkcs8 := filepath.Join(t.TempDir(), "pkcs8")
	must(t, os.WriteFile(pkcs8, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte{0x30, 0}}), 0o600))
	wanted := s.Key.Encrypted(t, "right")
	var many []*sshdtest.Key
	for range 8 {
		many = append(many, sshdtest.NewKey(t, "ed25519"))
	}
	for _, test := range []struct {
		name, code string
		texts      []string
		edit       func(*ssh.Config)
	}{
		{
			"rejected", "auth.rejected",
			[]string{"web1", gossh.FingerprintSHA256(other.Public()), other.File, "publickey"},
			func(c *ssh.Config) { c.Identities = []ssh.Identity{{Path: other.File}} },
		},
		{
			"no key", "auth.no_key",
			[]string{"/nonexistent", "/nosocket"},
			func(c *ssh.Config) {
				c.Identities, c.Agent = []ssh.Identity{{Path: "/nonexistent", Optional: true}}, "/nosocket"
			},
		},
		{
			"missing", "auth.key_unreadable",
			[]string{"/nonexistent", "no such file"},
			func(c *ssh.Config) { c.Identities = []ssh.Identity{{Path: "/nonexistent"}} },
		},
		{
			"unreadable", "auth.key_unreadable",
			[]string{unreadable},
			func(c *ssh.Config) { c.Identities = []ssh.Identity{{Path: unreadable}} },
		},
		{
			"PKCS #8 with a passphrase", "auth.key_unreadable",
			[]string{pkcs8 + ": PKCS #8 with a passphrase is not understood"},
			func(c *ssh.Config) { c.Identities = []ssh.Identity{{Path: pkcs8, Passphrase: secret("right")}} },
		},
		{
			"public, and no agent", "auth.key_unreadable",
			[]string{other.File + ".pub: a public key, and there is no agent"},
			func(c *ssh.Config) { c.Identities = []ssh.Identity{{Path: other.File + ".pub"}} },
		},
		{
			"public, and the agent is gone", "auth.key_unreadable",
			[]string{other.File + ".pub: a public key, and no agent answers at /nosocket: no such file"},
			func(c *ssh.Config) {
				c.Identities, c.Agent = []ssh.Identity{{Path: other.File + ".pub"}}, "/nosocket"
			},
		},
		{
			"unreadable, but not configured", "auth.rejected",
			[]string{other.File},
			func(c *ssh.Config) {
				c.Identities = []ssh.Identity{{Path: unreadable, Optional: true}, {Path: t.TempDir(), Optional: true}, {Path: other.File}}
			},
		},
		{
			"nothing but unreadable", "auth.no_key",
			[]string{unreadable + " (no key found)"},
			func(c *ssh.Config) { c.Identities = []ssh.Identity{{Path: unreadable, Optional: true}} },
		},
		{
			"no passphrase", "auth.passphrase",
			[]string{wanted},
			func(c *ssh.Config) { c.Identities = []ssh.Identity{{Path: wanted}} },
		},
		{
			"wrong passphrase", "auth.passphrase",
			[]string{"wrong", wanted},
			func(c *ssh.Config) { c.Identities = []ssh.Identity{{Path: wanted, Passphrase: secret("s3cr3t-left")}} },
		},
		{
			"expired", "auth.cert_expired",
			[]string{expired.File, "expired at"},
			func(c *ssh.Config) { c.Identities = []ssh.Identity{{Path: expired.File}} },
		},
		{
			"of others", "auth.rejected",
			[]string{others.File + "-cert.pub, for bob)", hosts.File + "-cert.pub, no certificate of a user)"},
			func(c *ssh.Config) { c.Identities = []ssh.Identity{{Path: others.File}, {Path: hosts.File}} },
		},
		{
			"not among the identities", "auth.rejected",
			[]string{other.File},
			func(c *ssh.Config) {
				c.Identities, c.IdentitiesOnly, c.Agent = []ssh.Identity{{Path: other.File}}, true, sshdtest.Agent(t, s.Key)
			},
		},
		{
			"the agent does not sign", "auth.key_unreadable",
			[]string{gossh.FingerprintSHA256(s.Key.Public()), "the agent did not sign"},
			func(c *ssh.Config) { c.Identities, c.Agent = nil, sshdtest.RefusingAgent(t, s.Key) },
		},
		{
			"the agent does not sign, and another key is refused", "auth.key_unreadable",
			[]string{"the agent did not sign", "refused: ssh-ed25519 " + gossh.FingerprintSHA256(other.Public())},
			func(c *ssh.Config) {
				c.Identities, c.Agent = []ssh.Identity{{Path: s.KeyFile + ".pub"}, {Path: other.File}}, sshdtest.RefusingAgent(t, s.Key)
			},
		},
		{
			"too many", "auth.too_many",
			[]string{"MaxAuthTries", gossh.FingerprintSHA256(many[0].Public())},
			func(c *ssh.Config) { c.Identities, c.Agent = nil, sshdtest.Agent(t, many...) },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := config(s)
			test.edit(&c)
			err := refused(t, c, test.code, test.texts...)
			if !errors.Is(err, transport.ErrAuth) || err.Hint == "" || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("error = %q, hint %q", err, err.Hint)
			}
		})
	}
}

// A key whose signatures the server does not take is not shown to it, so it is not
// told as refused.
func TestAuthWithoutSignatures(t *testing.T) {
	rsa, wanted, other := sshdtest.NewKey(t, "rsa"), sshdtest.NewKey(t, "ed25519"), sshdtest.NewKey(t, "ed25519")
	c := serve(t, &gossh.ServerConfig{
		PublicKeyAuthAlgorithms: []string{gossh.KeyAlgoED25519, gossh.KeyAlgoRSA},
		PublicKeyCallback: func(_ gossh.ConnMetadata, key gossh.PublicKey) (*gossh.Permissions, error) {
			if !bytes.Equal(key.Marshal(), wanted.Public().Marshal()) {
				return nil, errors.New("no")
			}
			return nil, nil
		},
	})
	unshown := "did not show ssh-rsa " + gossh.FingerprintSHA256(rsa.Public()) + " (" + rsa.File + "), since the server takes no RSA signatures with SHA-2"
	for tried, identities := range map[string][]ssh.Identity{
		"tried nothing; ": {{Path: rsa.File}},
		"tried ssh-ed25519 " + gossh.FingerprintSHA256(other.Public()) + " (" + other.File + "); ": {{Path: other.File}, {Path: rsa.File}},
	} {
		c.Identities = identities
		if err := refused(t, c, "auth.rejected", tried+unshown); !strings.Contains(err.Hint, "ed25519") {
			t.Errorf("hint %q", err.Hint)
		}
	}
	c.Identities = []ssh.Identity{{Path: rsa.File}, {Path: wanted.File}}
	dial(t, c)
}

// TestUnlockingTakesItsTime: what this machine does is not the peer's delay.
func TestUnlockingTakesItsTime(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	c := config(s)
	c.Identities = []ssh.Identity{{Path: s.Key.EncryptedWith(t, "right", 16), Passphrase: secret("right")}}
	var err error
	for range 5 { // the machine may become slower
		c.ConnectTimeout = time.Minute
		begun := time.Now()
		dial(t, c)
		c.ConnectTimeout = time.Since(begun) / 2 // most of it went into the key
		var tr *ssh.Transport
		if tr, err = ssh.Dial(t.Context(), c); err == nil {
			tr.Close()
			return
		}
	}
	t.Errorf("Dial = %v", err)
}

// passwordServer accepts a password, on a server of which no account is
// touched.
func passwordServer(t *testing.T, lines ...string) (*sshdtest.Server, ssh.Config) {
	s := sshdtest.Start(t, sshdtest.Options{
		Account: &sshdtest.Account{Password: "correct horse"},
		Config:  append(lines, "PermitRootLogin yes"),
	})
	c := config(s)
	c.Identities = nil
	return s, c
}

func TestAuthPassword(t *testing.T) {
	_, c := passwordServer(t, "PasswordAuthentication yes", "KbdInteractiveAuthentication no")
	t.Run("configured", func(t *testing.T) {
		c.Password = func(context.Context) (string, error) { return "correct horse", nil }
		dial(t, c)
	})
	t.Run("wrong is shown once", func(t *testing.T) {
		var shown atomic.Int32
		c.Password = func(context.Context) (string, error) { shown.Add(1); return "battery staple", nil }
		err := refused(t, c, "auth.rejected", "password")
		if shown.Load() != 1 || strings.Contains(err.Error(), "staple") {
			t.Errorf("shown %d times: %v", shown.Load(), err)
		}
	})
	t.Run("unreadable", func(t *testing.T) {
		c.Password = func(context.Context) (string, error) { return "", errors.New("no such variable") }
		refused(t, c, "secret.unreadable", "no such variable")
	})
	c.Password = nil
	t.Run("asked", func(t *testing.T) {
		c.Ask = func(_ context.Context, q ssh.Question) (string, error) {
			if q.Kind != ssh.AskPassword || q.Host != "web1" || q.User != c.User {
				t.Errorf("question = %+v", q)
			}
			return "correct horse", nil
		}
		dial(t, c)
	})
	c.Ask = nil
	t.Run("nobody there, with publickey", func(t *testing.T) { refused(t, c, "auth.no_key", "password") })
}

func TestAuthNeedsInteraction(t *testing.T) {
	_, c := passwordServer(t, "PasswordAuthentication yes", "PubkeyAuthentication no", "KbdInteractiveAuthentication no")
	refused(t, c, "auth.needs_interaction", "password")
}

func TestAuthSecondFactor(t *testing.T) {
	s, c := passwordServer(t, "PasswordAuthentication yes", "AuthenticationMethods publickey,password")
	c.Identities = []ssh.Identity{{Path: s.KeyFile}}
	t.Run("both", func(t *testing.T) {
		c := c
		c.Password = func(context.Context) (string, error) { return "correct horse", nil }
		dial(t, c)
	})
	t.Run("nobody there", func(t *testing.T) { refused(t, c, "auth.needs_interaction", "password") })
	t.Run("wrong password", func(t *testing.T) {
		c := c
		c.Password = func(context.Context) (string, error) { return "wrong horse", nil }
		if err := refused(t, c, "auth.rejected", ", password; accepted publickey"); !strings.Contains(err.Hint, "user and password") {
			t.Errorf("hint = %q", err.Hint)
		}
	})
}

// TestAuthChallenge runs against a server of x/crypto, because what sshd asks
// is up to PAM.
func TestAuthChallenge(t *testing.T) {
	ask := func(want ...string) *gossh.ServerConfig {
		return &gossh.ServerConfig{KeyboardInteractiveCallback: func(_ gossh.ConnMetadata, challenge gossh.KeyboardInteractiveChallenge) (*gossh.Permissions, error) {
			prompts := []string{"Password: ", "Verification code: "}[:len(want)]
			var got []string
			for _, prompt := range prompts {
				answer, err := challenge("", "two steps", []string{prompt}, []bool{false})
				if err != nil {
					return nil, err
				}
				got = append(got, answer...)
			}
			if !slices.Equal(got, want) {
				return nil, errors.New("wrong")
			}
			return nil, nil
		}}
	}
	t.Run("password configured", func(t *testing.T) {
		c := serve(t, ask("pw"))
		c.Password = func(context.Context) (string, error) { return "pw", nil }
		dial(t, c)
	})
	t.Run("code asked", func(t *testing.T) {
		c := serve(t, ask("pw", "123456"))
		c.Password = func(context.Context) (string, error) { return "pw", nil }
		c.Ask = func(_ context.Context, q ssh.Question) (string, error) {
			if q.Kind != ssh.AskChallenge || q.Prompt != "Verification code: " || q.Instruction != "two steps" {
				t.Errorf("question = %+v", q)
			}
			return "123456", nil
		}
		dial(t, c)
	})
	t.Run("password refused before", func(t *testing.T) {
		server := ask("pw", "123456")
		server.PasswordCallback = func(gossh.ConnMetadata, []byte) (*gossh.Permissions, error) { return nil, errors.New("wrong") }
		c := serve(t, server)
		answers := []string{"left", "pw", "123456"}
		var said []string
		c.Ask = func(_ context.Context, q ssh.Question) (string, error) {
			said = append(said, q.Instruction)
			return answers[len(said)-1], nil
		}
		dial(t, c)
		if want := []string{"", "Permission denied, please try again.\ntwo steps", "two steps"}; !slices.Equal(said, want) {
			t.Errorf("said %q, want %q", said, want)
		}
	})
	t.Run("code, nobody there", func(t *testing.T) {
		c := serve(t, ask("pw", "123456"))
		c.Password = func(context.Context) (string, error) { return "pw", nil }
		refused(t, c, "auth.needs_interaction", "Verification code: ", "two steps")
	})
	t.Run("password expired, nobody there", func(t *testing.T) {
		c := serve(t, &gossh.ServerConfig{KeyboardInteractiveCallback: func(_ gossh.ConnMetadata, challenge gossh.KeyboardInteractiveChallenge) (*gossh.Permissions, error) {
			for _, round := range []struct {
				says string
				asks []string
			}{{"", []string{"Password: "}}, {"You are required to change your password.", nil}, {"", []string{"Current password: "}}} {
				if _, err := challenge("", round.says, round.asks, make([]bool, len(round.asks))); err != nil {
					return nil, err
				}
			}
			return nil, nil
		}})
		c.Password = func(context.Context) (string, error) { return "pw", nil }
		err := refused(t, c, "auth.needs_interaction", "Current password: ", "required to change")
		if !strings.Contains(err.Hint, "was given before") {
			t.Errorf("hint = %q, want that the password was given before", err.Hint)
		}
	})
	t.Run("thinking does not count", func(t *testing.T) {
		c := serve(t, ask("pw"))
		c.ConnectTimeout = 500 * time.Millisecond
		c.Ask = func(ctx context.Context, _ ssh.Question) (string, error) {
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-time.After(2 * c.ConnectTimeout): // this long is what is tested
				return "pw", nil
			}
		}
		dial(t, c)
	})
	t.Run("cancelled while asking", func(t *testing.T) {
		c := serve(t, ask("pw"))
		ctx, cancel := context.WithCancel(t.Context())
		c.Ask = func(ctx context.Context, _ ssh.Question) (string, error) {
			cancel()
			<-ctx.Done()
			return "", ctx.Err()
		}
		if _, err := ssh.Dial(ctx, c); !errors.Is(err, context.Canceled) {
			t.Errorf("Dial = %v, want %v", err, context.Canceled)
		}
	})
}

func TestWarnsOfOpenKey(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	file := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(file, mustRead(t, s.KeyFile), 0o644))
	var said bytes.Buffer
	c := config(s)
	c.Identities = []ssh.Identity{{Path: file}}
	c.Warn = func(m string) { said.WriteString(m) }
	dial(t, c)
	if !strings.Contains(said.String(), file) {
		t.Errorf("warning = %q, want %q in it", said.String(), file)
	}
}

// Nobody has to hear at each connection of a key that is of no use here, such as
// id_ed25519_sk, and that nobody configured.
func TestWarnsOfNoUnconfiguredKey(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	file := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(file, []byte("not a key"), 0o600))
	c := config(s)
	c.Identities = []ssh.Identity{{Path: file, Optional: true}, {Path: s.KeyFile}}
	c.Warn = func(m string) { t.Errorf("warning = %q, want none", m) }
	dial(t, c)
}

// A container may run as a number that is nobody's.
func TestWithoutAnAccount(t *testing.T) {
	if err := refused(t, ssh.Config{Name: "web1"}, "config.invalid", "web1: no user"); !strings.Contains(err.Hint, "set user") {
		t.Errorf("hint = %q, want the remedy", err.Hint)
	}
}

// Whoever has set a passphrase is not told to set one when it is wrong.
func TestPassphraseHints(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t, sshdtest.Options{})
	for _, test := range []struct {
		passphrase func(context.Context, string) (string, error)
		hint       string
	}{
		{nil, "set passphrase for this host, add the key to an agent, or use exec on this host alone at a terminal"}, // run asks nobody
		{func(context.Context, string) (string, error) { return "left", nil }, "what passphrase of this host refers to is not that of the key"},
	} {
		c := config(s)
		c.Identities = []ssh.Identity{{Path: s.Key.Encrypted(t, "right"), Passphrase: test.passphrase}}
		if err := refused(t, c, "auth.passphrase"); !strings.HasPrefix(err.Hint, test.hint) {
			t.Errorf("hint = %q, want %q", err.Hint, test.hint)
		}
	}
}

// A person who has mistyped a passphrase is told so.
func TestPassphraseIsAskedAgain(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t, sshdtest.Options{})
	c := config(s)
	file := s.Key.Encrypted(t, "right")
	c.Identities = []ssh.Identity{{Path: file}}
	answers := []string{"left", "right"}
	var prompts []string
	c.Ask = func(_ context.Context, q ssh.Question) (string, error) {
		prompts = append(prompts, q.Prompt)
		return answers[len(prompts)-1], nil
	}
	dial(t, c)
	if want := []string{"Passphrase for " + file + ": ", "Bad passphrase, try again for " + file + ": "}; !slices.Equal(prompts, want) {
		t.Errorf("asked %q, want %q", prompts, want)
	}
}
