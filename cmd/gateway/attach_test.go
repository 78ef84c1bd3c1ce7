package main

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/daemon/api"
	"gateway/internal/sshdtest"
	"gateway/session"
)

// A socketHome is a home whose name is short enough for the daemon's socket in it.
func socketHome(t *testing.T) string {
	t.Helper()
	home := sshdtest.ShortDir(t)
	write(t, filepath.Join(home, ".config/gateway/config.yaml"), "socket: "+home+"/run/s\n")
	return home
}

// A daemonHome is a home with a daemon of its own, in which a session is open.
func daemonHome(t *testing.T) string {
	t.Helper()
	home := socketHome(t)
	t.Cleanup(func() { gatewayIn(t, home, "serve", "--stop", "--force") })
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
	send(t, p.cmd, syscall.SIGTERM)
	p.leaves(143)
}

// text returns all that the terminal has shown.
func (p *person) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.seen)
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

// Of a daemon that does not answer nobody knows whether anything goes on there.
func TestDetachUnheard(t *testing.T) {
	s := api.Session{ID: "s-1", Name: "work", State: api.Idle, Cwd: "/"}
	stays := func(line any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			answer(w, line)
			<-r.Context().Done()
		}
	}
	home := madeUp(t, map[string]http.HandlerFunc{
		"GET /v1/sessions/{name}":               func(w http.ResponseWriter, _ *http.Request) { answer(w, s) },
		"GET /v1/sessions/{name}/screen":        func(w http.ResponseWriter, _ *http.Request) { answer(w, session.Screen{}) },
		"GET /v1/sessions/{name}/stream":        stays(api.Event{Event: "alive"}),
		"POST /v1/sessions/{name}/attachment":   stays(api.Attached{Session: s, Attachment: "a"}),
		"DELETE /v1/sessions/{name}/attachment": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	})
	p := atHome(t, home, "session", "attach", "work")
	p.expect("work:/$ ")
	p.press("\x04")
	p.expect("gateway: daemon.unreachable: ")
	p.leaves(statusFailed)
}
