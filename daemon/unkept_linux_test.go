package daemon_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
)

// What is said and run once a disk is back, as one that was mounted anew, is kept,
// although the files that were open are none any more.
func TestDiskThatIsBack(t *testing.T) {
	state := t.TempDir()
	c := start(t, daemon.Config{StateDir: state})("")
	s := open(t, c, api.Open{})
	run(t, c, s.ID, "echo before")
	breakFiles(t, state)
	run(t, c, s.ID, "echo lost")
	run(t, c, s.ID, "echo later")
	o, err := c.Output(t.Context(), s.ID, api.Query{Tail: len("later\n")})
	if err != nil || len(o.Pieces) != 1 || string(o.Pieces[0].Data) != "later\n" || o.Dropped != int64(len("lost\n")) {
		t.Errorf("Output = %+v, %v", o, err)
	}
	text, err := os.ReadFile(filepath.Join(state, "sessions", s.ID, "commands.jsonl"))
	if err != nil || strings.Count(string(text), `"id":"`+s.ID+`.3"`) < 2 {
		t.Errorf("the record has %s, %v", text, err)
	}
}

// A command that began on a full disk is told from the one before, which could be recorded,
// also by the next daemon.
func TestCommandThatCannotBeRecorded(t *testing.T) {
	state := t.TempDir()
	c := start(t, daemon.Config{StateDir: state})("")
	s := open(t, c, api.Open{Name: "work"})
	run(t, c, "work", "echo before")
	breakFiles(t, state)
	begin(t, c, "work", api.Run{Text: "sleep 1000"})
	check := func(c *client.Client) {
		t.Helper()
		got, err := c.Command(t.Context(), s.ID+".2", 0)
		if err != nil || got.State != "unknown" || got.Host != s.Host || got.StartedAt.IsZero() || got.Result == nil || gateway.Code(got.Result.Err) != "link.lost" {
			t.Errorf("Command = %+v, %v, want that its end is not known", got, err)
		}
		if first, err := c.Command(t.Context(), s.ID+".1", 100); err != nil || first.Result == nil || string(first.Result.Stdout) != "before\n" {
			t.Errorf("the one before is %+v, %v", first, err)
		}
	}
	next := start(t, daemon.Config{StateDir: leftBy(t, state)})("")
	if lost, err := next.Session(t.Context(), "work"); err != nil || lost.State != api.Lost || lost.Command == nil || lost.Command.ID != s.ID+".2" || lost.Command.State != "unknown" {
		t.Errorf("the session is %+v with %+v, %v", lost, lost.Command, err)
	}
	check(next)

	// Where not even its result could be recorded, those behind it do not hide it.
	must(t, c.Interrupt(t.Context(), "work", api.Interrupt{Level: "int"}))
	if _, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit}); err != nil {
		t.Fatal(err)
	}
	run(t, c, "work", "echo later")
	crashed := leftBy(t, state)
	file := filepath.Join(crashed, "sessions", s.ID, "commands.jsonl")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(line string) bool { return strings.Contains(line, s.ID+".2") })
	must(t, os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600))
	next = start(t, daemon.Config{StateDir: crashed})("")
	if later, err := next.Session(t.Context(), "work"); err != nil || later.Command == nil || later.Command.ID != s.ID+".3" || later.Command.State != "exited" {
		t.Errorf("then it is %+v with %+v, %v", later, later.Command, err)
	}
	check(next)
}

// breakFiles makes every write fail to what this process has open below a directory.
func breakFiles(t *testing.T, dir string) {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	found, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		fd, _ := strconv.Atoi(filepath.Base(name))
		if to, err := os.Readlink(name); err == nil && strings.HasPrefix(to, dir+"/sessions/") {
			must(t, unix.Dup3(int(full.Fd()), fd, unix.O_CLOEXEC))
		}
	}
}
