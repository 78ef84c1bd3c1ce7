// Package integration runs the whole gateway against real SSH servers and real
// shells.
package integration

import (
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gateway/internal/sshdtest"
	"gateway/transport"
	"gateway/transport/local"
	"gateway/transport/ssh"
)

func TestMain(m *testing.M) {
	syscall.CloseOnExec(10) // whoever runs the tests may have left it to them; see TestAnySh
	var err error
	if programs, err = os.MkdirTemp("", "gateway"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		os.RemoveAll(programs)
		os.Exit(status)
	}))
}

var shells = []string{"bash", "dash", "zsh", "busybox ash"}

// machine is a way to reach this machine.
type machine struct {
	name string
	tty  bool
	open func(testing.TB) transport.Transport
}

// machines returns every way there is: the servers are started once per test.
// All but dropbear's sessions have runtime as their XDG_RUNTIME_DIR.
func machines(t testing.TB, runtime string) []machine {
	setEnv := []string{"SetEnv XDG_RUNTIME_DIR=" + runtime}
	openSSH := sshdtest.Start(t, sshdtest.Options{Config: setEnv})
	noTTY := sshdtest.Start(t, sshdtest.Options{Config: setEnv, AuthorizedOptions: "restrict"})
	dropbear := sshdtest.StartDropbear(t, sshdtest.Options{})
	return []machine{
		{"local", true, func(t testing.TB) transport.Transport {
			tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir(), "XDG_RUNTIME_DIR=" + runtime}})
			t.Cleanup(func() { tr.Close() })
			return tr
		}},
		{"openssh", true, func(t testing.TB) transport.Transport { return dial(t, openSSH, openSSH.Port) }},
		{"dropbear", true, func(t testing.TB) transport.Transport { return dial(t, dropbear, dropbear.Port) }},
		{"no terminal", false, func(t testing.TB) transport.Transport { return dial(t, noTTY, noTTY.Port) }},
	}
}

// telling returns the shells that tell something on this machine beside the others: all,
// with a terminal and without one, and where only the way to it is another one, the first.
// The conformance cases have all pairs.
func (m machine) telling(shells []string) []string {
	if m.name == "openssh" || !m.tty {
		return shells
	}
	return shells[:1]
}

// dial connects to a test server, or to a proxy in front of it.
func dial(t testing.TB, server *sshdtest.Server, port int) transport.Transport {
	t.Helper()
	tr, err := ssh.Dial(t.Context(), sshConfig(server, port))
	if err != nil {
		t.Fatalf("Dial = %v\n%s", err, server.Log())
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

func sshConfig(server *sshdtest.Server, port int) ssh.Config {
	return ssh.Config{
		Name: "web1", Addr: server.Host, Port: port, User: server.User,
		Identities: []ssh.Identity{{Path: server.KeyFile}},
		HostKeys:   &ssh.HostKeys{Name: "web1", Addr: server.Host, Port: server.Port, Files: []string{server.KnownHosts}},
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	sshdtest.Eventually(t, 10*time.Second, what, condition)
}

// empty reports whether nothing is in a directory.
func empty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 0
}
