package integration

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/internal/sshdtest"
)

// A house is an account with a daemon of its own.
type house struct {
	*user
	socket string
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{newUser(t, "hosts: {}\n"), filepath.Join(sshdtest.ShortDir(t), "run", "s")}
	h.env = append(h.env, "GATEWAY_SOCKET="+h.socket)
	t.Cleanup(func() { h.gateway(t, "serve", "--stop", "--force") })
	return h
}

// serve runs the daemon in the foreground until it listens.
func (h *house) serve(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := h.command(t, "serve", "--foreground", "--log-level", "info")
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	if !lines.Scan() {
		t.Fatal("the daemon says nothing")
	}
	go func() { // ends with the daemon
		for lines.Scan() {
		}
	}()
	return cmd
}

// ends waits for the daemon, and wants a status.
func ends(t *testing.T, cmd *exec.Cmd, status int, limit time.Duration) {
	t.Helper()
	begun := time.Now()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got, took := cmd.ProcessState.ExitCode(), time.Since(begun); got != status || took > limit {
		t.Errorf("the daemon ended with %d after %v, want %d within %v", got, took, status, limit)
	}
}

// session opens a session on this machine, in which a command runs.
func (h *house) session(t *testing.T, command string) (*client.Client, api.Session) {
	t.Helper()
	c := client.At(h.socket, "")
	t.Cleanup(c.Release)
	s, err := c.Open(t.Context(), api.Open{Target: gateway.Target{Name: "localhost", Local: true}}, gateway.Caller{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context(), s.ID, api.Run{Text: command}); err != nil {
		t.Fatal(err)
	}
	if w, err := c.Wait(t.Context(), s.ID, api.Wait{Until: api.UntilMatch, Match: "up", Max: api.Duration(10 * time.Second)}); err != nil || !w.Met {
		t.Fatalf("the command does not start: %+v, %v", w, err)
	}
	return c, s
}

func TestDaemonIsNotStoppedWithSessions(t *testing.T) {
	h := newHouse(t)
	if o := h.gateway(t, "serve"); o.status != 0 || !strings.Contains(o.stdout, h.socket) {
		t.Fatalf("serve: %+v", o)
	}
	mark := tag(t)
	c, s := h.session(t, "export "+mark+"; echo up; sleep 300")
	o := h.gateway(t, "serve", "--stop")
	if o.status != 1 || !strings.Contains(o.stderr, "session.busy: daemon: it has 1 open session and 0 requests") || !strings.Contains(o.stderr, "--force") {
		t.Errorf("serve --stop: %+v", o)
	}
	if s, err := c.Session(t.Context(), s.ID); err != nil || s.State != api.Running {
		t.Errorf("the session: %+v, %v", s, err)
	}
	if o := h.gateway(t, "serve", "--stop", "--force"); o.status != 0 || !strings.HasSuffix(o.stdout, "has ended\n") {
		t.Errorf("serve --stop --force: %+v", o)
	}
	gone(t, mark)
}

// On TERM a command may end, its session is closed in order, and the status is 0.
func TestDaemonDrainsOnTerm(t *testing.T) {
	h := newHouse(t)
	daemon := h.serve(t)
	file := filepath.Join(h.home, "done")
	_, s := h.session(t, "echo up; sleep 1; echo done >"+file)
	send(t, daemon, syscall.SIGTERM)
	ends(t, daemon, 0, 8*time.Second)
	if text, err := os.ReadFile(file); string(text) != "done\n" {
		t.Errorf("the command was cut: %q, %v", text, err)
	}
	if _, err := os.Lstat(h.socket); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	h.wantState(t, s, api.Closed)
}

// The second signal does not wait, and leaves nothing running.
func TestDaemonLeavesOnSecondSignal(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	daemon := h.serve(t)
	mark := tag(t)
	h.session(t, "export "+mark+"; echo up; sleep 300")
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} { // equal ones may become one
		send(t, daemon, signal)
	}
	var exit *exec.ExitError
	if err := daemon.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 143 && exit.ExitCode() != 130 {
		t.Errorf("the daemon ended with %v, want 143 or 130", err)
	}
	gone(t, mark)
	if o := h.gateway(t, "serve"); o.status != 0 {
		t.Errorf("the socket that was left is in the way: %+v", o)
	}
}

// A daemon that is killed leaves nothing running, and its sessions are known.
func TestDaemonIsKilled(t *testing.T) {
	h := newHouse(t)
	daemon := h.serve(t)
	mark := tag(t)
	_, s := h.session(t, "export "+mark+"; echo up; sleep 300")
	must(t, daemon.Process.Kill())
	_ = daemon.Wait() // killed
	gone(t, mark)
	h.wantState(t, s, api.Lost)
}

// wantState asks a new daemon what became of a session.
func (h *house) wantState(t *testing.T, s api.Session, want api.State) {
	t.Helper()
	if o := h.gateway(t, "serve"); o.status != 0 {
		t.Fatalf("serve: %+v", o)
	}
	c := client.At(h.socket, "")
	defer c.Release()
	if got, err := c.Session(t.Context(), s.ID); err != nil || got.State != want {
		t.Errorf("the session is %+v, %v, want %s", got, err, want)
	}
}
