package daemon_test

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/internal/sshdtest"
	"gateway/transport"
)

var localhost = gateway.Target{Name: "localhost", Local: true}

// start starts a daemon on a socket of its own.
func start(t *testing.T, config daemon.Config) func(scope string) *client.Client {
	t.Helper()
	if config.StateDir == "" {
		config.StateDir = t.TempDir()
	}
	d, err := daemon.New(config)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "gw")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: d.Handler()}
	go server.Serve(l)
	var clients []*client.Client
	t.Cleanup(func() {
		for _, c := range clients {
			c.Release()
		}
		d.Drain(ended())
		server.Close()
		os.RemoveAll(dir)
	})
	return func(scope string) *client.Client {
		c := client.New(func(ctx context.Context) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", path)
		}, scope)
		clients = append(clients, c)
		return c
	}
}

// ended is a context that waits for nothing.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// open opens a session on this machine.
func open(t *testing.T, c *client.Client, o api.Open) api.Session {
	t.Helper()
	if o.Target.Name == "" {
		o.Target = localhost
	}
	s, err := c.Open(t.Context(), o, gateway.Caller{})
	if err != nil {
		t.Fatalf("Open = %v", err)
	}
	return s
}

// run runs a command to its end.
func run(t *testing.T, c *client.Client, name, text string) *gateway.Result {
	t.Helper()
	command, err := c.Run(t.Context(), name, api.Run{Text: text, Wait: api.Duration(20 * time.Second)})
	if err != nil || command.Result == nil {
		t.Fatalf("Run(%q) = %+v, %v", text, command, err)
	}
	return command.Result
}

func TestSessionKeepsItsStateBetweenCalls(t *testing.T) {
	dial := start(t, daemon.Config{})
	s := open(t, dial(""), api.Open{Name: "work"})
	if s.Name != "work" || s.State != api.Idle || s.Kind != api.PTY || s.Shell != "bash" || s.Cwd == "" {
		t.Errorf("opened %+v", s)
	}
	run(t, dial(""), "work", "cd /; v=kept; export w=too")
	r := run(t, dial(""), "work", `pwd; echo "$v $w" >&2; (exit 3)`)
	if string(r.Stdout) != "/\n" || string(r.Stderr) != "kept too\n" || r.ExitCode != 3 || r.Cwd != "/" || r.Host != "localhost" {
		t.Errorf("got %+v", r)
	}
	if s, err := dial("").Session(t.Context(), "work"); err != nil || s.Cwd != "/" || s.State != api.Idle || s.Command == nil || s.Command.ExitCode == nil || *s.Command.ExitCode != 3 {
		t.Errorf("Session = %+v, %v", s, err)
	}
}

func TestCommandOutlivesItsCaller(t *testing.T) {
	dial := start(t, daemon.Config{})
	open(t, dial(""), api.Open{Name: "work"})
	begun, err := dial("").Run(t.Context(), "work", api.Run{Text: "echo one; sleep 0.3; echo two"})
	if err != nil || begun.Over() {
		t.Fatalf("Run = %+v, %v", begun, err)
	}
	_, err = dial("").Run(t.Context(), "work", api.Run{Text: "echo never"})
	if gateway.Code(err) != "session.busy" || !strings.Contains(err.Error(), "echo one; sleep") {
		t.Errorf("a second command: %v, want busy with what", err)
	}
	waited, err := dial("").Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)})
	if err != nil || !waited.Met || string(waited.Command.Result.Stdout) != "one\ntwo\n" {
		t.Errorf("Wait = %+v, %v", waited, err)
	}
	again, err := dial("").Command(t.Context(), begun.ID, 0)
	if err != nil || again.Result == nil || string(again.Result.Stdout) != "one\ntwo\n" || again.From != 0 || again.To != 8 {
		t.Errorf("Command = %+v, %v", again, err)
	}
}

func TestOutputIsReadByCursor(t *testing.T) {
	dial := start(t, daemon.Config{})
	c := dial("")
	open(t, c, api.Open{Name: "work"})
	run(t, c, "work", "echo first")
	run(t, c, "work", "seq 1 50000; echo oops >&2")
	var whole []byte
	for at := int64(0); ; {
		o, err := c.Output(t.Context(), "work", api.Query{Since: at, Stream: "stdout", Max: 10000})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range o.Pieces {
			whole = append(whole, p.Data...)
		}
		if o.Next == at {
			break
		}
		at = o.Next
	}
	if !strings.HasPrefix(string(whole), "first\n1\n2\n") || !strings.HasSuffix(string(whole), "49999\n50000\n") {
		t.Errorf("read %d bytes, %.20q to %.20q", len(whole), whole, whole[len(whole)-20:])
	}
	o, err := c.Output(t.Context(), "work", api.Query{Stream: "stdout", Head: 6, Tail: 6})
	if err != nil || len(o.Pieces) != 2 || string(o.Pieces[0].Data) != "first\n" || string(o.Pieces[1].Data) != "50000\n" || o.Omitted != o.Total-12 {
		t.Errorf("Output = %+v, %v", o, err)
	}
	o, err = c.Output(t.Context(), "work", api.Query{Grep: "^4999[89]$|oops", Context: 1})
	if err != nil || o.Matches != 3 {
		t.Errorf("Output = %+v, %v", o, err)
	}
	if _, err := c.Output(t.Context(), "work", api.Query{Grep: "("}); gateway.Code(err) != "usage" {
		t.Errorf("a bad expression: %v", err)
	}
}

// The output of a command is not what another session has said meanwhile.
func TestOutputIsOfTheCommandsSession(t *testing.T) {
	c := start(t, daemon.Config{})("")
	a, b := open(t, c, api.Open{Name: "a"}), open(t, c, api.Open{Name: "b"})
	run(t, c, a.ID, "echo of a")
	r := run(t, c, b.ID, "echo of b")
	if o, err := c.Output(t.Context(), "b", api.Query{Command: r.ID}); err != nil || len(o.Pieces) != 1 || string(o.Pieces[0].Data) != "of b\n" {
		t.Errorf("Output = %+v, %v", o, err)
	}
	for range 2 { // while it is open, and afterwards
		if o, err := c.Output(t.Context(), "a", api.Query{Command: r.ID}); gateway.Code(err) != "session.not_found" {
			t.Errorf("Output = %+v, %v, want that there is no such command", o, err)
		}
		if _, err := c.Close(t.Context(), a.ID); err != nil && gateway.Code(err) != "session.closed" {
			t.Fatal(err)
		}
	}
}

func TestFollowTellsEverythingInOrder(t *testing.T) {
	dial := start(t, daemon.Config{})
	c := dial("")
	open(t, c, api.Open{Name: "work"})
	var got []string
	var connected sync.Once
	followed, follows := make(chan error, 1), make(chan struct{})
	go func() {
		followed <- dial("").Follow(t.Context(), "work", 0, func(e api.Event) error {
			connected.Do(func() { close(follows) })
			switch {
			case e.Piece != nil:
				got = append(got, e.Event+" "+string(e.Piece.Data))
			case e.Command != nil:
				got = append(got, e.Event+" "+e.Command.Text)
			default:
				got = append(got, e.Event)
			}
			return nil
		})
	}()
	run(t, c, "work", "echo a")
	run(t, c, "work", "echo b >&2")
	select {
	case <-follows: // a closed session can't be followed any more
	case err := <-followed:
		t.Fatalf("Follow = %v", err)
	}
	if s, err := c.Close(t.Context(), "work"); err != nil || s.State != api.Closed {
		t.Errorf("Close = %+v, %v", s, err)
	}
	if err := <-followed; err != nil {
		t.Errorf("Follow = %v", err)
	}
	want := []string{"started echo a", "stdout a\n", "result echo a", "started echo b >&2", "stderr b\n", "result echo b >&2", "closed"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestCallerMissesNothing has a caller take more than the transcript keeps, more
// slowly than it comes.
func TestCallerMissesNothing(t *testing.T) {
	dial := start(t, daemon.Config{TranscriptLimit: 1 << 20})
	c := dial("")
	open(t, c, api.Open{Name: "work"})
	const size = 6 << 20
	var got int
	err := c.Exec(t.Context(), "work", api.Run{Text: fmt.Sprintf("head -c %d /dev/zero", size), Limit: 10}, func(e api.Event) error {
		if time.Sleep(time.Millisecond); e.Piece != nil {
			got += len(e.Piece.Data)
		}
		if e.Event == "result" && (len(e.Command.Result.Stdout) != 10 || !e.Command.Result.Truncated) {
			t.Errorf("the result has %d bytes, truncated: %v, want 10", len(e.Command.Result.Stdout), e.Command.Result.Truncated)
		}
		if e.Dropped > 0 {
			t.Errorf("%d bytes are no longer there at %d", e.Dropped, got)
		}
		return nil
	})
	if err != nil || got != size {
		t.Errorf("got %d of %d bytes, %v", got, size, err)
	}
	// One that takes nothing holds up neither its command's end nor a deadline.
	stuck, leave := context.WithCancel(t.Context())
	up, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		first := sync.OnceFunc(func() { close(up) })
		c.Exec(stuck, "work", api.Run{Text: "yes"}, func(e api.Event) error {
			if e.Piece != nil {
				first()
				<-stuck.Done()
			}
			return nil
		})
	}()
	<-up
	if err := c.Interrupt(t.Context(), "work", api.Interrupt{Level: "int"}); err != nil {
		t.Error(err)
	}
	if w, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)}); err != nil || w.Command == nil || w.Command.State != "interrupted" {
		t.Errorf("Wait = %+v, %+v, %v", w, w.Command, err)
	}
	leave()
	<-left
}

// TestCallerOfTheNextCommand has the caller of a command read on while another
// one follows the next.
func TestCallerOfTheNextCommand(t *testing.T) {
	t.Parallel()
	dial := start(t, daemon.Config{})
	c := dial("")
	open(t, c, api.Open{Name: "work"})
	up, next := make(chan struct{}), make(chan struct{})
	earlier := make(chan error, 1)
	go func() {
		first := sync.OnceFunc(func() { close(up) })
		earlier <- c.Exec(t.Context(), "work", api.Run{Text: "head -c 3000000 /dev/zero"}, func(e api.Event) error {
			if e.Piece != nil {
				first()
				<-next
			}
			return nil
		})
	}()
	<-up
	if w, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)}); err != nil || !w.Met {
		t.Fatalf("Wait = %+v, %v", w, err)
	}
	var got int
	var waiting sync.Once
	err := c.Exec(t.Context(), "work", api.Run{Text: "echo up; read -r x </dev/tty; seq 10000", Timeout: api.Duration(time.Minute)}, func(e api.Event) error {
		if e.Piece == nil {
			return nil
		}
		got += len(e.Piece.Data)
		waiting.Do(func() {
			close(next)
			if err := <-earlier; err != nil {
				t.Errorf("the earlier one: %v", err)
			}
			// Before it is seen to wait, nothing is typed to it.
			if w, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilPrompt, Max: api.Duration(20 * time.Second)}); err != nil || !w.Met {
				t.Errorf("Wait = %+v, %v", w, err)
			}
			if err := c.Send(t.Context(), "work", api.Input{Text: "on", Enter: true}); err != nil {
				t.Error(err)
			}
		})
		return nil
	})
	if want := len("up\n") + 48894; err != nil || got != want {
		t.Errorf("got %d of %d bytes, %v", got, want, err)
	}
}

func TestPromptIsAnsweredLater(t *testing.T) {
	state := t.TempDir()
	dial := start(t, daemon.Config{StateDir: state})
	c := dial("")
	open(t, c, api.Open{Name: "work"})
	begun, err := c.Run(t.Context(), "work", api.Run{Text: `printf 'Password: ' >/dev/tty; read -r p </dev/tty; echo "got $p"`, Wait: api.Duration(20 * time.Second)})
	if err != nil || begun.State != "waiting_input" || begun.Prompt == nil || *begun.Prompt != (api.Prompt{Text: "Password: ", Kind: "password"}) {
		t.Fatalf("Run = %+v, %v", begun, err)
	}
	if err := c.Send(t.Context(), "work", api.Input{Text: "hunter2", Enter: true, Secret: true}); err != nil {
		t.Fatal(err)
	}
	waited, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)})
	if err != nil || string(waited.Command.Result.Stdout) != "got ********\n" {
		t.Errorf("Wait = %+v, %v", waited, err)
	}
	if err := c.Send(t.Context(), "work", api.Input{Text: "rm -rf x", Enter: true}); gateway.Code(err) != "usage" {
		t.Errorf("typing to a shell: %v, want refused", err)
	}
	if _, err := c.Close(t.Context(), "work"); err != nil {
		t.Fatal(err)
	}
	if all := written(t, state); !strings.Contains(all, "********") || strings.Contains(all, "hunter2") {
		t.Errorf("it has written %q, want the password masked", all)
	}
}

// written returns what stands in all files below a directory.
func written(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		all.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// sudoAsks is a command that asks as sudo does, where it runs as root.
const sudoAsks = `printf '[sudo] password for x: ' >/dev/tty; read -r p </dev/tty; echo "got $p"`

// needsRoot passes over a test in which commands ask as sudo does.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		sshdtest.Skip(t, "what asks as sudo does runs as root")
	}
}

func TestSudoIsAnswered(t *testing.T) {
	for _, test := range []struct {
		name, reference string
		waits           bool
	}{
		{"it is known", "cmd:echo hunter22", false},
		{"it can't be had", "cmd:exit 1", true},
		{"what asks is another's", "cmd:echo hunter22", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			needsRoot(t)
			asks := sudoAsks
			if test.name == "what asks is another's" {
				asks = "setpriv --reuid 65534 --regid 65534 --clear-groups sh -c '" + strings.ReplaceAll(sudoAsks, "'", `"`) + "'"
			}
			c := start(t, daemon.Config{})("")
			open(t, c, api.Open{Name: "work", SudoPassword: test.reference})
			got, err := c.Run(t.Context(), "work", api.Run{Text: asks, Wait: api.Duration(20 * time.Second)})
			if err != nil {
				t.Fatal(err)
			}
			if !test.waits {
				if got.Result == nil || string(got.Result.Stdout) != "got ********\n" {
					t.Errorf("Run = %+v, want the password typed", got)
				}
				return
			}
			if got.State != string(api.WaitingInput) || got.Prompt == nil || got.Prompt.Text != "[sudo] password for x: " || got.Prompt.Kind != "password" {
				t.Fatalf("Run = %+v, want the prompt", got)
			}
			if err := c.Send(t.Context(), "work", api.Input{Text: "by hand", Enter: true}); err != nil {
				t.Fatal(err)
			}
			waited, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)})
			if err != nil || !waited.Met || string(waited.Command.Result.Stdout) != "got by hand\n" {
				t.Errorf("Wait = %+v, %v", waited, err)
			}
		})
	}
}

// A password that takes its time is for the prompt that it was looked up for.
func TestSudoIsAnsweredTooLate(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	const next = `printf 'name? ' >/dev/tty; read -r n </dev/tty; echo "name $n"`
	for _, test := range []struct{ name, first, second string }{
		{"another command", sudoAsks, next},
		{"another prompt", "printf '[sudo] password for x: ' >/dev/tty; read -r -t 2 p </dev/tty; " + next, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			asked, proceed := filepath.Join(dir, "asked"), filepath.Join(dir, "go")
			c := start(t, daemon.Config{})("")
			open(t, c, api.Open{Name: "work", SudoPassword: fmt.Sprintf("cmd:touch %s; until [ -e %s ]; do sleep 0.02; done; echo hunter22", asked, proceed)})
			command, err := c.Run(t.Context(), "work", api.Run{Text: test.first})
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "the password is looked up", func() bool { _, err := os.Stat(asked); return err == nil })
			if test.second != "" {
				if err := c.Interrupt(t.Context(), "work", api.Interrupt{Level: "int", Command: command.ID}); err != nil {
					t.Fatal(err)
				}
				if waited, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)}); err != nil || !waited.Met {
					t.Fatalf("Wait = %+v, %v", waited, err)
				}
				if _, err := c.Run(t.Context(), "work", api.Run{Text: test.second}); err != nil {
					t.Fatal(err)
				}
			}
			waited, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilPrompt, Max: api.Duration(20 * time.Second)})
			if err != nil || !waited.Met || waited.Command.Prompt.Text != "name? " {
				t.Fatalf("Wait = %+v, %v", waited, err)
			}
			if err := os.WriteFile(proceed, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			waited, err = c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Through: true, Max: api.Duration(700 * time.Millisecond)})
			if err != nil || waited.Met {
				t.Fatalf("Wait = %+v, %v: it has read the password", waited, err)
			}
			if err := c.Send(t.Context(), "work", api.Input{Text: "x", Enter: true}); err != nil {
				t.Fatal(err)
			}
			waited, err = c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)})
			if err != nil || !waited.Met || !strings.HasSuffix(string(waited.Command.Result.Stdout), "name x\n") {
				t.Errorf("Wait = %+v, %v", waited, err)
			}
		})
	}
}

func TestInterruptAndDeadline(t *testing.T) {
	dial := start(t, daemon.Config{})
	c := dial("")
	open(t, c, api.Open{Name: "work"})
	if _, err := c.Run(t.Context(), "work", api.Run{Text: "echo part; sleep 1000"}); err != nil {
		t.Fatal(err)
	}
	if w, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilMatch, Match: "^part$", Max: api.Duration(20 * time.Second)}); err != nil || !w.Met || w.Line != "part" {
		t.Fatalf("Wait = %+v, %v", w, err)
	}
	if err := c.Interrupt(t.Context(), "work", api.Interrupt{Level: "int"}); err != nil {
		t.Fatal(err)
	}
	w, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)})
	if err != nil || w.Command.State != "interrupted" || string(w.Command.Result.Stdout) != "part\n" {
		t.Errorf("Wait = %+v, %v", w, err)
	}
	late, err := c.Run(t.Context(), "work", api.Run{Text: "sleep 1000", Timeout: api.Duration(100 * time.Millisecond), Wait: api.Duration(20 * time.Second)})
	if err != nil || late.State != "timed_out" || gateway.Code(late.Result.Err) != "cmd.timeout" {
		t.Errorf("Run = %+v, %v", late, err)
	}
	if begun, err := c.Run(t.Context(), "work", api.Run{Text: "sleep 1000", Wait: api.Duration(50 * time.Millisecond)}); err != nil || begun.State != "running" {
		t.Errorf("Run = %+v, %v, want running", begun, err)
	}
}

// Who names a command means no other: neither waits, nor types, nor interrupts.
func TestCommandIsMeant(t *testing.T) {
	dial := start(t, daemon.Config{})
	c := dial("")
	open(t, c, api.Open{Name: "work"})
	open(t, c, api.Open{Name: "other"})
	first := run(t, c, "work", "echo first; exit_() { return 4; }; exit_")
	running, err := c.Run(t.Context(), "work", api.Run{Text: "read -r x; echo got $x", TTY: true})
	if err != nil {
		t.Fatal(err)
	}
	if w, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Command: first.ID}); err != nil || !w.Met || w.Command.ID != first.ID || *w.Command.ExitCode != 4 || string(w.Command.Result.Stdout) != "first\n" {
		t.Errorf("Wait for a command that is over = %+v, %v", w.Command, err)
	}
	for what, err := range map[string]error{
		"is over":      c.Send(t.Context(), "work", api.Input{Text: "x", Enter: true, Command: first.ID}),
		"(exited)":     c.Interrupt(t.Context(), "work", api.Interrupt{Level: "int", Command: first.ID}),
		"does not run": c.Interrupt(t.Context(), "other", api.Interrupt{Level: "int", Command: running.ID}),
		"there is no command": func() error {
			_, err := c.Wait(t.Context(), "other", api.Wait{Until: api.UntilExit, Command: running.ID})
			return err
		}(),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("another command: %v, want %q", err, what)
		}
	}
	if err := c.Send(t.Context(), "work", api.Input{Text: "y", Enter: true, Command: running.ID}); err != nil {
		t.Fatal(err)
	}
	w, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Command: running.ID, Max: api.Duration(20 * time.Second)})
	if err != nil || !w.Met || !strings.Contains(string(w.Command.Result.Stdout), "got y") {
		t.Errorf("Wait = %+v, %v", w.Command, err)
	}
}

func TestShellThatEndsEndsItsSession(t *testing.T) {
	dial := start(t, daemon.Config{})
	c := dial("")
	s := open(t, c, api.Open{Name: "work"})
	r := run(t, c, "work", "echo bye; exit 3")
	if r.ExitCode != 3 || string(r.Stdout) != "bye\n" {
		t.Errorf("got %+v", r)
	}
	eventually(t, "session over", func() bool {
		s, err := c.Session(t.Context(), s.ID)
		return err == nil && s.State == api.Closed && s.ExitCode != nil && *s.ExitCode == 3
	})
	_, err := c.Run(t.Context(), "work", api.Run{Text: "echo"})
	if gateway.Code(err) != "session.closed" || !strings.Contains(err.Error(), "status 3") {
		t.Errorf("Run = %v, want closed with the status", err)
	}
	if o, err := c.Output(t.Context(), s.ID, api.Query{}); err != nil || string(o.Pieces[0].Data) != "bye\n" {
		t.Errorf("Output afterwards = %+v, %v", o, err)
	}
	if _, err := c.Session(t.Context(), "wrk"); gateway.Code(err) != "session.not_found" {
		t.Errorf("Session = %v", err)
	}
}

func TestFreshShellInPlaceOfOneThatEnded(t *testing.T) {
	dial := start(t, daemon.Config{})
	c := dial("")
	open(t, c, api.Open{Name: "work", Reopen: true})
	run(t, c, "work", "cd /usr; export v=kept; f() { :; }")
	if r := run(t, c, "work", "exit 3"); r.ExitCode != 3 || !r.Ended || !r.Reopened {
		t.Errorf("got %+v", r)
	}
	if r := run(t, c, "work", `pwd; echo $v; type f >/dev/null 2>&1 || echo no f`); string(r.Stdout) != "/usr\nkept\nno f\n" {
		t.Errorf("in the fresh shell: %q", r.Stdout)
	}
	if _, err := c.Run(t.Context(), "work", api.Run{Text: "trap '' INT; sleep 1000"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Reset(t.Context(), "work"); err != nil {
		t.Fatal(err)
	}
	if r := run(t, c, "work", `pwd; echo $v`); string(r.Stdout) != "/usr\nkept\n" {
		t.Errorf("after reset: %q", r.Stdout)
	}
}

// leftBy returns what a daemon that is killed leaves: what stands on the disk now.
func leftBy(t *testing.T, state string) string {
	t.Helper()
	crashed := t.TempDir()
	if err := os.CopyFS(crashed, os.DirFS(state)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(crashed, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return crashed
}

func TestSessionsOfADaemonThatDied(t *testing.T) {
	state := t.TempDir()
	c := start(t, daemon.Config{StateDir: state})("")
	s := open(t, c, api.Open{Name: "work"})
	run(t, c, "work", "cd /; echo kept")
	if _, err := c.Run(t.Context(), "work", api.Run{Text: "echo half; sleep 1000"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilMatch, Match: "half", Since: 5, Max: api.Duration(20 * time.Second)}); err != nil {
		t.Fatal(err)
	}
	crashed := leftBy(t, state)
	// The last line is torn.
	lines, err := os.OpenFile(filepath.Join(crashed, "sessions", s.ID, "commands.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(lines, `{"id":"%s.2","state":"exi`, s.ID)
	lines.Close()
	c = start(t, daemon.Config{StateDir: crashed})("")
	list, err := c.Sessions(t.Context(), false)
	if err != nil || len(list) != 1 || list[0].ID != s.ID || list[0].State != api.Lost || list[0].Cwd != "/" || list[0].Command.Text != "echo half; sleep 1000" || list[0].To != 10 {
		t.Fatalf("Sessions = %+v, %v", list, err)
	}
	o, err := c.Output(t.Context(), "work", api.Query{})
	var text []byte
	for _, p := range o.Pieces { // what came at once is one piece
		text = append(text, p.Data...)
	}
	if err != nil || string(text) != "kept\nhalf\n" {
		t.Errorf("Output = %+v, %v", o, err)
	}
	if old, err := c.Command(t.Context(), s.ID+".1", 0); err != nil || old.Result == nil || string(old.Result.Stdout) != "kept\n" {
		t.Errorf("Command = %+v, %v", old, err)
	}
	half, err := c.Command(t.Context(), s.ID+".2", 0)
	if err != nil || half.State != "unknown" || half.Result == nil || string(half.Result.Stdout) != "half\n" || half.Result.StdoutBytes != 5 || gateway.Code(half.Result.Err) != "link.lost" || half.Result.Command != "echo half; sleep 1000" {
		t.Errorf("Command = %+v, %v, want that its end is not known", half, err)
	}
	if list[0].Command.State != "unknown" {
		t.Errorf("the last command is %+v", list[0].Command)
	}
	if _, err := c.Run(t.Context(), "work", api.Run{Text: "echo"}); gateway.Code(err) != "session.closed" {
		t.Errorf("Run = %v", err)
	}
	if _, err := c.Close(t.Context(), "work"); err != nil {
		t.Error(err)
	}
	if list, err := c.Sessions(t.Context(), false); err != nil || len(list) != 0 {
		t.Errorf("Sessions = %+v, %v, want none once it was seen", list, err)
	}
}

func TestPlacesAreBounded(t *testing.T) {
	c := start(t, daemon.Config{MaxSessions: 3, MaxPerHost: 2})("")
	there := gateway.Target{Name: "elsewhere", Local: true}
	first := open(t, c, api.Open{})
	open(t, c, api.Open{})
	refused := func(o api.Open, code string) {
		t.Helper()
		if _, err := c.Open(t.Context(), o, gateway.Caller{}); gateway.Code(err) != code {
			t.Errorf("Open(%+v) = %v, want %s", o, err, code)
		}
	}
	refused(api.Open{Target: localhost}, "session.limit")
	open(t, c, api.Open{Target: there, Name: "taken"})
	refused(api.Open{Target: there}, "session.limit")
	if _, err := c.Close(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	refused(api.Open{Target: localhost, Name: "taken"}, "usage")
	refused(api.Open{Target: localhost, Name: "../x"}, "usage")
	refused(api.Open{Target: localhost, Shell: "/bin/nonsense"}, "shell.unsupported")
	open(t, c, api.Open{Target: localhost}) // what failed gave its place back
}

func TestIdleSessionEnds(t *testing.T) {
	c := start(t, daemon.Config{})("")
	s := open(t, c, api.Open{TTL: api.Duration(300 * time.Millisecond)})
	r := run(t, c, s.ID, "sleep 0.6; echo still there")
	if string(r.Stdout) != "still there\n" {
		t.Errorf("a command that runs longer than the session may be idle: %+v", r)
	}
	eventually(t, "idle session closed", func() bool {
		s, err := c.Session(t.Context(), s.ID)
		return err == nil && s.State == api.Closed && strings.Contains(s.Reason, "idle")
	})
}

func TestSessionsGoWithTheirClient(t *testing.T) {
	c := start(t, daemon.Config{Grace: 50 * time.Millisecond})("")
	there, leave := context.WithCancel(t.Context())
	presence, _, err := c.Presence(there)
	if err != nil {
		t.Fatal(err)
	}
	gone := open(t, c, api.Open{Client: presence.Client})
	kept := open(t, c, api.Open{Client: presence.Client, Keep: true})
	taken := open(t, c, api.Open{Client: presence.Client})
	attached, detach := context.WithCancel(t.Context())
	defer detach()
	if _, err := c.Attach(attached, taken.ID, "Ada"); err != nil {
		t.Fatal(err)
	}
	leave()
	eventually(t, "session of a client that is gone closed", func() bool {
		s, err := c.Session(t.Context(), gone.ID)
		return err == nil && s.State == api.Closed
	})
	if s, err := c.Session(t.Context(), kept.ID); err != nil || s.State != api.Idle {
		t.Errorf("the one to keep is %+v, %v", s, err)
	}
	if s, err := c.Session(t.Context(), taken.ID); err != nil || s.State != api.Idle {
		t.Errorf("the one that a person has taken over is %+v, %v", s, err)
	}
	detach()
	eventually(t, "session closed once its person has left", func() bool {
		s, err := c.Session(t.Context(), taken.ID)
		return err == nil && s.State == api.Closed
	})
}

// A line that matches is the command's that is meant, also once it is over.
func TestMatchIsOfTheCommand(t *testing.T) {
	c := start(t, daemon.Config{})("")
	s := open(t, c, api.Open{})
	first := run(t, c, s.ID, "echo first; printf fin")
	second := run(t, c, s.ID, "echo ished later")
	for match, met := range map[string][2]bool{"^first$": {true, false}, "^fin$": {true, false}, "later": {false, true}, "finished": {false, false}, "^ished": {false, true}} {
		for i, command := range []*gateway.Result{first, second} {
			w := api.Wait{Until: api.UntilMatch, Command: command.ID, Match: match, Max: api.Duration(20 * time.Second)}
			if waited, err := c.Wait(t.Context(), s.ID, w); err != nil || waited.Met != met[i] {
				t.Errorf("Wait for %q of %s = %+v, %v, want %v", match, command.ID, waited, err, met[i])
			}
		}
	}
}

// A line matches as output with grep finds it.
func TestMatchLikeGrep(t *testing.T) {
	c := start(t, daemon.Config{})("")
	s := open(t, c, api.Open{})
	run(t, c, s.ID, `printf 'listening\r\n\r\npart\r'`)
	for _, match := range []string{"^listening$", "^part$", "^$"} {
		w, err := c.Wait(t.Context(), s.ID, api.Wait{Until: api.UntilMatch, Match: match, Max: api.Duration(20 * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		o, err := c.Output(t.Context(), s.ID, api.Query{Grep: match})
		if err != nil || len(o.Pieces) != 1 || !w.Met || w.Line != string(o.Pieces[0].Data) || w.At != o.Pieces[0].At {
			t.Errorf("Wait for %q = %v, %q at %d; grep finds %+v, %v", match, w.Met, w.Line, w.At, o.Pieces, err)
		}
	}
}

// Scopes do not share names: what one calls work is no obstacle to another.
func TestScopesHaveTheirOwnNames(t *testing.T) {
	dial := start(t, daemon.Config{})
	a, b, all := dial("a"), dial("b"), dial("")
	first := open(t, a, api.Open{Name: "work"})
	if s, err := all.Session(t.Context(), "work"); err != nil || s.ID != first.ID {
		t.Errorf("a name that one scope has is %+v, %v", s, err)
	}
	second := open(t, b, api.Open{Name: "work"})
	for c, id := range map[*client.Client]string{a: first.ID, b: second.ID} {
		if s, err := c.Session(t.Context(), "work"); err != nil || s.ID != id {
			t.Errorf("work is %s, %v, want %s", s.ID, err, id)
		}
	}
	if _, err := all.Session(t.Context(), "work"); gateway.Code(err) != "usage" || !strings.Contains(gateway.Hint(err), first.ID) {
		t.Errorf("a name that two scopes have: %v (%s)", err, gateway.Hint(err))
	}
	if _, err := a.Close(t.Context(), "work"); err != nil {
		t.Fatal(err)
	}
	open(t, a, api.Open{Name: "work"}) // the place is free
}

// Whoever is told that a command has ended its shell finds the session closed.
func TestNoCommandBehindTheLast(t *testing.T) {
	c := start(t, daemon.Config{})("")
	for range 10 {
		s := open(t, c, api.Open{})
		run(t, c, s.ID, "exit 4")
		if _, err := c.Run(t.Context(), s.ID, api.Run{Text: "true"}); gateway.Code(err) != "session.closed" || !strings.Contains(err.Error(), "status 4") {
			t.Fatalf("Run = %v", err)
		}
	}
}

// Who answers and waits is told of the next prompt, not of the one answered.
func TestWaitBehindAnAnswer(t *testing.T) {
	c := start(t, daemon.Config{})("")
	s := open(t, c, api.Open{})
	if _, err := c.Run(t.Context(), s.ID, api.Run{Text: `read -p 'first? ' a; read -p 'second? ' b; echo "$a$b"`, TTY: true}); err != nil {
		t.Fatal(err)
	}
	for _, prompt := range []string{"first?", "second?"} {
		w, err := c.Wait(t.Context(), s.ID, api.Wait{Until: api.UntilPrompt, Max: api.Duration(10 * time.Second)})
		if err != nil || !w.Met || w.Command.Prompt == nil || !strings.HasPrefix(w.Command.Prompt.Text, prompt) {
			t.Fatalf("Wait = %+v, %v, want %s", w, err, prompt)
		}
		if err := c.Send(t.Context(), s.ID, api.Input{Text: "x", Enter: true}); err != nil {
			t.Fatal(err)
		}
	}
	w, err := c.Wait(t.Context(), s.ID, api.Wait{Until: api.UntilExit, Max: api.Duration(10 * time.Second), Limit: 3})
	if err != nil || !w.Met || w.Command.Result.ExitCode != 0 || len(w.Command.Result.Stdout) != 3 {
		t.Errorf("Wait = %+v, %v", w.Command, err)
	}
}

func TestScopesSeeTheirOwn(t *testing.T) {
	dial := start(t, daemon.Config{})
	a, b := dial("a"), dial("b")
	s := open(t, a, api.Open{Name: "work"})
	run(t, a, "work", "echo secret of a")
	calls := map[string]func() error{
		"Session": func() error { _, err := b.Session(t.Context(), "work"); return err },
		"Run":     func() error { _, err := b.Run(t.Context(), s.ID, api.Run{Text: "id"}); return err },
		"Output":  func() error { _, err := b.Output(t.Context(), s.ID, api.Query{}); return err },
		"Command": func() error { _, err := b.Command(t.Context(), s.ID+".1", 0); return err },
		"Close":   func() error { _, err := b.Close(t.Context(), s.ID); return err },
		"Screen":  func() error { _, err := b.Screen(t.Context(), s.ID); return err },
		"Reset":   func() error { return b.Reset(t.Context(), s.ID) },
	}
	for name, call := range calls {
		if err := call(); gateway.Code(err) != "session.not_found" {
			t.Errorf("%s of another scope = %v, want session.not_found", name, err)
		}
	}
	if list, err := b.Sessions(t.Context(), true); err != nil || len(list) != 0 {
		t.Errorf("Sessions = %+v, %v", list, err)
	}
	if list, err := dial("").Sessions(t.Context(), false); err != nil || len(list) != 1 {
		t.Errorf("without a scope: %+v, %v", list, err)
	}
}

func TestWhoIsAttachedIsAlone(t *testing.T) {
	dial := start(t, daemon.Config{})
	c := dial("")
	open(t, c, api.Open{Name: "work"})
	ctx, detach := context.WithCancel(t.Context())
	held, err := c.Attach(ctx, "work", "Ada")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dial("").Run(t.Context(), "work", api.Run{Text: "echo"}); gateway.Code(err) != "session.busy" || !strings.Contains(err.Error(), "Ada") {
		t.Errorf("Run = %v, want busy with who", err)
	}
	if r, err := c.Run(t.Context(), "work", api.Run{Text: "echo mine", Attachment: held.Attachment, Wait: api.Duration(20 * time.Second)}); err != nil || string(r.Result.Stdout) != "mine\n" {
		t.Errorf("Run = %+v, %v", r, err)
	}
	detach()
	eventually(t, "detached", func() bool {
		s, err := c.Session(t.Context(), "work")
		return err == nil && s.Attached == ""
	})
	run(t, c, "work", "echo free")
}

// What a person runs is not ended by an agent, which has a scope. Without one it is
// the machine's user, who may, as from another terminal.
func TestWhoIsAttachedIsNotInterrupted(t *testing.T) {
	dial := start(t, daemon.Config{})
	person, agent := dial(""), dial("agent")
	open(t, agent, api.Open{Name: "work"})
	s, err := agent.Session(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	ctx, detach := context.WithCancel(t.Context())
	defer detach()
	held, err := person.Attach(ctx, s.ID, "Ada")
	if err != nil {
		t.Fatal(err)
	}
	begin := func(text string) api.Command {
		t.Helper()
		c, err := person.Run(t.Context(), s.ID, api.Run{Text: text, Attachment: held.Attachment})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := begin("sleep 600")
	for name, call := range map[string]func() error{
		"Run":           func() error { return runs(agent.Run(t.Context(), "work", api.Run{Text: "id"})) },
		"Send":          func() error { return agent.Send(t.Context(), "work", api.Input{Text: "x", Command: c.ID}) },
		"Interrupt":     func() error { return agent.Interrupt(t.Context(), "work", api.Interrupt{Level: "kill"}) },
		"Reset":         func() error { return agent.Reset(t.Context(), "work") },
		"Close":         func() error { _, err := agent.Close(t.Context(), "work"); return err },
		"Run by others": func() error { return runs(person.Run(t.Context(), s.ID, api.Run{Text: "id"})) },
	} {
		if err := call(); gateway.Code(err) != "session.busy" || !strings.Contains(err.Error(), "Ada") || !strings.Contains(gateway.Hint(err), "until they detach") {
			t.Errorf("%s = %v (%s), want busy with who", name, err, gateway.Hint(err))
		}
	}
	ends := func(who *client.Client, in api.Interrupt) {
		t.Helper()
		if err := who.Interrupt(t.Context(), s.ID, in); err != nil {
			t.Errorf("Interrupt(%+v) = %v", in, err)
		}
		if w, err := person.Wait(t.Context(), s.ID, api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)}); err != nil || !w.Met {
			t.Errorf("Wait = %+v, %v", w, err)
		}
	}
	ends(agent, api.Interrupt{Level: "int", Attachment: held.Attachment})
	begin("sleep 600")
	ends(person, api.Interrupt{Level: "int"})
	if closed, err := person.Close(t.Context(), s.ID); err != nil || closed.State != api.Closed {
		t.Errorf("Close = %+v, %v", closed, err)
	}
}

// Who writes requests of their own is told that they are not what JSON is, or that
// a decoder would make something else of them.
func TestRequestIsText(t *testing.T) {
	d, err := daemon.New(daemon.Config{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"caf\xe9":                   `"code":"usage","message":"daemon: the request is not valid UTF-8"`,
		`caf\udce9`:                 `"code":"usage","message":"daemon: the request has half a surrogate pair`,
		`caf\u00e9 \ud83d\ude00`:    `"code":"session.not_found"`,
		`"} {"command":"`:           `"code":"usage","message":"daemon: the request has something behind its JSON"`,
		`","timeout_ms":-1,"cwd":"`: `"code":"usage","message":"daemon: request: a time of -1 ms"`,
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/sessions/work/commands", strings.NewReader(`{"command":"echo `+text+`"}`))
		answer := httptest.NewRecorder()
		d.Handler().ServeHTTP(answer, request)
		if !strings.Contains(answer.Body.String(), want) {
			t.Errorf("%q is answered %d %s, want %s", text, answer.Code, answer.Body, want)
		}
	}
}

func TestEventsOfAllSessions(t *testing.T) {
	c := start(t, daemon.Config{})("")
	ctx, cancel := context.WithCancel(t.Context())
	events := make(chan api.Event, 64)
	followed := make(chan error, 1)
	go func() {
		followed <- c.Events(ctx, 0, func(e api.Event) error { events <- e; return nil })
	}()
	s := open(t, c, api.Open{Name: "work"})
	if _, err := c.Close(t.Context(), "work"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"opened", "closed"} {
		if e := <-events; e.Event != want || e.Session == nil || e.Session.ID != s.ID {
			t.Errorf("event %+v, want %s", e, want)
		}
	}
	cancel()
	<-followed
}

func TestRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	dial := start(t, daemon.Config{})
	c := dial("")
	open(t, c, api.Open{Name: "work"})
	for name, call := range map[string]func() error{
		"too long": func() error {
			_, err := c.Run(t.Context(), "work", api.Run{Text: "echo", Stdin: make([]byte, 20<<20)})
			return err
		},
		"NUL": func() error {
			return runs(c.Run(t.Context(), "work", api.Run{Text: "a\x00b", Wait: api.Duration(time.Minute)}))
		},
		"until": func() error { _, err := c.Wait(t.Context(), "work", api.Wait{Until: "noon"}); return err },
		"keys":  func() error { return c.Send(t.Context(), "work", api.Input{Keys: []string{"ctrl-q-q"}}) },
		"level": func() error { return c.Interrupt(t.Context(), "work", api.Interrupt{Level: "hard"}) },
		"a terminal that is too wide": func() error {
			_, err := c.Open(t.Context(), api.Open{Target: localhost, Cols: 70000}, gateway.Caller{})
			return err
		},
		"a terminal that is too high": func() error { return c.Resize(t.Context(), "work", transport.Size{Cols: 80, Rows: 70000}) },
		"a terminal of less than one": func() error { return c.Resize(t.Context(), "work", transport.Size{Cols: -1, Rows: 24}) },
		"a command that is no UTF-8": func() error {
			_, err := c.Run(t.Context(), "work", api.Run{Text: "touch caf\xe9"})
			return err
		},
		"an environment that is no UTF-8": func() error {
			return c.Exec(t.Context(), "work", api.Run{Text: "true", Env: map[string]string{"A": "\xff"}}, nil)
		},
		"a text that is no UTF-8": func() error { return c.Send(t.Context(), "work", api.Input{Text: "\xff"}) },
	} {
		if err := call(); gateway.Code(err) != "usage" {
			t.Errorf("%s: %v, want usage", name, err)
		}
	}
}

// A target that can't be is the request's mistake, and no failure of the daemon.
func TestTargetThatCannotBe(t *testing.T) {
	t.Parallel()
	d, err := daemon.New(daemon.Config{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Drain(ended()) })
	request := httptest.NewRequest(http.MethodPost, "/v1/sessions", strings.NewReader(`{"target":{"name":"web1","addr":"127.0.0.1"}}`))
	request.Header.Set(api.ProtocolHeader, ours)
	answer := httptest.NewRecorder()
	d.Handler().ServeHTTP(answer, request)
	if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), "no user") {
		t.Errorf("opening without a user: %d %s", answer.Code, answer.Body)
	}
}

// An interrupt of a level that there is not ends nothing, whatever the command does,
// and is told all that there are.
func TestLevelsOfAnInterrupt(t *testing.T) {
	t.Parallel()
	c := start(t, daemon.Config{})("")
	open(t, c, api.Open{Name: "work"})
	command, err := c.Run(t.Context(), "work", api.Run{Text: "sleep 300"})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Interrupt(t.Context(), "work", api.Interrupt{Level: "hard"})
	if gateway.Code(err) != "usage" || !strings.Contains(err.Error(), "int, term, kill or end") {
		t.Errorf("level hard: %v", err)
	}
	if err := c.Interrupt(t.Context(), "work", api.Interrupt{Level: api.End, Command: command.ID}); err != nil {
		t.Errorf("level end: %v", err)
	}
}

// runs returns why a command did not run.
func runs(c api.Command, err error) error {
	if err == nil && c.Result != nil {
		err = c.Result.Err
	}
	return err
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within twenty seconds: %s", what)
		}
	}
}

func TestCommandRightAfterTheShellsEnd(t *testing.T) {
	dial := start(t, daemon.Config{})
	c := dial("")
	for range 20 {
		open(t, c, api.Open{Name: "work"})
		run(t, c, "work", "exit 5")
		_, err := c.Run(t.Context(), "work", api.Run{Text: "true"})
		if gateway.Code(err) != "session.closed" || !strings.Contains(err.Error(), "its shell ended with status 5") {
			t.Fatalf("Run = %v, want that the shell ended with status 5", err)
		}
	}
}
