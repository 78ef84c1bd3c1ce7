package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
)

// oneSided is a machine whose side channel is refused once the shell is there.
type oneSided struct {
	transport.Transport
	up func()
}

var errRefused = errors.New("refused")

func (o oneSided) Pipe(context.Context, string) (*transport.Pipe, error) {
	o.up()
	return nil, errRefused
}

// TestFailedOpenLeavesNothing: the shell is there, the session does not come
// about, and the connection lives on.
func TestFailedOpenLeavesNothing(t *testing.T) {
	for _, f := range farMachines(t) {
		t.Run(f.name, func(t *testing.T) {
			tr := dial(t, f.server, f.link.Port())
			neighbour := open(t, tr, session.Config{})
			_, id, _ := strings.Cut(tag(t), "=")
			mark := "GATEWAY_SESSION=" + id
			up := func() { eventually(t, "the shell is there", func() bool { return tagged(mark) > 0 }) }
			if _, err := session.Open(t.Context(), oneSided{tr, up}, session.Config{ID: id}); !errors.Is(err, errRefused) {
				t.Errorf("Open = %v, want the refusal", err)
			}
			gone(t, mark)
			if r, err := neighbour.Run(t.Context(), session.Command{Text: "echo on"}); err != nil || string(r.Stdout) != "on\n" {
				t.Errorf("the neighbour: %q, %v", r.Stdout, err)
			}
		})
	}
}

// TestNextSessionEndsWhatASilentLinkLeft: the link falls silent under a command,
// and the machine is not told. The next session there ends what was left, and
// nothing else: neither what was meant to stay, nor the sessions of this process
// and of another one.
func TestNextSessionEndsWhatASilentLinkLeft(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, f := range farMachines(t) {
		for i, text := range []string{
			"sleep 1000",
			"trap : HUP; while :; do sleep 1000; done", // the shell does not listen
			"seq 1 1000000000",                         // the keeper's pipe is full
			"# " + strings.Repeat("x", 1<<20) + "\nsleep 1000",
		} {
			if i > 0 && f.name == "dropbear" { // what it runs is openssh's
				continue
			}
			t.Run(fmt.Sprintf("%s/%.20q", f.name, text), func(t *testing.T) { f.clearsUp(t, text) })
		}
	}
}

func (f far) clearsUp(t *testing.T, text string) {
	dir, stays := t.TempDir(), tag(t)
	allow := func() { os.WriteFile(filepath.Join(dir, "go"), nil, 0o600) }
	defer gone(t, stays)
	defer allow()
	u := newUser(t, "hosts:\n  near: "+f.pinned(f.server.Port)+"\n  far: "+f.pinned(f.link.Port())+"\n")
	ledger := filepath.Join(u.home, ".local/state/gateway/open")
	inventory, err := hosts.Load(filepath.Join(u.home, ".config/gateway/hosts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	g := gateway.New(gateway.Config{Inventory: inventory, LedgerDir: ledger})
	defer g.Close()

	until := "until [ -e " + dir + "/go ]; do sleep 0.02; done"
	wait := "echo >>" + dir + "/up; " + until + "; echo on"
	mine := make(chan gateway.Result, 1)
	go func() { mine <- g.Exec(context.WithoutCancel(t.Context()), "near", gateway.Command{Text: wait}) }()
	other := make(chan outcome, 1)
	command := u.command(t, "exec", "near", "--", wait)
	go func() { other <- outcomeOf(t, command) }()
	eventually(t, "both neighbours run", func() bool { b, _ := os.ReadFile(filepath.Join(dir, "up")); return len(b) == 2 })

	lost := make(chan gateway.Result, 1)
	go func() {
		lost <- g.Exec(context.WithoutCancel(t.Context()), "far", gateway.Command{Text: "echo $SSH_CONNECTION >" + dir + "/new; sleep 1000 & sleep 1000 & " +
			"while :; do echo >>" + dir + "/log; sleep 0.02; done & " +
			"(export " + stays + "; nohup sh -c '" + until + "' >/dev/null 2>&1 &); " +
			"mv " + dir + "/new " + dir + "/connection; " + text})
	}()
	var connection string
	eventually(t, "the command runs", func() bool {
		b, err := os.ReadFile(filepath.Join(dir, "connection"))
		connection = "SSH_CONNECTION=" + strings.TrimSpace(string(b))
		return err == nil
	})
	if strings.HasPrefix(text, "seq") {
		eventually(t, "the nohup job is there", func() bool { return tagged(stays) > 0 })
	}
	f.link.Cut(netsim.Hang)
	if r := <-lost; r.Verdict != session.Unknown {
		t.Fatalf("got %s, %v, want unknown", r.Verdict, r.Err)
	}
	keepers := keepersOf(connection)
	if left := without(connection, stays); len(left) < 4 || len(keepers) == 0 {
		t.Fatalf("the processes %q and the directories %q: the machine should not know yet", left, keepers)
	}

	begun := time.Now()
	if r := g.Exec(t.Context(), "near", gateway.Command{Text: "true"}); r.Verdict != session.Exited {
		t.Errorf("the next: %s, %v", r.Verdict, r.Err)
	}
	soon(t, "only what was meant to stay is left", func() bool { return len(without(connection, stays)) == 0 })
	if t.Failed() {
		t.Log(without(connection, stays))
	}
	soon(t, "no directory left", func() bool {
		return !slices.ContainsFunc(keepers, func(dir string) bool { _, err := os.Lstat(dir); return err == nil })
	})
	t.Logf("after %v", time.Since(begun))
	if tagged(stays) == 0 {
		t.Error("what was meant to stay is gone")
	}
	allow()
	if r := <-mine; r.Verdict != session.Exited || string(r.Stdout) != "on\n" {
		t.Errorf("the neighbour: %s %q, %v", r.Verdict, r.Stdout, r.Err)
	}
	(<-other).want(t, 0, "on\n", "")
	// An entry that could not be looked after is left to a later session, which waits
	// for that, however short its command is.
	for deadline := time.Now().Add(40 * time.Second); !empty(ledger); {
		if r := g.Exec(t.Context(), "near", gateway.Command{Text: "true"}); r.Err != nil || time.Now().After(deadline) {
			t.Fatalf("the ledger is not empty, %v", r.Err)
		}
	}
}

// TestNextSessionEndsAnOpening: the link falls silent after so many bytes of an
// opening, when the far side knows little of the session.
func TestNextSessionEndsAnOpening(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, f := range farMachines(t) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			c, left := undisturbed(t, phaseMachine{far: f}), 0
			for part := int64(0); part < 4; part++ {
				t.Run(fmt.Sprint(part), func(t *testing.T) {
					f := f.ownLink(t)
					inventory, err := hosts.Parse("hosts.yaml", []byte("hosts:\n  near: "+f.pinned(f.server.Port)+"\n  far: "+f.pinned(f.link.Port())+"\n"))
					if err != nil {
						t.Fatal(err)
					}
					ledger := t.TempDir()
					g := gateway.New(gateway.Config{Inventory: inventory, LedgerDir: ledger})
					defer g.Close()
					f.link.Truncate(netsim.Down, c.dialDown+c.openDown*part/4, netsim.Hang)
					if r := g.Exec(t.Context(), "far", gateway.Command{Text: "true"}); r.Verdict != session.NotStarted {
						t.Fatalf("got %s, %v, want not_started", r.Verdict, r.Err)
					}
					left += len(sessionsOf(f.server.Port))
					if r := g.Exec(t.Context(), "near", gateway.Command{Text: "true"}); r.Verdict != session.Exited {
						t.Errorf("the next: %s, %v", r.Verdict, r.Err)
					}
					soon(t, "nothing of a session is left", func() bool { return len(sessionsOf(f.server.Port)) == 0 })
					if t.Failed() {
						t.Log(sessionsOf(f.server.Port))
					}
					f.clean(t)
				})
			}
			if left == 0 {
				t.Errorf("%s: there was nothing to end", f.name)
			}
		})
	}
}

// sessionsOf returns the command lines of what sessions on a server's port have
// started.
func sessionsOf(port int) []string {
	return processes(func(env []string) bool { return isOnPort(env, port) })
}

func isOnPort(env []string, port int) bool {
	return slices.ContainsFunc(env, func(entry string) bool {
		return strings.HasPrefix(entry, "SSH_CONNECTION=") && strings.HasSuffix(entry, fmt.Sprintf(" 127.0.0.1 %d", port))
	})
}

// pinned is the machine as a host of the inventory, with a keepalive that is
// soon through.
func (f far) pinned(port int) string {
	return fmt.Sprintf("{addr: %s, port: %d, user: %s, identity: %s, host_key: %q, agent: false, keepalive: 200ms, connect_timeout: 2s}",
		f.server.Host, port, f.server.User, f.server.KeyFile, pin(f.server))
}

func pin(server *sshdtest.Server) string { return gossh.FingerprintSHA256(server.HostKey) }

// without returns the command lines of the processes that have one word in
// their environment and not another.
func without(tag, other string) []string {
	return processes(func(env []string) bool { return slices.Contains(env, tag) && !slices.Contains(env, other) })
}

// processes returns the command lines of those whose environment matches.
func processes(matches func(env []string) bool) []string {
	var found []string
	for _, dir := range withEnv(matches) {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		found = append(found, fmt.Sprintf("%.80q", line))
	}
	return found
}

// withEnv returns the directories in /proc of those processes.
func withEnv(matches func(env []string) bool) (dirs []string) {
	for _, file := range sshdtest.ProcFiles("environ") {
		if env, _ := os.ReadFile(file); matches(strings.Split(string(env), "\x00")) {
			dirs = append(dirs, filepath.Dir(file))
		}
	}
	return dirs
}

// keepersOf returns the directories of a connection's keepers.
func keepersOf(connection string) []string {
	var found []string
	for _, link := range sshdtest.ProcFiles("fd/8") {
		target, _ := os.Readlink(link)
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "../environ"))
		if dir, ok := strings.CutSuffix(target, "/r"); ok && slices.Contains(strings.Split(string(env), "\x00"), connection) {
			found = append(found, dir)
		}
	}
	return found
}
