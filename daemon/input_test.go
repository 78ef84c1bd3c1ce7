package daemon_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/internal/sshdtest"
)

func TestPromptIsAnsweredLater(t *testing.T) {
	state := t.TempDir()
	dial := start(t, daemon.Config{StateDir: state})
	c := dial("")
	open(t, c, api.Open{Name: "work"})
	begun, err := c.Run(t.Context(), "work", api.Run{Text: `printf 'Password: ' >/dev/tty; read -r p </dev/tty; echo "got $p"`, Wait: api.Duration(20 * time.Second)})
	if err != nil || begun.State != "waiting_input" || begun.Prompt == nil || *begun.Prompt != (api.Prompt{Text: "Password: ", Kind: "password"}) {
		t.Fatalf("Run = %+v, %v", begun, err)
	}
	must(t, c.Send(t.Context(), "work", api.Input{Text: "hunter2", Enter: true, Secret: true}))
	waited, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)})
	if err != nil || string(waited.Command.Result.Stdout) != "got ********\n" {
		t.Errorf("Wait = %+v, %v", waited, err)
	}
	if err := c.Send(t.Context(), "work", api.Input{Text: "rm -rf x", Enter: true}); gateway.Code(err) != "usage" {
		t.Errorf("typing to a shell: %v, want refused", err)
	}
	closeSession(t, c, "work")
	if all := written(t, state); !strings.Contains(all, "********") || strings.Contains(all, "hunter2") {
		t.Errorf("it has written %q, want the password masked", all)
	}
}

// An interrupt is an answer, too: who waits behind it waits for more than the prompt that
// was there. What lives through it asks the same again.
func TestPromptIsInterrupted(t *testing.T) {
	c := start(t, daemon.Config{})("")
	open(t, c, api.Open{Name: "work"})
	for _, test := range []struct{ name, trap string }{{"it ends", ":"}, {"it goes on", "trap : INT"}} {
		t.Run(test.name, func(t *testing.T) {
			command, err := c.Run(t.Context(), "work", api.Run{
				Text: "sh -c '" + test.trap + `; printf "Name: " >/dev/tty; until read -r n; do :; done; echo "got $n"'`, TTY: true, Wait: api.Duration(20 * time.Second),
			})
			if err != nil || command.State != string(api.WaitingInput) {
				t.Fatalf("Run = %+v, %v", command, err)
			}
			must(t, c.Interrupt(t.Context(), "work", api.Interrupt{Level: "int"}))
			waited, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)})
			if err != nil {
				t.Fatal(err)
			}
			if test.trap == ":" {
				if !waited.Met || waited.Command.State != "interrupted" {
					t.Errorf("Wait = %+v, want its end", waited.Command)
				}
				return
			}
			if p := waited.Command.Prompt; p == nil || p.Text != "Name: " {
				t.Fatalf("Wait = %+v, want the prompt again", waited.Command)
			}
			must(t, c.Send(t.Context(), "work", api.Input{Text: "x", Enter: true}))
			waited, err = c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)})
			if err != nil || !waited.Met || !strings.HasSuffix(string(waited.Command.Result.Stdout), "got x\n") {
				t.Errorf("Wait = %+v, %v", waited, err)
			}
		})
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
			got := begin(t, c, "work", api.Run{Text: asks, Wait: api.Duration(20 * time.Second)})
			if !test.waits {
				if got.Result == nil || string(got.Result.Stdout) != "got ********\n" {
					t.Errorf("Run = %+v, want the password typed", got)
				}
				return
			}
			if got.State != string(api.WaitingInput) || got.Prompt == nil || got.Prompt.Text != "[sudo] password for x: " || got.Prompt.Kind != "password" {
				t.Fatalf("Run = %+v, want the prompt", got)
			}
			must(t, c.Send(t.Context(), "work", api.Input{Text: "by hand", Enter: true}))
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
			command := begin(t, c, "work", api.Run{Text: test.first})
			eventually(t, "the password is looked up", func() bool { _, err := os.Stat(asked); return err == nil })
			if test.second != "" {
				must(t, c.Interrupt(t.Context(), "work", api.Interrupt{Level: "int", Command: command.ID}))
				if waited, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)}); err != nil || !waited.Met {
					t.Fatalf("Wait = %+v, %v", waited, err)
				}
				begin(t, c, "work", api.Run{Text: test.second})
			}
			waited, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilPrompt, Max: api.Duration(20 * time.Second)})
			if err != nil || !waited.Met || waited.Command.Prompt.Text != "name? " {
				t.Fatalf("Wait = %+v, %v", waited, err)
			}
			must(t, os.WriteFile(proceed, nil, 0o600))
			waited, err = c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Through: true, Max: api.Duration(700 * time.Millisecond)})
			if err != nil || waited.Met {
				t.Fatalf("Wait = %+v, %v: it has read the password", waited, err)
			}
			must(t, c.Send(t.Context(), "work", api.Input{Text: "x", Enter: true}))
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
	begin(t, c, "work", api.Run{Text: "echo part; sleep 1000"})
	if w, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilMatch, Match: "^part$", Max: api.Duration(20 * time.Second)}); err != nil || !w.Met || w.Line != "part" {
		t.Fatalf("Wait = %+v, %v", w, err)
	}
	must(t, c.Interrupt(t.Context(), "work", api.Interrupt{Level: "int"}))
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
	running := begin(t, c, "work", api.Run{Text: "read -r x; echo got $x", TTY: true})
	if w, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Command: first.ID}); err != nil || !w.Met || w.Command.ID != first.ID || *w.Command.ExitCode != 4 || string(w.Command.Result.Stdout) != "first\n" {
		t.Errorf("Wait for a command that is over = %+v, %v", w.Command, err)
	}
	for what, err := range map[string]error{
		"is over":      c.Send(t.Context(), "work", api.Input{Text: "x", Enter: true, Command: first.ID}),
		"(exited)":     c.Interrupt(t.Context(), "work", api.Interrupt{Level: "int", Command: first.ID}),
		"does not run": c.Interrupt(t.Context(), "other", api.Interrupt{Level: "int", Command: running.ID}),
		"there is no record of": func() error {
			_, err := c.Wait(t.Context(), "other", api.Wait{Until: api.UntilExit, Command: running.ID})
			return err
		}(),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("another command: %v, want %q", err, what)
		}
	}
	must(t, c.Send(t.Context(), "work", api.Input{Text: "y", Enter: true, Command: running.ID}))
	w, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Command: running.ID, Max: api.Duration(20 * time.Second)})
	if err != nil || !w.Met || !strings.Contains(string(w.Command.Result.Stdout), "got y") {
		t.Errorf("Wait = %+v, %v", w.Command, err)
	}
}

// Who answers and waits is told of the next prompt, not of the one answered.
func TestWaitBehindAnAnswer(t *testing.T) {
	c := start(t, daemon.Config{})("")
	s := open(t, c, api.Open{})
	begin(t, c, s.ID, api.Run{Text: `read -p 'first? ' a; read -p 'second? ' b; echo "$a$b"`, TTY: true})
	for _, prompt := range []string{"first?", "second?"} {
		w, err := c.Wait(t.Context(), s.ID, api.Wait{Until: api.UntilPrompt, Max: api.Duration(10 * time.Second)})
		if err != nil || !w.Met || w.Command.Prompt == nil || !strings.HasPrefix(w.Command.Prompt.Text, prompt) {
			t.Fatalf("Wait = %+v, %v, want %s", w, err, prompt)
		}
		must(t, c.Send(t.Context(), s.ID, api.Input{Text: "x", Enter: true}))
	}
	w, err := c.Wait(t.Context(), s.ID, api.Wait{Until: api.UntilExit, Max: api.Duration(10 * time.Second), Limit: 3})
	if err != nil || !w.Met || w.Command.Result.ExitCode != 0 || len(w.Command.Result.Stdout) != 3 {
		t.Errorf("Wait = %+v, %v", w.Command, err)
	}
}

// An interrupt of a level that there is not ends nothing, whatever the command does,
// and is told all that there are.
func TestLevelsOfAnInterrupt(t *testing.T) {
	t.Parallel()
	c := start(t, daemon.Config{})("")
	open(t, c, api.Open{Name: "work"})
	command := begin(t, c, "work", api.Run{Text: "sleep 300"})
	err := c.Interrupt(t.Context(), "work", api.Interrupt{Level: "hard"})
	if gateway.Code(err) != "usage" || !strings.Contains(err.Error(), "int, term, kill or end") {
		t.Errorf("level hard: %v", err)
	}
	if err := c.Interrupt(t.Context(), "work", api.Interrupt{Level: api.End, Command: command.ID}); err != nil {
		t.Errorf("level end: %v", err)
	}
}
