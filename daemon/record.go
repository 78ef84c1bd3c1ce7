package daemon

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/internal/transcript"
	"gateway/session"
	"gateway/transport"
)

// A record is what outlives a session, and the daemon, in a directory of its
// own: session.json, commands.jsonl and the transcript.
type record struct {
	dir   string
	limit int64 // of the files for commands

	mu       sync.Mutex
	commands *os.File // opened with the first command
	size     int64    // of it
	torn     bool     // the last line may lack its end
	told     string   // the last command whose text is in a line
	unsaved  string   // the file that stands for one that is in none
}

const (
	sessionFile  = "session.json"
	closedFile   = "session-closed.json" // what was the one above, where that the session is closed had no room
	commandsFile = "commands.jsonl"
	earlierFile  = "commands-earlier.jsonl" // what was the one above, until it had half of the limit
)

func createRecord(root, id string, limit int64) (*record, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	dir := filepath.Join(root, id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	return &record{dir: dir, limit: limit}, nil
}

// saveSession replaces session.json as a whole: a crash leaves the old one or
// the new one.
func (r *record) saveSession(s api.Session) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	name := filepath.Join(r.dir, sessionFile)
	err = os.WriteFile(name+".new", append(data, '\n'), 0o600)
	switch {
	case err == nil:
		err = os.Rename(name+".new", name)
	case s.State == api.Closed: // a disk that is full has room for another name
		err = errors.Join(err, os.Rename(name, filepath.Join(r.dir, closedFile)))
	}
	return err
}

// saveCommand appends what is known about a command. The last line with its id
// counts, but for the text, which may be long: the first one has it.
func (r *record) saveCommand(c api.Command) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn()
	err := r.append(c)
	if err != nil && r.told != c.ID {
		r.miss(c)
	}
	return err
}

func (r *record) append(c api.Command) error {
	if r.told == c.ID {
		c = withText(c, "")
	}
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if r.commands == nil {
		r.commands, err = os.OpenFile(filepath.Join(r.dir, commandsFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
	}
	line = append(line, '\n')
	if r.torn {
		line = append([]byte("\n"), line...)
	}
	n, err := r.commands.Write(line) // at once: a crash tears the last line at most
	r.size += int64(n)
	r.torn = err != nil
	if err != nil { // as a transcript does
		r.commands.Close()
		r.commands = nil
		return err
	}
	r.told = c.ID
	return nil
}

// turn begins another file where one has half of the limit, and so forgets the oldest
// commands: a session may live for months.
func (r *record) turn() {
	if r.commands == nil || r.size < r.limit/2 {
		return
	}
	if os.Rename(filepath.Join(r.dir, commandsFile), filepath.Join(r.dir, earlierFile)) != nil {
		return // it grows then, and loses nothing
	}
	r.commands.Close()
	r.commands, r.size, r.torn, r.told = nil, 0, false, ""
}

// withText returns a command with another text, also in its result.
func withText(c api.Command, text string) api.Command {
	c.Text = text
	if c.Result != nil {
		result := *c.Result
		result.Command = text
		c.Result = &result
	}
	return c
}

// Why a session is over whose record does not say that: a daemon has left it open, or
// could not write more than that it is closed.
const (
	deserted   = "the daemon ended without closing it"
	unrecorded = "how it ended could not be recorded"
)

// conclude adds to such a session what its record says about it. The result of what it
// was running is for [concluded] to make: to count what that has said is to read all of
// it.
func conclude(dir string, s api.Session) (api.Session, error) {
	if !s.State.Over() {
		s.State, s.Reason = api.Lost, deserted
	}
	s.ClosedAt = new(stamp())
	err := loadCommands(dir, func(c api.Command) { // what can be read counts
		c.Host = s.Host
		if c.Result != nil && c.Result.Cwd != "" {
			s.Cwd = c.Result.Cwd
		}
		c.Result = nil
		s.Command, s.UsedAt = &c, c.StartedAt
	})
	start, end, failed := transcript.Bounds(dir)
	if err = errors.Join(err, failed); failed == nil {
		s.From, s.To = int64(start), int64(end)
	}
	if c := s.Command; c != nil && !c.Over() {
		c.To = max(s.To, c.From)
		c.State, c.Prompt = string(session.Unknown), nil
	}
	return s, err
}

// unknown returns a command of whose end nothing is known, with a result that says
// so.
func unknown(s api.Session, c api.Command, reason string, log *transcript.Log) api.Command {
	c.State, c.Prompt, c.Host = string(session.Unknown), nil, s.Host
	c.Result = &gateway.Result{
		ID: c.ID, Host: c.Host, User: s.User, Transport: s.Transport, Session: c.Session, Shell: s.Shell, Command: c.Text,
		Result: session.Result{Verdict: session.Unknown, ExitCode: -1, Started: c.StartedAt, Cwd: s.Cwd, Streams: c.Streams(), Ended: true, Truncated: c.Why != nil},
		Err: &transport.Error{
			Code: "link.lost", Message: "daemon: " + reason, Err: session.ErrLost,
			Hint: "it may have run, or still run: look before running it again",
		},
	}
	c.Result.StdoutBytes = countOf(log, c, session.Stdout)
	c.Result.StderrBytes = countOf(log, c, session.Stderr)
	return c
}

// concluded returns a command from a record, which is over: where there is no result,
// with what the session says of its last command. Why it did not end by itself, and
// the name of a signal, are not among that.
func concluded(s api.Session, c api.Command, log *transcript.Log) api.Command {
	if c.Over() {
		return c
	}
	last := s.Command
	known := last != nil && last.ID == c.ID
	if known {
		c.To, c.Why = last.To, last.Why
	}
	reason := "its result could not be recorded"
	if known && s.Reason == deserted {
		reason = deserted
	}
	c = unknown(s, c, reason, log)
	if !known || last.State == c.State {
		return c
	}
	c.State, c.ExitCode, c.Ended = last.State, last.ExitCode, last.Ended
	r := c.Result
	r.Verdict, r.Ended, r.Err = session.Verdict(c.State), c.Ended, nil
	if c.ExitCode != nil {
		r.ExitCode = *c.ExitCode
	}
	switch r.Verdict {
	case session.NotStarted:
		r.Started, r.Err = time.Time{}, &transport.Error{Code: "internal", Message: "daemon: " + reason}
	case session.TimedOut:
		r.Err = &transport.Error{Code: "cmd.timeout", Message: "daemon: " + reason}
	case session.Interrupted:
		r.Err = &transport.Error{Code: "cmd.interrupted", Message: "daemon: " + reason}
	}
	return c
}

// countOf returns how many bytes of a stream there are of a command.
func countOf(log *transcript.Log, c api.Command, from session.Stream) int64 {
	kept, _ := log.View(transcript.Cursor(c.From), transcript.Cursor(c.To), transcript.Stream(from)).Count() // what can be read counts
	return kept
}

func (r *record) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.commands != nil {
		r.commands.Close()
		r.commands = nil
	}
}

// loadSession reads what a record says of its session, and reports whether that is all
// of it.
func loadSession(dir string) (s api.Session, whole bool, err error) {
	closed := false
	data, err := os.ReadFile(filepath.Join(dir, sessionFile))
	if errors.Is(err, fs.ErrNotExist) {
		data, err = os.ReadFile(filepath.Join(dir, closedFile))
		closed = err == nil
	}
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if closed {
		s.State, s.Reason = api.Closed, unrecorded
	}
	return s, !closed && s.State.Over(), err
}

// loadCommands calls each with the commands of a record in their order, a
// command that has ended twice: when it began, and with its result. A line that
// a crash has torn is left out, and one without a text has that of the line before.
// The last one that had no room in the record has none.
func loadCommands(dir string, each func(api.Command)) error {
	unsaved, n := missed(dir)
	tellUnsaved := func(before int) {
		if n != 0 && n < before {
			each(unsaved)
		}
		if n <= before {
			n = 0
		}
	}
	var files [2]*os.File
	for i, name := range []string{commandsFile, earlierFile} { // in this order: the one may become the other meanwhile
		f, err := os.Open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		defer f.Close()
		files[i] = f
	}
	for _, f := range []*os.File{files[1], files[0]} {
		if f == nil {
			continue
		}
		err := readCommands(f, func(c api.Command) {
			tellUnsaved(number(c.ID))
			each(c)
		})
		if err != nil {
			return err
		}
	}
	tellUnsaved(math.MaxInt)
	return nil
}

func readCommands(f io.Reader, each func(api.Command)) error {
	lines := bufio.NewReader(f)
	var last api.Command
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		var c api.Command
		if json.Unmarshal(bytes.TrimSpace(line), &c) != nil {
			continue
		}
		if c.Text == "" && c.ID == last.ID {
			c = withText(c, last.Text)
		}
		last = c
		each(c)
	}
}
