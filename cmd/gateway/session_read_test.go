package main

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/daemon/api"
	"gateway/daemon/client"
)

// Who reads slowly is not told that the command is over, and asks.
func TestEndThatIsMissed(t *testing.T) {
	t.Parallel()
	home := daemonHome(t)
	c := client.At(filepath.Join(home, "run", "s"), "")
	defer c.Release()
	run := func(text string, wait time.Duration) api.Command {
		t.Helper()
		command, err := c.Run(t.Context(), "work", api.Run{Text: text, Wait: api.Duration(wait)})
		if err != nil {
			t.Fatal(err)
		}
		return command
	}
	const size = 3_000_000 // more than pipes and sockets hold
	goOn := filepath.Join(home, "go")
	long := run(fmt.Sprintf("echo up; until test -e %s; do sleep 0.01; done; head -c %d /dev/zero", goOn, size), time.Millisecond)
	cmd := exec.CommandContext(t.Context(), "gateway", "session", "read", long.ID, "--follow")
	cmd.Env = environ(home)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	must(t, cmd.Start())
	if _, err := io.ReadFull(out, make([]byte, len("up\n"))); err != nil {
		t.Fatal(err)
	}
	write(t, goOn, "")
	if w, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Command: long.ID, Max: api.Duration(20 * time.Second)}); err != nil || !w.Met {
		t.Fatalf("Wait = %+v, %v", w, err)
	}
	for range 150 {
		run("echo later", 20*time.Second)
	}
	s := &takeover{app: newApp(nil), client: c, command: &long, done: make(chan struct{}), keyboard: newKeyboard(nil)}
	s.event(t.Context(), api.Event{Event: "dropped", Missed: 1})
	select {
	case <-s.ready():
	default:
		t.Error("the person still waits for it")
	}
	over := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer over.Stop()
	rest, err := io.ReadAll(out)
	if err != nil || len(rest) != size || bytes.Contains(rest, []byte("later")) {
		t.Errorf("%v, got %d bytes, want %d", err, len(rest), size)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("session read: %v", err)
	}
}

// TestReadAtTerminal: what has been on a terminal once does not ask the one of who reads
// it later, whose answer would be typed there.
func TestReadAtTerminal(t *testing.T) {
	home := daemonHome(t)
	gatewayIn(t, home, "session", "exec", "work", "--", `printf '\033[6nout\033[?1049h\n'; printf '\033[cerr\n' >&2`)
	p := atHome(t, home, "session", "read", "work")
	p.expect("out")
	p.leaves(0)
	if got := p.text(); strings.Contains(got, "\x1b") || !strings.Contains(got, "err") {
		t.Errorf("the terminal shows %q", got)
	}
	if got := gatewayIn(t, home, "session", "read", "work", "--stream", "stdout"); got != "\x1b[6nout\x1b[?1049h\n" {
		t.Errorf("elsewhere: %q", got)
	}
}
