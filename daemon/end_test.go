package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/session"
)

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

// A machine may log out who is idle, and nobody has told the shell to end.
func TestShellThatWaitedTooLong(t *testing.T) {
	c := start(t, daemon.Config{})("")
	s := open(t, c, api.Open{Shell: "bash"})
	run(t, c, s.ID, "TMOUT=1")
	eventually(t, "session over", func() bool {
		s, err := c.Session(t.Context(), s.ID)
		return err == nil && s.State == api.Closed
	})
	_, err := c.Run(t.Context(), s.ID, api.Run{Text: "true"})
	if gateway.Code(err) != "session.closed" || !strings.Contains(err.Error(), "status 0, as it was idle for longer than its TMOUT allows") {
		t.Errorf("Run = %v, want closed with the reason", err)
	}
}

// Who has been told that the session is over does not find it idle.
func TestShellThatEndedIsInNoList(t *testing.T) {
	dial := start(t, daemon.Config{})
	c := dial("")
	for range 20 {
		open(t, c, api.Open{Name: "work"})
		run(t, c, "work", "exit 3")
		if list, err := c.Sessions(t.Context(), false); err != nil || len(list) != 0 {
			t.Fatalf("%v, still open: %+v", err, list)
		}
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
	begin(t, c, "work", api.Run{Text: "trap '' INT; sleep 1000"})
	must(t, c.Reset(t.Context(), "work"))
	if r := run(t, c, "work", `pwd; echo $v`); string(r.Stdout) != "/usr\nkept\n" {
		t.Errorf("after reset: %q", r.Stdout)
	}
}

// leftBy returns what a daemon that is killed leaves: what stands on the disk now.
func leftBy(t *testing.T, state string) string {
	t.Helper()
	crashed := t.TempDir()
	must(t, os.CopyFS(crashed, os.DirFS(state)))
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
	begin(t, c, "work", api.Run{Text: "echo half >&2; sleep 1000", Merge: true})
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
	if err != nil || len(list) != 1 || list[0].ID != s.ID || list[0].State != api.Lost || list[0].Cwd != "/" || list[0].Command.Text != "echo half >&2; sleep 1000" || list[0].To != 10 {
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
	if err != nil || half.State != "unknown" || half.Result == nil || string(half.Result.Stdout) != "half\n" || half.Result.StdoutBytes != 5 || half.Result.Streams != session.Merged || gateway.Code(half.Result.Err) != "link.lost" || half.Result.Command != "echo half >&2; sleep 1000" {
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
