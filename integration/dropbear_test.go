package integration

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transfer"
	"gateway/transport"
	"gateway/transport/ssh"
)

// TestDropbearSessionsApart: when any program of a connection ends, dropbear 2022.83 ends
// the channels on it that are about to be used. So each session has a connection to itself,
// for both of its programs, and those of the others may come and go.
func TestDropbearSessionsApart(t *testing.T) {
	server := sshdtest.StartDropbear(t, sshdtest.Options{})
	link := netsim.Start(t, server.Addr, 0)
	tr := dial(t, server, link.Port())
	first := open(t, tr, session.Config{})
	if n := link.Conns(); n != 1 {
		t.Errorf("%d connections for a session", n)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 8 {
				s, err := session.Open(t.Context(), tr, session.Config{})
				if err != nil {
					t.Error(err)
					return
				}
				replies(t, s, "echo up", "up\n")
				s.Close()
			}
		})
	}
	all.Wait()
	replies(t, first, "echo up", "up\n")
}

// web1OnDropbear is a dropbear, and an inventory that calls it web1.
func web1OnDropbear(t *testing.T) (far, *hosts.Inventory) {
	t.Helper()
	server := sshdtest.StartDropbear(t, sshdtest.Options{})
	f := far{"dropbear", server, netsim.Start(t, server.Addr, 0), ""}
	inventory, err := hosts.Parse("hosts.yaml", []byte("hosts:\n  web1: "+f.pinned(f.link.Port())+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return f, inventory
}

// TestDropbearOneLogin: the sessions beside a session are on its connection all the same, so
// that nobody has to log in once more.
func TestDropbearOneLogin(t *testing.T) {
	f, inventory := web1OnDropbear(t)
	g := gateway.New(gateway.Config{Inventory: inventory})
	defer g.Close()
	s, err := g.Open(t.Context(), "web1", gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	beside, err := s.Beside(t.Context(), gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	for _, s := range []*gateway.Session{s, beside} {
		if r := s.Run(t.Context(), gateway.Command{Text: "echo up"}); string(r.Stdout) != "up\n" {
			t.Errorf("got %s %q, %v", r.Verdict, r.Stdout, r.Err)
		}
	}
	if n := f.link.Conns(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// noSubsystem is a connection that serves none.
type noSubsystem struct{ transport.Transport }

// TestDropbearFiles: programs that move files end all the time, while others begin. Each
// has a connection to itself.
func TestDropbearFiles(t *testing.T) {
	t.Parallel()
	f, inventory := web1OnDropbear(t)
	from := fortyFiles(t)
	t.Run("over the shell", func(t *testing.T) {
		thereAndBack(t, overShell(t, inventory, dial(t, f.server, f.link.Port())), from, "shell")
	})
	t.Run("of a session, one after the other", func(t *testing.T) {
		g := gateway.New(gateway.Config{Inventory: inventory})
		defer g.Close()
		s, err := g.Open(t.Context(), "web1", gateway.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for range 8 {
			thereAndBack(t, s.Files(), from, "")
		}
		if r := s.Run(t.Context(), gateway.Command{Text: "echo up"}); string(r.Stdout) != "up\n" {
			t.Errorf("got %s %q, %v", r.Verdict, r.Stdout, r.Err)
		}
	})
}

// TestDropbearNoFurtherLogin: where there is no further connection to be had, programs
// share the one that there is.
func TestDropbearNoFurtherLogin(t *testing.T) {
	server := sshdtest.StartDropbear(t, sshdtest.Options{})
	key := t.TempDir() + "/key"
	text := mustRead(t, server.KeyFile)
	must(t, os.WriteFile(key, text, 0o600))
	link := netsim.Start(t, server.Addr, 0)
	config := sshConfig(server, link.Port())
	config.Identities[0].Path = key
	tr, err := ssh.Dial(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	must(t, os.Remove(key))
	threeAtOnce(t, tr)
	if n := link.Conns(); n != 2 {
		t.Errorf("%d connections, want one, and one that was refused", n)
	}
}

// TestDropbearAsksOnce: nor is a person asked again for a further connection.
func TestDropbearAsksOnce(t *testing.T) {
	server := sshdtest.StartDropbear(t, sshdtest.Options{Account: &sshdtest.Account{Password: "correct horse"}})
	config := sshConfig(server, server.Port)
	config.Identities = nil
	asked := 0
	config.Ask = func(context.Context, ssh.Question) (string, error) {
		asked++
		return "correct horse", nil
	}
	tr, err := ssh.Dial(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	threeAtOnce(t, tr)
	f := far{"dropbear", server, netsim.Start(t, server.Addr, 0), ""}
	inventory, err := hosts.Parse("hosts.yaml", []byte("hosts:\n  web1: "+f.pinned(f.link.Port())+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	thereAndBack(t, overShell(t, inventory, tr), fortyFiles(t), "shell")
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

// threeAtOnce has three programs run at the same time.
func threeAtOnce(t *testing.T, tr transport.Transport) {
	t.Helper()
	for range 3 {
		pipe, err := tr.Pipe(t.Context(), "echo up; exec cat")
		if err != nil {
			t.Fatal(err)
		}
		defer pipe.Close()
		if line, err := bufio.NewReader(pipe.Stdout).ReadString('\n'); line != "up\n" {
			t.Errorf("got %q, %v", line, err)
		}
	}
}

// fortyFiles returns a directory of files that a shell takes a program each for.
func fortyFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i := range 40 {
		must(t, os.WriteFile(fmt.Sprintf("%s/%d", dir, i), bytes.Repeat([]byte{byte(i)}, 40_000), 0o600))
	}
	return dir
}

// overShell is web1's connection over tr, without sftp.
func overShell(t *testing.T, inventory *hosts.Inventory, tr transport.Transport) *gateway.Connection {
	t.Helper()
	g := gateway.New(gateway.Config{Inventory: inventory, Warm: func(context.Context, gateway.Target) (transport.Transport, bool) { return noSubsystem{tr}, true }})
	t.Cleanup(func() { g.Close() })
	connection, err := g.Connect(t.Context(), "web1", "")
	if err != nil {
		t.Fatal(err)
	}
	return connection
}

// thereAndBack copies a directory to a machine and back, by the way that is given, if one is.
func thereAndBack(t *testing.T, connection *gateway.Connection, from, via string) {
	t.Helper()
	machine, err := transfer.Open(t.Context(), connection)
	if err != nil {
		t.Fatal(err)
	}
	defer machine.Close()
	if got := machine.About().Via; via != "" && got != via {
		t.Errorf("via %s, want %s", got, via)
	}
	there, back := t.TempDir(), t.TempDir()
	copyFiles(t, transfer.Copy{From: &transfer.Local{}, To: machine, Paths: []string{from + "/."}, Into: there, Recursive: true})
	sameTrees(t, from, there)
	copyFiles(t, transfer.Copy{From: machine, To: &transfer.Local{}, Paths: []string{there + "/."}, Into: back, Recursive: true})
	sameTrees(t, from, back)
}

// TestDropbearWithoutTerminal: dropbear gives a shell without a terminal no session of its
// own. Those of one connection are none of each other's business all the same, and the
// server is nobody's.
func TestDropbearWithoutTerminal(t *testing.T) {
	server := sshdtest.StartDropbear(t, sshdtest.Options{})
	tr := dial(t, server, server.Port)
	config := session.Config{Shell: "dash", NoTerminal: true}
	first, second := open(t, tr, config), open(t, tr, config)
	replies(t, second, "set -- $(cat /proc/$$/stat); [ $6 = $$ ] && echo its own", "its own\n")
	replies(t, first, "sleep 1000 & echo up", "up\n")
	first.Close()
	replies(t, second, "echo up", "up\n")
	second.Close()
	replies(t, open(t, tr, config), "echo up", "up\n")
}

// TestSudoOverDropbear: it starts what it runs with SIGTTOU ignored, for which zsh has no
// need to be stopped on sudo's own terminal, and sudo none to pass on what is typed. It takes
// no request of more than 9,000 bytes, in which flags of the host's have to have room.
func TestSudoOverDropbear(t *testing.T) {
	t.Parallel()
	if err := exec.Command("env", "--default-signal=TTOU", "true").Run(); err != nil {
		sshdtest.Skip(t, "env of no GNU: %v", err)
	}
	server := sshdtest.StartDropbear(t, sshdtest.Options{Account: &sshdtest.Account{Sudoers: "Defaults use_pty\nroot ALL=(ALL) NOPASSWD: ALL\n"}})
	tr := dial(t, server, server.Port)
	for _, shell := range []string{"zsh", "bash", "dash"} {
		for _, tty := range []bool{false, true} {
			s := open(t, tr, session.Config{Shell: shell, Sudo: &session.Sudo{Flags: []string{"-H", "--preserve-env=" + strings.Repeat("GATEWAY_TEST_TAG,", 50) + "TZ"}}})
			r, err := s.Run(t.Context(), session.Command{Text: "id -u", TTY: tty, Timeout: 20 * time.Second})
			if r.Verdict != session.Exited || err != nil {
				t.Errorf("%s, tty %v: got %s %q %q, %v", shell, tty, r.Verdict, r.Stdout, r.Stderr, err)
			}
			s.Close()
		}
	}
}

// TestDropbearProgramInPlaceOfTheShell: it need not have the terminal open, and dropbear
// 2026.94 hangs up what runs on one that nobody has open. It may be the first thing that runs.
func TestDropbearProgramInPlaceOfTheShell(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		sshdtest.Skip(t, "%v", err)
	}
	server := sshdtest.StartDropbear(t, sshdtest.Options{})
	tr := dial(t, server, server.Port)
	for _, shell := range allShells {
		s := open(t, tr, session.Config{Shell: shell})
		r, err := s.Run(t.Context(), session.Command{
			Text:    `exec sh -c 'find /proc/[0-9]*/fd -lname "/dev/$(ps -o tty= -p $$)" 2>/dev/null | grep -q . && exit 3'`,
			Timeout: 20 * time.Second,
		})
		if r.Verdict != session.Exited || r.ExitCode != 3 || !r.Ended {
			t.Errorf("%s: %s %d %q, %v: nobody has the terminal", shell, r.Verdict, r.ExitCode, r.Stderr, err)
		}
		s.Close()
	}
}
