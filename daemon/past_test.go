package daemon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
)

// What is over is remembered in numbers that memory and disk can bear.
func TestPastIsBounded(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	long := strings.Repeat("ä", 5000)
	for i := range 4100 {
		s := api.Session{ID: fmt.Sprintf("s-%04d", i), Name: "work", State: api.Closed, OpenedAt: time.Unix(int64(i), 0)}
		if i > 4090 {
			s.Command = &api.Command{ID: s.ID + ".1", Text: long, State: "exited"}
		}
		dir := filepath.Join(state, "sessions", s.ID)
		data, err := json.Marshal(s)
		if err != nil || os.MkdirAll(dir, 0o700) != nil || os.WriteFile(filepath.Join(dir, "session.json"), data, 0o600) != nil {
			t.Fatal("no records to begin with")
		}
	}
	c := start(t, daemon.Config{StateDir: state})("")
	var list []api.Session
	var err error
	eventually(t, "the records are read", func() bool { // until then a daemon says that it still does
		list, err = c.Sessions(t.Context(), true)
		return gateway.Code(err) != "daemon.unreachable"
	})
	if err != nil || len(list) != 4096 {
		t.Fatalf("%d sessions, %v", len(list), err)
	}
	if list[0].ID != "s-4099" || list[4095].ID != "s-0004" {
		t.Errorf("sessions from %s to %s", list[0].ID, list[4095].ID)
	}
	if text := list[0].Command.Text; utf8.RuneCountInString(text) != 1<<10 || !strings.HasSuffix(text, "ä…") {
		t.Errorf("%d characters of a command, ending in %q", utf8.RuneCountInString(text), text[len(text)-10:])
	}
	if _, err := os.Lstat(filepath.Join(state, "sessions", "s-0003")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the record of a session that is forgotten: %v", err)
	}
}

// TestPastIsBoundedByWhatIsWritten: the records of many sessions that write much are not left to grow
// until an hour is over.
func TestPastIsBoundedByWhatIsWritten(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	c := start(t, daemon.Config{StateDir: state, TranscriptLimit: 1 << 20})("")
	s := open(t, c, api.Open{})
	old := filepath.Join(state, "sessions", "s-old")
	record := filepath.Join(old, "session.json")
	if os.Mkdir(old, 0o700) != nil || os.WriteFile(record, nil, 0o600) != nil || os.Truncate(record, 1<<30) != nil || os.Chtimes(record, time.Time{}, time.Now().Add(-time.Hour)) != nil {
		t.Fatal("no record to begin with")
	}
	for range 2 {
		run(t, c, s.ID, `head -c 1000000 /dev/zero | tr "\0" x`)
		open(t, c, api.Open{})
	}
	if _, err := os.Lstat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the oldest record beyond the limit: %v", err)
	}
}

// Long texts are in the record; a session keeps few of them.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	c := start(t, daemon.Config{})("")
	s := open(t, c, api.Open{})
	for i := range 4 {
		run(t, c, s.ID, fmt.Sprintf("echo %d # %s", i, strings.Repeat("x", 300_000)))
	}
	for i := range 4 {
		got, err := c.Command(t.Context(), fmt.Sprintf("%s.%d", s.ID, i+1), 0)
		if err != nil || got.Result == nil || string(got.Result.Stdout) != fmt.Sprintln(i) || len(got.Text) < 300_000 {
			t.Errorf("command %d: %+.100v, %v", i, got.Result, err)
		}
	}
}

// A result is truncated if it lacks something of what the command wrote: because it
// is more than what a result has, or never came to the transcript.
func TestTruncated(t *testing.T) {
	state := t.TempDir()
	c := start(t, daemon.Config{StateDir: state})("")
	s := open(t, c, api.Open{})
	const size = 23893 // of seq 1 5000: more than the engine keeps
	truncated := func(limit int, want bool) {
		t.Helper()
		got, err := c.Command(t.Context(), s.ID+".1", limit)
		if err != nil || got.Result == nil {
			t.Fatalf("Command = %v", err)
		}
		if r := got.Result; r.Truncated != want || r.StdoutBytes != size || limit == 0 && len(r.Stdout) != size {
			t.Errorf("limit %d: %d of %d bytes, truncated %v, want %v of %d", limit, len(r.Stdout), r.StdoutBytes, r.Truncated, want, size)
		}
	}
	run(t, c, s.ID, "seq 1 5000")
	truncated(0, false)
	truncated(1000, true)
	closeSession(t, c, s.ID)
	truncated(0, false)
	truncated(1000, true)
	file := filepath.Join(state, "sessions", s.ID, "commands.jsonl")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cut := strings.Replace(string(data), `"truncated":false`, `"truncated":true`, 1)
	if err := os.WriteFile(file, []byte(cut), 0o600); err != nil || cut == string(data) {
		t.Fatalf("no record to change: %v", err)
	}
	truncated(0, true)
}

// What a result has of a long stream begins and ends with whole characters.
func TestResultIsCutBetweenCharacters(t *testing.T) {
	c := start(t, daemon.Config{})("")
	s := open(t, c, api.Open{})
	run(t, c, s.ID, `printf a; yes ö | head -n 1000 | tr -d '\n'; printf b`)
	for limit, want := range map[int]string{0: "a" + strings.Repeat("ö", 1000) + "b", 1000: "a" + strings.Repeat("ö", 498) + "b", 1999: "a" + strings.Repeat("ö", 998) + "b"} {
		got, err := c.Command(t.Context(), s.ID+".1", limit)
		if err != nil || got.Result == nil {
			t.Fatalf("Command = %v", err)
		}
		if r := got.Result; string(r.Stdout) != want || r.StdoutBytes != 2002 || r.Truncated != (limit > 0) {
			t.Errorf("limit %d: %d of %d bytes, truncated %v, want %d", limit, len(r.Stdout), r.StdoutBytes, r.Truncated, len(want))
		}
	}
}

// The text of a command, which may be long, is in a record once, and shown with all
// that is read of it. A record in which each line has it is read as well.
func TestTextIsRecordedOnce(t *testing.T) {
	state := t.TempDir()
	c := start(t, daemon.Config{StateDir: state})("")
	s := open(t, c, api.Open{})
	texts := []string{"echo one", "echo two #" + strings.Repeat("x", 100<<10), ""}
	for _, text := range texts {
		run(t, c, s.ID, text)
	}
	closeSession(t, c, s.ID)
	check := func() {
		t.Helper()
		for i, text := range texts {
			got, err := c.Command(t.Context(), fmt.Sprintf("%s.%d", s.ID, i+1), 0)
			if err != nil || got.Text != text || got.Result == nil || got.Result.Command != text {
				t.Errorf("command %d is %.200v, %v, want the text %.20q", i+1, got, err, text)
			}
		}
	}
	check()
	file := filepath.Join(state, "sessions", s.ID, "commands.jsonl")
	data, err := os.ReadFile(file)
	if err != nil || strings.Count(string(data), `"echo two #`) != 1 {
		t.Errorf("%v, the record has %d bytes for %d of text", err, len(data), len(texts[1]))
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n") // each command has two
	for i, text := range texts {
		lines[2*i+1] = strings.ReplaceAll(lines[2*i+1], `"command":""`, `"command":"`+text+`"`)
	}
	must(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	check()
}

// What is recorded of commands is bounded, however long a session lives: the last ones
// are there, each with its text and its result, also once the session is over.
func TestCommandsAreBounded(t *testing.T) {
	const limit, texts = 64 << 10, 20
	state := t.TempDir()
	c := start(t, daemon.Config{StateDir: state, TranscriptLimit: limit})("")
	s := open(t, c, api.Open{})
	text := func(i int) string { return fmt.Sprintf("(exit %d) # %s", i, strings.Repeat("x", 8<<10)) }
	for i := range texts {
		run(t, c, s.ID, text(i))
	}
	check := func() {
		t.Helper()
		for i := range texts {
			got, err := c.Command(t.Context(), fmt.Sprintf("%s.%d", s.ID, i+1), 0)
			switch {
			case err != nil && i < texts-3 && gateway.Code(err) == "session.not_found":
			case err != nil || got.Text != text(i) || got.Result == nil || got.Result.ExitCode != i:
				t.Errorf("command %d is %.200v, %v", i, got, err)
			}
		}
	}
	var size int64
	files, err := filepath.Glob(filepath.Join(state, "sessions", s.ID, "commands*"))
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if err != nil || size > limit+(16<<10) || size < limit/2 {
		t.Errorf("%d bytes in %q, %v, want about %d", size, files, err, limit)
	}
	check()
	closeSession(t, c, s.ID)
	check()
}

// A session that is closed on a full disk is closed for the next daemon, too, which
// knows its last command, and not lost.
func TestCloseIsNotRecorded(t *testing.T) {
	state := t.TempDir()
	c := start(t, daemon.Config{StateDir: state})("")
	s := open(t, c, api.Open{Name: "work"})
	run(t, c, s.ID, "cd /; echo said; (exit 3)")
	must(t, os.Mkdir(filepath.Join(state, "sessions", s.ID, "session.json.new"), 0o700)) // nothing can be written there
	closeSession(t, c, s.ID)
	for range 2 { // the first one can't write either
		c := start(t, daemon.Config{StateDir: state})("")
		got, err := c.Session(t.Context(), s.ID)
		if err != nil || got.State != api.Closed || got.Reason == "" || got.Command == nil || got.Cwd != "/" {
			t.Errorf("the session is %+v, %v", got, err)
		}
		last, err := c.Command(t.Context(), s.ID+".1", 0)
		if err != nil || last.Result == nil || last.Result.ExitCode != 3 || string(last.Result.Stdout) != "said\n" {
			t.Errorf("its command is %+v, %v", last, err)
		}
	}
}

// recordedAs runs commands in a session, closes it, and leaves of its record what disk returns: of
// each command, lines has two.
func recordedAs(t *testing.T, disk func(lines []string) string, texts ...string) (c *client.Client, id string) {
	t.Helper()
	state := t.TempDir()
	c = start(t, daemon.Config{StateDir: state})("")
	s := open(t, c, api.Open{})
	for _, text := range texts {
		run(t, c, s.ID, text)
	}
	closeSession(t, c, s.ID)
	file := filepath.Join(state, "sessions", s.ID, "commands.jsonl")
	data, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(disk(strings.SplitAfter(string(data), "\n"))), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, s.ID
}

// A command whose result could not be written, as on a full disk, is over with its
// session: what that knows of its last one counts, and of others that nobody knows.
func TestResultThatIsNotThere(t *testing.T) {
	c, id := recordedAs(t, func(lines []string) string { return lines[0] + lines[1] + lines[2] + lines[4] },
		"echo first; (exit 1)", "echo second; (exit 2)", "echo third; (exit 3)")
	for i, want := range []struct {
		state, output string
		status        int
	}{{"exited", "first\n", 1}, {"unknown", "second\n", -1}, {"exited", "third\n", 3}} {
		got, err := c.Command(t.Context(), fmt.Sprintf("%s.%d", id, i+1), 0)
		if err != nil || got.State != want.state || got.Result == nil {
			t.Errorf("command %d = %+v, %v, want %s", i+1, got, err, want.state)
			continue
		}
		r := got.Result
		if string(r.Verdict) != want.state || r.ExitCode != want.status || string(r.Stdout) != want.output || r.StdoutBytes != int64(len(want.output)) || (r.Err == nil) != (want.status > 0) {
			t.Errorf("the result of command %d is %+v", i+1, r)
		}
	}
}

// What a command has said of which nothing was recorded is not told of the one before.
func TestNeitherResultNorNext(t *testing.T) {
	c, id := recordedAs(t, func(lines []string) string { return lines[0] + lines[4] + lines[5] }, "echo first", "echo second", "echo third")
	got, err := c.Command(t.Context(), id+".1", 0)
	if err != nil || got.State != "unknown" || got.Result == nil {
		t.Fatalf("it is %+v, %v, want unknown", got, err)
	}
	if r := got.Result; len(r.Stdout) > 0 || !r.Truncated || got.Why == nil {
		t.Errorf("its result is %+v, output is missing: %v, want that some is", r, got.Why)
	}
}

// Where only the session knows how its last command ended, the result has what the
// contract wants of such a verdict: a beginning if it began, an error if it did not
// end by itself.
func TestVerdictWithoutResult(t *testing.T) {
	state := t.TempDir()
	c := start(t, daemon.Config{StateDir: state})("")
	for verdict, want := range map[string]struct {
		run     api.Run
		code    string
		started bool
	}{
		"exited":      {api.Run{Text: "exit 3"}, "", true},
		"signaled":    {api.Run{Text: "kill -9 $$"}, "", true},
		"timed_out":   {api.Run{Text: "sleep 1000", Timeout: api.Duration(50 * time.Millisecond)}, "cmd.timeout", true},
		"interrupted": {api.Run{Text: "sleep 1000"}, "cmd.interrupted", true},
		"not_started": {api.Run{Text: "true", Cwd: "/nonexistent"}, "internal", false},
	} {
		s := open(t, c, api.Open{Once: true})
		want.run.Wait = api.Duration(20 * time.Second)
		if verdict == "interrupted" {
			want.run.Wait = 0
		}
		ran, err := c.Run(t.Context(), s.ID, want.run)
		if err == nil && verdict == "interrupted" {
			err = c.Interrupt(t.Context(), s.ID, api.Interrupt{Level: "int"})
		}
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, verdict+": the session is over", func() bool {
			s, err := c.Session(t.Context(), s.ID)
			return err == nil && s.State == api.Closed
		})
		_, _ = c.Close(t.Context(), s.ID) // which waits until it is of the past, where its record counts
		file := filepath.Join(state, "sessions", s.ID, "commands.jsonl")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		begun, _, _ := strings.Cut(string(data), "\n")
		must(t, os.WriteFile(file, []byte(begun+"\n"), 0o600))
		got, err := c.Command(t.Context(), ran.ID, 0)
		if err != nil || got.Result == nil {
			t.Errorf("%s: %+v, %v", verdict, got, err)
			continue
		}
		if r := got.Result; string(r.Verdict) != verdict || r.Err != nil != (want.code != "") || r.Err != nil && gateway.Code(r.Err) != want.code || r.Started.IsZero() == want.started {
			t.Errorf("%s: the result is %+v, started %v, %v, want %q", verdict, r.Verdict, r.Started, r.Err, want.code)
		}
	}
}
