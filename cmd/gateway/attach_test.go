package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
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

// A daemonHome is a home with a daemon of its own, in which a session is open.
func daemonHome(t *testing.T) string {
	t.Helper()
	home, err := os.MkdirTemp("", "gw") // short: there is a socket in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		gatewayIn(t, home, "serve", "--stop", "--force")
		os.RemoveAll(home)
	})
	if err := os.MkdirAll(filepath.Join(home, ".config", "gateway"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".config", "gateway", "config.yaml"), []byte("socket: "+home+"/run/s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := gatewayIn(t, home, "session", "open", "localhost", "--name", "work"); out != "work\n" {
		t.Fatalf("session open: %q", out)
	}
	return home
}

// gatewayIn runs gateway without a terminal, and returns all that it says.
func gatewayIn(t *testing.T, home string, args ...string) string {
	t.Helper()
	cmd := exec.Command("gateway", args...)
	cmd.Env = environ(home)
	out, _ := cmd.CombinedOutput() // of a status that is not 0
	return string(out)
}

func TestAttach(t *testing.T) {
	home := daemonHome(t)
	p := atHome(t, home, "session", "attach", "work")
	p.expect("work:")
	p.press("cd /usr; echo $TERM; stty size\r")
	p.expect("xterm\r\n24 80\r\n")
	p.expect("work:/usr$ ")
	p.press("read -p 'name? ' a; echo \"<$a>\"\r")
	p.expect("\nname? ")
	p.press("anna\r")
	p.expect("anna\r\n<anna>\r\n")
	p.expect("work:/usr$ ")
	p.press("given up\x03")
	p.expect("work:/usr$ ")
	p.press("printf mid\r")
	p.expect("\nmid\r\nwork:/usr$ ")
	p.press("echo one \\\rtwo\r")
	p.expect("\none two\r\n")
	p.expect("work:/usr$ ")

	// Others are told who has it.
	if out := gatewayIn(t, home, "session", "exec", "work", "true"); !strings.Contains(out, "session.busy: daemon: ") || !strings.Contains(out, "has attached to session work") {
		t.Errorf("exec meanwhile: %q", out)
	}
	if out := gatewayIn(t, home, "session", "send", "work", "x"); !strings.Contains(out, "has attached to session work") {
		t.Errorf("send meanwhile: %q", out)
	}
	second := atHome(t, home, "session", "attach", "work")
	second.expect("has attached to session work")
	second.leaves(1)

	p.press("\x04")
	p.expect("gateway: detached from work; it goes on")
	p.leaves(0)
	if out := gatewayIn(t, home, "session", "exec", "work", "pwd"); out != "/usr\n" {
		t.Errorf("afterwards: %q", out)
	}
}

// A command goes on in the next line until it is complete, and is sent as one.
func TestAttachUnfinished(t *testing.T) {
	p := atHome(t, daemonHome(t), "session", "attach", "work")
	p.expect("work:")
	for _, test := range []struct {
		typed []string
		want  string
	}{
		{[]string{"cat <<X", "one  $((1+1))", "X"}, "one  2\r\n"},
		{[]string{"for i in 1 2", "do", "echo =$i", "done"}, "=1\r\n=2\r\n"},
		{[]string{"echo 'x", "y'"}, "x\r\ny\r\n"},
		{[]string{"echo a |", "tr a b"}, "b\r\n"},
		{[]string{"true &&", "echo 'a", "b' \\", "c"}, "a\r\nb c\r\n"},
	} {
		for _, line := range test.typed[:len(test.typed)-1] {
			p.press(line + "\r")
			p.expect(line + "\r\n> ")
		}
		p.press(test.typed[len(test.typed)-1] + "\r")
		p.expect("\r\n" + test.want)
		p.expect("work:")
	}

	p.press("echo 'given\r")
	p.expect("\r\n> ")
	p.press("up\x03")
	p.expect("work:")
	p.press("echo fr''esh; fi\r") // it is wrong, and not incomplete
	p.expect("syntax error")
	p.expect("work:")

	p.press("cat <<X\r")
	p.expect("\r\n> ")
	p.press("half\r\x04echo beh''ind\r")
	p.expect("\r\nhalf\r\n")
	p.expect("\r\nbehind\r\n")
	p.expect("work:")
	p.press("\x1b[A\r") // the history is still there
	p.expect("\r\nbehind\r\n")
	p.expect("work:")
	p.press("\x04")
	p.expect("gateway: detached")
	p.leaves(0)
}

func TestAttachInterrupts(t *testing.T) {
	p := atHome(t, daemonHome(t), "session", "attach", "work")
	p.expect("$ ")
	p.press("sh -c 'echo u''p; exec sleep 60'\r")
	p.expect("up\r\n")
	p.press("\x03")
	between := p.expect("work:")
	if strings.Contains(between, "stty") {
		t.Errorf("the terminal shows %q", between)
	}
	p.press("exit 3\r")
	p.expect("gateway: session work is closed: its shell ended with status 3")
	p.leaves(0)
}

// What runs on the terminal goes on without the person, and is there again.
func TestAttachAgain(t *testing.T) {
	home := daemonHome(t)
	p := atHome(t, home, "session", "attach", "work")
	p.expect("$ ")
	p.press("read -p 'name? ' a; echo \"<$a>\"; cat\r")
	p.expect("\nname? ")
	p.press("an\r~.")
	p.expect("detached")
	p.leaves(0)
	p = atHome(t, home, "session", "attach", "work")
	p.expect("<an>")
	p.press("more\r")
	p.expect("more\r\nmore\r\n")
	p.press("\x04")
	p.expect("work:")
	p.press("\x04")
	p.leaves(0)
}

// A command that is not on the terminal is followed; its prompt can be answered
// and it can be interrupted.
func TestAttachToPlainCommand(t *testing.T) {
	home := daemonHome(t)
	gatewayIn(t, home, "session", "exec", "work", "--wait", "20s", "--", `read -s -p "secret? " a </dev/tty; echo "${#a}"; sh -c "echo up; exec sleep 60"`)
	p := atHome(t, home, "session", "attach", "work")
	p.expect("secret? ")
	p.press("xyzzz\x7f!\r")
	if shown := p.expect("5\r\n"); strings.Contains(shown, "xyz") {
		t.Errorf("the terminal shows %q", shown)
	}
	p.expect("up\r\n")
	p.press("\x03")
	p.expect("work:")
	p.press("\x04")
	p.leaves(0)
}

// An answer that is refused is not the last one.
func TestAttachAnswersAgain(t *testing.T) {
	home := daemonHome(t)
	gatewayIn(t, home, "session", "exec", "work", "--wait", "20s", "--", `read -s -p "secret? " a </dev/tty; echo "${#a}"`)
	p := atHome(t, home, "session", "attach", "work")
	p.expect("\r\nsecret? ") // behind the line that says what runs
	p.press("\xff\r")        // it is no text
	p.expect("gateway: usage: ")
	p.press("xyzz\u00fc\x7f!\r")
	p.expect("5\r\n")
	p.expect("work:")
	p.press("\x04")
	p.leaves(0)
}

func TestAttachReadOnly(t *testing.T) {
	home := daemonHome(t)
	p := atHome(t, home, "session", "attach", "work", "--read-only")
	p.waitNoEcho()
	p.expect("gateway: you watch work; q or ^C leaves\r\n")
	for !strings.Contains(p.text(), "seen") { // until it follows
		gatewayIn(t, home, "session", "exec", "work", "echo", "seen")
	}
	p.expect("$ echo seen\r\nseen\r\n")
	gatewayIn(t, home, "session", "exec", "work", "echo one\necho two")
	p.expect("$ echo one\r\necho two\r\none\r\n")
	p.press("q")
	p.expect("detached")
	p.leaves(0)
}

func TestAttachEndsWithSignal(t *testing.T) {
	p := atHome(t, daemonHome(t), "session", "attach", "work")
	p.expect("$ ")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.leaves(143)
}

// text returns all that the terminal has shown.
func (p *person) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.seen)
}

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
			if err := p.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
		}
		if len(test.signals) > 1 {
			p.expect("gateway: the command goes on\r\nhint: its id is s-")
		}
		_ = p.cmd.Wait()
		if got := p.cmd.ProcessState.ExitCode(); !slices.Contains(test.statuses, got) {
			t.Errorf("%v: status %d, want one of %d", test.signals, got, test.statuses)
		}
		if out := gatewayIn(t, home, "session", "list"); !strings.Contains(out, " running ") {
			t.Errorf("%v: the command does not go on: %s", test.signals, out)
		}
		if err := os.WriteFile(stop, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		gatewayIn(t, home, "session", "wait", "work", "--timeout", "20s")
		if out := gatewayIn(t, home, "session", "read", "work", "--tail", "1"); out != "done\n" {
			t.Errorf("%v: the output is %q", test.signals, out)
		}
	}
}

// A key comes back within the time in which nobody notices.
func TestAttachIsQuick(t *testing.T) {
	p := atHome(t, daemonHome(t), "session", "attach", "work")
	p.expect("$ ")
	p.press("echo re''ady; cat\r")
	p.expect("ready\r\n")
	const keys = 50
	begun := time.Now()
	for range keys {
		p.press("x")
		p.expect("x")
	}
	if mean := time.Since(begun) / keys; mean > 100*time.Millisecond { // a loaded machine has its own time
		t.Errorf("a key takes %v, want less than 100ms", mean)
	} else {
		t.Logf("a key takes %v", mean)
	}
	p.press("\x03")
	p.expect("work:")
	p.press("\x04")
	p.leaves(0)
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
	c := client.New(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(home, "run", "s"))
	}, "")
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
	if err := c.Send(t.Context(), "work", api.Input{Text: "mine", Enter: true, Command: next.ID}); err != nil {
		t.Fatal(err)
	}
	waited, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)})
	if err != nil || waited.Command.Result == nil || string(waited.Command.Result.Stdout) != "<mine>\n" {
		t.Errorf("Wait = %+v, %v, want it to have read what was typed to it", waited.Command, err)
	}
}

// Who reads slowly is not told that the command is over, and asks.
func TestEndThatIsMissed(t *testing.T) {
	t.Parallel()
	home := daemonHome(t)
	c := client.New(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(home, "run", "s"))
	}, "")
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
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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

// What went wrong before somebody attaches is not told to them as if it did now.
func TestAttachBehindFailure(t *testing.T) {
	home := daemonHome(t)
	gatewayIn(t, home, "session", "exec", "work", "--timeout", "100ms", "--", "sleep 60")
	p := atHome(t, home, "session", "attach", "work")
	p.expect("work:")
	p.press("echo fr''esh\r")
	p.expect("\r\nfresh\r\n")
	if shown := p.text(); strings.Contains(shown, "cmd.timeout") {
		t.Errorf("the terminal shows %q", shown)
	}
	p.expect("work:")
	p.press("\x04")
	p.leaves(0)
}
