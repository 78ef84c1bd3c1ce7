package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"gateway/gateway"
	"gateway/session"
)

// A person sits at a terminal in which gateway runs.
type person struct {
	t        *testing.T
	terminal *os.File // what the person types into
	far      *os.File // gateway's side
	before   *term.State
	cmd      *exec.Cmd

	mu   sync.Mutex
	seen []byte        // guarded by mu
	read int           // guarded by mu: how far expect has got
	more chan struct{} // a new piece is there
}

// at starts gateway at a terminal.
func at(t *testing.T, args ...string) *person {
	t.Helper()
	return atHome(t, t.TempDir(), args...)
}

// atHome is at with a home of the test's own.
func atHome(t *testing.T, home string, args ...string) *person {
	t.Helper()
	return starts(t, home, "gateway", args...)
}

// starts starts a program at a terminal.
func starts(t *testing.T, home, program string, args ...string) *person {
	t.Helper()
	heedHangUps()
	near, far, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	must(t, pty.Setsize(near, &pty.Winsize{Rows: 24, Cols: 80}))
	before, err := term.GetState(int(far.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, terminal: near, far: far, before: before, more: make(chan struct{}, 1)}
	p.cmd = exec.Command(program, args...)
	p.cmd.Env = environ(home)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = far, far, far
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, p.cmd.Start())
	done := make(chan struct{})
	go func() { // ends when both sides are closed
		defer close(done)
		_, _ = io.Copy(p, near)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		far.Close()
		near.Close()
		<-done
	})
	return p
}

// Write takes what the terminal shows.
func (p *person) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, b...)
	select {
	case p.more <- struct{}{}:
	default:
	}
	return len(b), nil
}

// expect waits until the terminal shows text, behind what was expected before,
// and returns what stands between.
func (p *person) expect(text string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 20*time.Second)
	defer cancel()
	for {
		p.mu.Lock()
		if i := bytes.Index(p.seen[p.read:], []byte(text)); i >= 0 {
			between := string(p.seen[p.read : p.read+i])
			p.read += i + len(text)
			p.mu.Unlock()
			return between
		}
		seen := string(p.seen)
		p.mu.Unlock()
		select {
		case <-p.more:
		case <-ctx.Done():
			p.t.Fatalf("the terminal shows %q, want %q", seen, text)
		}
	}
}

func (p *person) press(keys string) {
	p.t.Helper()
	if _, err := io.WriteString(p.terminal, keys); err != nil {
		p.t.Fatal(err)
	}
}

// leaves waits for gateway's end with a status, and wants the terminal as it
// was before.
func (p *person) leaves(status int) {
	p.t.Helper()
	_ = p.cmd.Wait()
	if got := p.cmd.ProcessState.ExitCode(); got != status {
		p.t.Errorf("status %d, want %d; the terminal shows %q", got, status, p.text())
	}
	after, err := term.GetState(int(p.far.Fd()))
	if err != nil {
		p.t.Fatal(err)
	}
	if !reflect.DeepEqual(after, p.before) {
		p.t.Errorf("the terminal's modes are %v, want %v", after, p.before)
	}
}

func TestCommandOnTerminal(t *testing.T) {
	p := at(t, "exec", "-t", "localhost", `echo "term $TERM"; read -p "name? " a; echo "hello $a"; while [ "$(stty size)" = "24 80" ]; do :; done; stty size; exit 5`)
	p.expect("term xterm\r\n")
	p.expect("name? ")
	p.press("anna\r")
	p.expect("anna\r\nhello anna\r\n")
	must(t, pty.Setsize(p.terminal, &pty.Winsize{Rows: 50, Cols: 132}))
	p.expect("50 132\r\n")
	p.leaves(5)
}

// A terminal that changes its size while the host is being reached has that size there.
func TestResizedWhileConnecting(t *testing.T) {
	home := t.TempDir()
	up, goOn, shell := filepath.Join(home, "up"), filepath.Join(home, "go"), filepath.Join(home, "sh")
	write(t, shell, "#!/bin/sh\n: >"+up+"\nuntil [ -e "+goOn+" ]; do sleep 0.01; done\nexec /bin/sh \"$@\"\n")
	must(t, os.Chmod(shell, 0o700))
	p := atHome(t, home, "exec", "-t", "--shell", shell, "localhost", `until [ "$(stty size)" = "50 132" ]; do sleep 0.05; done; stty size`)
	appears(t, up)
	must(t, pty.Setsize(p.terminal, &pty.Winsize{Rows: 50, Cols: 132}))
	write(t, goOn, "")
	p.expect("50 132\r\n")
	p.leaves(0)
}

func TestKeysGoToTheCommandOnTerminal(t *testing.T) {
	p := at(t, "exec", "-t", "localhost", "echo ready; cat")
	p.expect("ready\r\n")
	p.press("up\r")
	p.expect("up\r\nup\r\n") // cat itself is there: a signal between fork and exec is lost
	p.press("\x03")
	p.leaves(130)
}

func TestSignalRestoresTerminal(t *testing.T) {
	p := at(t, "exec", "-t", "localhost", "echo up; sleep 60")
	p.expect("up")
	send(t, p.cmd, syscall.SIGTERM)
	p.leaves(143)
}

func TestCommandAsks(t *testing.T) {
	p := at(t, "exec", "localhost", `read -s -p "secret? " a </dev/tty; echo "[$a]"`)
	p.expect("secret? ")
	p.waitNoEcho()
	p.press("xyzzy\r")
	if shown := p.expect("[xyzzy]"); strings.Contains(shown, "xyzzy") {
		t.Errorf("the terminal shows %q", shown)
	}
	p.leaves(0)
}

// With CI=true nobody is asked, also at a terminal.
func TestNobodyIsAskedInCI(t *testing.T) {
	p := starts(t, t.TempDir(), "env", "CI=true", "gateway", "exec", "localhost", "--", "read -p 'name? ' a </dev/tty")
	p.expect(`gateway: cmd.needs_input: session: command waits for input at "name? "`)
	p.leaves(125)
}

// A command may be answered before it asks, as in any shell.
func TestCommandIsAnsweredAhead(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, syscall.Mkfifo(fifo, 0o600))
	p := at(t, "exec", "localhost", `echo up; read go <'`+fifo+`'; read -p "name? " a </dev/tty; echo "[$a]"`)
	p.expect("up\r\n")
	p.press("anna\r")
	p.expect("anna\r\n") // the terminal has it
	must(t, os.WriteFile(fifo, []byte("go\n"), 0))
	p.expect("[anna]")
	p.leaves(0)
}

// Wherever a command's question goes, the person sees it, and sees it once.
func TestQuestionIsSeen(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, flags, command string }{
		{"a terminal", "", `read -p "name? " a </dev/tty; echo "$a"`},
		{"stdout elsewhere", ">out", `read -p "name? " a </dev/tty; echo "$a"`},
		{"stdout elsewhere, with the question", ">out", `printf "name? "; read a </dev/tty; echo "$a"`},
		{"stderr elsewhere, with the question", "2>errs", `printf "name? " >&2; echo deploying; read a </dev/tty; echo "$a"`},
		{"stderr elsewhere", "2>errs", `printf "name? " >/dev/tty; read a </dev/tty; echo "$a"`},
		{"JSON", "-o json >out", `read -p "name? " a </dev/tty; echo "$a"`},
		{"events", "-o jsonl >out", `read -p "name? " a </dev/tty; echo "$a"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			home := t.TempDir()
			p := starts(t, home, "sh", "-c", `cd && exec gateway exec localhost `+test.flags+` -- "$0"`, test.command)
			p.expect("name? ")
			p.waitNoEcho()
			p.press("anna\r")
			p.leaves(0)
			if n := strings.Count(p.text(), "name? "); n != 1 {
				t.Errorf("the question is there %d times: %q", n, p.text())
			}
		})
	}
}

// A question that went elsewhere is put to the person whatever another stream
// shows behind it.
func TestQuestionElsewhere(t *testing.T) {
	near, far, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	defer far.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, test := range []struct {
		name           string
		stdout, stderr *os.File
		asks, says     session.Stream
		want           string
	}{
		{"on stderr", far, file, session.Stderr, session.Stdout, "name? "},
		{"on the terminal", far, file, session.Terminal, session.Stdout, "name? "},
		{"on stdout", file, far, session.Stdout, session.Stderr, "name? "},
		{"nowhere else", far, far, session.Stderr, session.Stdout, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &show{out: newOutput(test.stdout, test.stderr, &console{}, nil)}
			s.output(test.asks, []byte("\x1b[1mname? \x1b[0m"))
			s.output(test.says, []byte("deploying\r\n"))
			got := "not asked"
			ask := s.asker(func(_ context.Context, q gateway.Question) (string, error) {
				got = q.Prompt
				return "", nil
			})
			if _, err := ask(t.Context(), gateway.Question{Kind: gateway.AskCommand, Prompt: "name? "}); err != nil || got != test.want {
				t.Errorf("asked %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// What asks for sudo's password is not shown as it comes: it is gateway's own.
func TestSudoAsks(t *testing.T) {
	home := homeWith(t, "hosts:\n  localhost: {shell: sh}\n")
	bin := filepath.Join(home, "bin")
	write(t, filepath.Join(bin, "sudo"), `#!/bin/sh
while [ "$1" != -- ]; do [ "$1" != -p ] || prompt=$2; shift; done
shift
for i in 1 2; do
	stty -echo </dev/tty; printf %s "$prompt" >/dev/tty; read -r p </dev/tty; stty echo </dev/tty
	[ "$p" != xyzzy ] || exec "$@"
done
`)
	must(t, os.Chmod(filepath.Join(bin, "sudo"), 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	p := atHome(t, home, "exec", "localhost", "--sudo", "--", "echo reached")
	p.expect("sudo password for ")
	p.waitNoEcho()
	p.press("plugh\r")
	p.expect("Sorry, try again.\r\nsudo password for ")
	p.waitNoEcho()
	p.press("xyzzy\r")
	p.expect("reached\r\n")
	p.leaves(0)
}

// While gateway is stopped, a shell has the terminal and gives it modes of its own.
// What is typed behind that is shown no more than before, and the question is
// repeated.
func TestStoppedWhileAsked(t *testing.T) {
	for _, test := range []struct{ name, flags, again string }{
		{"a question that was shown", "", "an answer is awaited: "},
		{"a question that was not", ">out", "secret? "},
	} {
		t.Run(test.name, func(t *testing.T) {
			home := t.TempDir()
			p := starts(t, home, "sh", "-c", `cd && exec gateway exec localhost `+test.flags+` -- "$0"`, `printf "secret? "; read -s a </dev/tty; echo "$a" >'`+home+`/answer'`)
			p.expect("secret? ")
			p.waitNoEcho()
			send(t, p.cmd, syscall.SIGSTOP)
			var status syscall.WaitStatus
			for !status.Stopped() {
				if _, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil && !errors.Is(err, syscall.EINTR) {
					t.Fatal(err)
				}
			}
			must(t, term.Restore(int(p.far.Fd()), p.before))
			send(t, p.cmd, syscall.SIGCONT)
			p.expect(test.again)
			p.press("xyzzy\r")
			p.leaves(0)
			if answer, err := os.ReadFile(filepath.Join(home, "answer")); err != nil || string(answer) != "xyzzy\n" {
				t.Errorf("the answer is %q, %v", answer, err)
			}
			if shown := p.text(); strings.Contains(shown, "xyzzy") {
				t.Errorf("the terminal shows %q", shown)
			}
		})
	}
}

// waitNoEcho waits until the terminal does not show what is typed, that is,
// until gateway has the question.
func (p *person) waitNoEcho() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 20*time.Second)
	defer cancel()
	for {
		if now, err := term.GetState(int(p.far.Fd())); err != nil || !reflect.DeepEqual(now, p.before) {
			return
		}
		if ctx.Err() != nil {
			p.t.Fatal("the terminal still shows what is typed")
		}
	}
}

func TestNoAnswer(t *testing.T) {
	p := at(t, "exec", "localhost", `read -p "name? " a </dev/tty`)
	p.expect("name? ")
	p.waitNoEcho()
	p.press("\x04")
	p.expect("gateway: cmd.needs_input: ")
	p.leaves(125)
}

func TestInterruptWhileAsked(t *testing.T) {
	p := at(t, "exec", "localhost", `read -p "name? " a </dev/tty`)
	p.expect("name? ")
	p.waitNoEcho()
	p.press("\x03")
	p.leaves(130)
}

func TestInterruptKey(t *testing.T) {
	p := at(t, "exec", "localhost", `echo up; sleep 60`)
	p.expect("up\r\n")
	p.press("\x03")
	p.expect("^C\r\ngateway: cmd.interrupted: ")
	p.leaves(130)
}

// TestEchoAmidOutput: who sees a line may press ^C before the write of it has returned.
func TestEchoAmidOutput(t *testing.T) {
	near, far, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	defer far.Close()
	for name, stream := range map[string]func(*output) io.Writer{
		"stdout": func(o *output) io.Writer { return o }, "stderr": (*output).errors,
	} {
		o := newOutput(far, far, &console{}, nil)
		more := strings.Repeat("x\n", 1<<19) // than a terminal takes that nobody reads
		written := make(chan error, 1)
		go func() {
			_, err := io.WriteString(stream(o), more)
			written <- err
		}()
		if _, err := io.ReadFull(near, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		o.echoed()
		if _, err := io.CopyN(io.Discard, near, int64(len(more)/2*3-1)); err != nil { // "x\r\n"
			t.Fatal(err)
		}
		if err := <-written; err != nil || !o.midline {
			t.Errorf("%s: the ^C is forgotten, %v", name, err)
		}
	}
}

func TestShell(t *testing.T) {
	p := at(t, "shell", "localhost")
	p.press("echo re''ady; stty size\r")
	p.expect("ready")
	p.expect("24 80")
	p.press("exit 7\r")
	p.leaves(7)
}

func TestShellLeave(t *testing.T) {
	p := at(t, "shell", "localhost")
	p.press("echo re''ady\r")
	p.expect("ready")
	p.press("echo ~.\r") // not at the beginning of a line
	p.press("~~\r")
	p.expect("~")
	p.press("echo st''ill here\r")
	p.expect("still here")
	p.press("~.")
	p.leaves(statusUnknown)
}

func TestEscapes(t *testing.T) {
	tests := []struct {
		typed []string // pieces
		want  string
		leave bool
	}{
		{[]string{"~."}, "", true},
		{[]string{"~", "."}, "", true},
		{[]string{"ls\r", "~", ".more"}, "ls\r", true},
		{[]string{"ls~."}, "ls~.", false},
		{[]string{"~~."}, "~.", false},
		{[]string{"~~~."}, "~~.", false},
		{[]string{"~", "x~."}, "~x~.", false},
		{[]string{"~\r~."}, "~\r", true},
		{[]string{"\n~", "~\n~~"}, "\n~\n~", false},
	}
	for _, test := range tests {
		var e escapes
		var got []byte
		leave := false
		for _, piece := range test.typed {
			if leave {
				break
			}
			var typed []byte
			typed, leave = e.filter([]byte(piece))
			got = append(got, typed...)
		}
		if string(got) != test.want || leave != test.leave {
			t.Errorf("%q: %q, %v, want %q, %v", test.typed, got, leave, test.want, test.leave)
		}
	}
}
