package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/session"
)

func TestSessionCommandAsks(t *testing.T) {
	home := daemonHome(t)
	p := atHome(t, home, "session", "exec", "work", `read -s -p "secret? " a </dev/tty; echo "[$a]"`)
	p.expect("secret? ")
	p.waitNoEcho()
	p.press("xyzzy\r")
	p.expect("[*") // it is shown nowhere
	p.leaves(0)
	if out := gatewayIn(t, home, "session", "read", "work"); strings.Contains(out, "xyzzy") {
		t.Errorf("the transcript has it: %q", out)
	}
}

func TestSessionAnswer(t *testing.T) {
	home := daemonHome(t)
	gatewayIn(t, home, "session", "exec", "work", "--wait", "20s", "--", `read -s -p "secret? " a </dev/tty; (exit ${#a})`)
	p := atHome(t, home, "session", "answer", "work")
	p.expect("secret? ")
	p.waitNoEcho()
	p.press("xyzzy\r")
	p.leaves(0)
	if shown := p.text(); strings.Contains(shown, "xyzzy") {
		t.Errorf("the terminal shows %q", shown)
	}
	if out := gatewayIn(t, home, "session", "wait", "work", "--timeout", "20s"); !strings.HasPrefix(out, "exited 5: ") {
		t.Errorf("wait: %q", out)
	}
}

func TestSessionCommandIsInterrupted(t *testing.T) {
	home := daemonHome(t)
	p := atHome(t, home, "session", "exec", "work", `sh -c 'echo up; exec sleep 60'`)
	p.expect("up")
	p.press("\x03")
	p.leaves(130)
	if out := gatewayIn(t, home, "session", "exec", "work", "echo still here"); out != "still here\n" {
		t.Errorf("afterwards: %q", out)
	}
}

// The second signal leaves at once, and a hang-up does: the command goes on.
func TestSessionCommandOutlivesItsCall(t *testing.T) {
	t.Parallel()
	home := daemonHome(t)
	stop := filepath.Join(home, "stop")
	for _, test := range []struct {
		signals  []os.Signal
		statuses []int
	}{
		{[]os.Signal{syscall.SIGINT, syscall.SIGTERM}, []int{143, 130}}, // each may be the second to arrive
		{[]os.Signal{syscall.SIGHUP}, []int{129}},
		{[]os.Signal{syscall.SIGKILL}, []int{-1}},
	} {
		p := atHome(t, home, "session", "exec", "work", `sh -c 'trap "" INT; echo up; while [ ! -e `+stop+` ]; do sleep 0.01; done; rm `+stop+`; echo done'`)
		p.expect("up")
		for _, signal := range test.signals {
			send(t, p.cmd, signal)
		}
		if test.signals[0] != syscall.SIGKILL {
			p.expect(", and the command goes on\r\nhint: its id is s-")
		}
		_ = p.cmd.Wait()
		if got := p.cmd.ProcessState.ExitCode(); !slices.Contains(test.statuses, got) {
			t.Errorf("%v: status %d, want one of %d", test.signals, got, test.statuses)
		}
		if out := gatewayIn(t, home, "session", "list"); !strings.Contains(out, " running ") {
			t.Errorf("%v: the command does not go on: %s", test.signals, out)
		}
		write(t, stop, "")
		gatewayIn(t, home, "session", "wait", "work", "--timeout", "20s")
		if out := gatewayIn(t, home, "session", "read", "work", "--tail", "1"); out != "done\n" {
			t.Errorf("%v: the output is %q", test.signals, out)
		}
	}
}

// Signals end a call that the daemon tells nothing any more, and a program is told that
// the command may run.
func TestSessionCommandOfASilentDaemon(t *testing.T) {
	t.Parallel()
	leaves := func(t *testing.T, p *person, verdict, code string) {
		t.Helper()
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			send(t, p.cmd, signal)
		}
		p.expect(`"verdict":"` + verdict + `"`)
		p.expect(`"code":"` + code + `"`)
		_ = p.cmd.Wait()
		if got := p.cmd.ProcessState.ExitCode(); got != 130 && got != 143 { // each may be the second to arrive
			t.Errorf("status %d", got)
		}
	}
	t.Run("whose disk hangs", func(t *testing.T) {
		home := daemonHome(t)
		dirs, err := filepath.Glob(filepath.Join(home, ".local", "state", "gateway", "sessions", "*"))
		if err != nil || len(dirs) != 1 {
			t.Fatal(dirs, err)
		}
		record := filepath.Join(dirs[0], "commands.jsonl")
		must(t, syscall.Mkfifo(record, 0o600))
		p := atHome(t, home, "session", "exec", "work", "-o", "json", "true")
		until(t, "the daemon has got the command", func() bool { return strings.Contains(gatewayIn(t, home, "session", "list"), " running ") })
		leaves(t, p, "unknown", "link.lost")
		disk, err := os.OpenFile(record, os.O_RDWR, 0) // the daemon can end
		if err != nil {
			t.Fatal(err)
		}
		disk.Close()
	})
	t.Run("that is stopped", func(t *testing.T) {
		home := daemonHome(t)
		hello, err := client.At(filepath.Join(home, "run", "s"), "").Hello(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p := atHome(t, home, "session", "exec", "work", "-o", "jsonl", "sleep 60")
		p.expect(`"event":"start"`)
		must(t, syscall.Kill(hello.PID, syscall.SIGSTOP))
		t.Cleanup(func() { _ = syscall.Kill(hello.PID, syscall.SIGCONT) })
		leaves(t, p, "unknown", "cmd.interrupted")
	})
}

func TestSessionCommandOnTerminal(t *testing.T) {
	home := daemonHome(t)
	p := atHome(t, home, "session", "exec", "--tty", "work", `echo "$TERM $(stty size)"; read -p "name? " a; echo "hello $a"; exec 3>&1; (exit 5)`)
	p.expect("xterm 24 80\r\n")
	p.expect("name? ")
	p.press("anna\r")
	p.expect("anna\r\nhello anna\r\n")
	p.leaves(5)
	p = atHome(t, home, "session", "exec", "--tty", "work", "echo up; cat")
	p.expect("up\r\n")
	p.press("x\r")
	p.expect("x\r\nx\r\n")
	p.press("~.")
	p.expect("gateway: it still runs")
	p.leaves(statusRunning)
	p = atHome(t, home, "session", "attach", "work")
	p.expect("x")
	p.press("\x03")
	p.expect("work:")
	p.press("\x04")
	p.leaves(0)
}

// A ^C or a key that comes as the command ends is not for the next one, which
// may be somebody else's.
func TestSessionExecMeansItsCommand(t *testing.T) {
	home := daemonHome(t)
	c := client.At(filepath.Join(home, "run", "s"), "")
	defer c.Release()
	command := func(run api.Run) api.Command {
		t.Helper()
		command, err := c.Run(t.Context(), "work", run)
		if err != nil {
			t.Fatal(err)
		}
		return command
	}
	ended := command(api.Run{Text: "true", Wait: api.Duration(20 * time.Second)})
	next := command(api.Run{Text: `read -r x; echo "<$x>"`, TTY: true, Wait: api.Duration(time.Millisecond)})
	a := newApp(nil)
	e := &execution{app: a, client: c, session: "work", command: &ended, asked: func() {}}
	e.interrupt(t.Context(), string(session.Int))
	if err := e.press(t.Context(), []byte("e")); err == nil {
		t.Error("a key of the command that has ended is typed")
	}
	s := &takeover{app: a, client: c, session: api.Session{ID: ended.Session}, command: &ended}
	s.typed(t.Context(), []byte{3})
	s.asks = true
	s.typed(t.Context(), []byte("theirs\r"))
	must(t, c.Send(t.Context(), "work", api.Input{Text: "mine", Enter: true, Command: next.ID}))
	waited, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)})
	if err != nil || waited.Command.Result == nil || string(waited.Command.Result.Stdout) != "<mine>\n" {
		t.Errorf("Wait = %+v, %v, want it to have read what was typed to it", waited.Command, err)
	}
}

// A command that is refused leaves the terminal to the one that runs.
func TestRefusedCommandHasNoTerminal(t *testing.T) {
	home := daemonHome(t)
	gatewayIn(t, home, "session", "open", "localhost", "--name", "wide", "--cols", "132", "--rows", "50")
	goOn := filepath.Join(home, "go")
	gatewayIn(t, home, "session", "exec", "--tty", "--wait", "0", "wide", "--", fmt.Sprintf("until test -e %s; do sleep 0.01; done; stty size", goOn))
	p := atHome(t, home, "session", "exec", "--tty", "wide", "true")
	p.expect("gateway: session.busy: ")
	p.leaves(statusNotStarted)
	write(t, goOn, "")
	gatewayIn(t, home, "session", "wait", "wide", "--timeout", "20s")
	if out := gatewayIn(t, home, "session", "read", "wide"); !strings.HasPrefix(out, "50 132") {
		t.Errorf("the terminal of the one that runs is %q", out)
	}
}
