package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
)

// openUnkept opens a session of which nothing more can be kept: its directory is away.
func openUnkept(t *testing.T) (c *client.Client, s api.Session, dir string) {
	t.Helper()
	state := t.TempDir()
	c = start(t, daemon.Config{StateDir: state})("")
	s = open(t, c, api.Open{})
	dir = filepath.Join(state, "sessions", s.ID)
	run(t, c, s.ID, "true")
	must(t, os.Rename(dir, dir+".away")) // no file can be made in it
	return c, s, dir
}

// A caller whose output could not be kept is told why, also once the session is
// over and nothing of it could be recorded.
func TestOutputThatCannotBeKept(t *testing.T) {
	c, s, dir := openUnkept(t)
	const size = 100_000
	var dropped int64
	var last *api.Command
	err := c.Exec(t.Context(), s.ID, api.Run{Text: "head -c 100000 /dev/zero"}, func(e api.Event) error {
		if dropped += e.Dropped; e.Dropped > 0 && (e.Why == nil || e.Why.Code != "transcript.disk") {
			t.Errorf("dropped %d, because of %+v", e.Dropped, e.Why)
		}
		last = e.Command
		return nil
	})
	if err != nil || dropped != size {
		t.Fatalf("Exec = %v, %d bytes dropped, want %d", err, dropped, size)
	}
	if r := last.Result; last.Why == nil || r == nil || !r.Truncated || r.StdoutBytes != size || r.ExitCode != 0 {
		t.Errorf("the command is %+v with %+v", last, r)
	}
	check := func(when string, q api.Query) {
		t.Helper()
		o, err := c.Output(t.Context(), s.ID, q)
		if err != nil || o.Dropped != size || o.Why == nil || !strings.Contains(o.Why.Message, "no such file") {
			t.Errorf("%s: Output(%+v) = %+v because of %+v, %v", when, q, o, o.Why, err)
		}
	}
	check("open", api.Query{})
	check("open", api.Query{Command: last.ID, Tail: 10})
	check("open", api.Query{Command: last.ID, Grep: "x"})
	must(t, os.Rename(dir+".away", dir))
	closeSession(t, c, s.ID)
	check("closed", api.Query{Command: last.ID, Tail: 10})
}

// A caller whose output can't be read at the moment misses it, with the cause, but not how
// the command has ended.
func TestOutputThatCannotBeRead(t *testing.T) {
	state := t.TempDir()
	c := start(t, daemon.Config{StateDir: state})("")
	s := open(t, c, api.Open{})
	run(t, c, s.ID, "echo first")
	files, err := filepath.Glob(filepath.Join(state, "sessions", s.ID, "transcript-*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	must(t, os.Chmod(files[0], 0o644)) // which is refused
	var dropped int64
	var why *gateway.JSONError
	var last *api.Command
	err = c.Exec(t.Context(), s.ID, api.Run{Text: "echo said; (exit 3)"}, func(e api.Event) error {
		if dropped += e.Dropped; e.Dropped > 0 {
			why = e.Why
		}
		last = e.Command
		return nil
	})
	if err != nil || dropped != int64(len("said\n")) || why == nil || why.Code != "transcript.unsafe" {
		t.Errorf("Exec = %v, %d bytes dropped because of %+v", err, dropped, why)
	}
	if last == nil || last.Result == nil || last.Result.ExitCode != 3 {
		t.Errorf("the command is %+v", last)
	}
}

// Who asks for what was said in a session whose record somebody has removed is told that,
// and not that the daemon's limit took it, or that the disk can't be written to.
func TestRecordThatWasRemoved(t *testing.T) {
	state := t.TempDir()
	c := start(t, daemon.Config{StateDir: state})("")
	s, past := open(t, c, api.Open{}), open(t, c, api.Open{})
	for _, id := range []string{s.ID, past.ID} {
		run(t, c, id, "seq 1 5000")
	}
	closeSession(t, c, past.ID)
	must(t, os.RemoveAll(filepath.Join(state, "sessions")))
	const size = 23893 // of seq 1 5000: more than the engine keeps
	o, err := c.Output(t.Context(), s.ID, api.Query{})
	if err != nil || o.Dropped != size || o.Why == nil || !strings.Contains(o.Why.Message, "no such file") || o.Why.Hint == "" {
		t.Errorf("Output = %d dropped because of %+v, %v", o.Dropped, o.Why, err)
	}
	last, err := c.Command(t.Context(), s.ID+".1", 0)
	if err != nil || last.Result == nil || !last.Result.Truncated || last.Why == nil {
		t.Errorf("Command = %+v because of %+v, %v", last.Result, last.Why, err)
	}
	if _, err := c.Output(t.Context(), past.ID, api.Query{}); gateway.Code(err) != "session.not_found" || !strings.Contains(gateway.Hint(err), state) {
		t.Errorf("Output of a session that is over = %v, %q", err, gateway.Hint(err))
	}
}

// A session that can't be recorded is not opened, and leaves no record of which
// nothing could be read.
func TestSessionThatCannotBeRecorded(t *testing.T) {
	// A directory of a session can be made there, and no file in it: the path is too long.
	state, longest := t.TempDir(), unix.PathMax-1-len("/sessions/s-0123456789")
	for left := longest - len(state); left > 1; left = longest - len(state) {
		state = filepath.Join(state, strings.Repeat("x", min(left-1, 200)))
	}
	must(t, os.MkdirAll(state, 0o700))
	c := start(t, daemon.Config{StateDir: state})("")
	_, err := c.Open(t.Context(), api.Open{Target: localhost}, gateway.Caller{})
	if err == nil || !strings.Contains(err.Error(), "record of the session: ") || !strings.Contains(err.Error(), "session.json") {
		t.Errorf("Open = %v, want that it can't be recorded", err)
	}
	if left, err := os.ReadDir(filepath.Join(state, "sessions")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v are left", err, left)
	}
}

// What could not be kept of a session is told also where not even that was written down
// when it was closed.
func TestSessionThatIsClosedOnAFullDisk(t *testing.T) {
	c, s, dir := openUnkept(t)
	run(t, c, s.ID, "head -c 1000 /dev/zero")
	closeSession(t, c, s.ID)
	must(t, os.Rename(dir+".away", dir))
	for _, q := range []api.Query{{}, {Tail: 10}, {Grep: "x"}, {Command: s.ID + ".2"}} {
		if o, err := c.Output(t.Context(), s.ID, q); err != nil || o.Dropped != 1000 {
			t.Errorf("Output(%+v) = %+v, %v", q, o, err)
		}
	}
}
