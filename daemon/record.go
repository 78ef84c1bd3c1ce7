package daemon

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"gateway/daemon/api"
)

// A record is what outlives a session, and the daemon, in a directory of its
// own: session.json, commands.jsonl and the transcript.
type record struct {
	dir string

	mu       sync.Mutex
	commands *os.File // opened with the first command
}

const (
	sessionFile  = "session.json"
	commandsFile = "commands.jsonl"
)

func createRecord(root, id string) (*record, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	dir := filepath.Join(root, id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	return &record{dir: dir}, nil
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
	if err := os.WriteFile(name+".new", append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// saveCommand appends what is known about a command. The last line with its id
// counts.
func (r *record) saveCommand(c api.Command) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.commands == nil {
		r.commands, err = os.OpenFile(filepath.Join(r.dir, commandsFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
	}
	_, err = r.commands.Write(append(line, '\n')) // in one write: a crash tears the last line at most
	return err
}

func (r *record) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.commands != nil {
		r.commands.Close()
		r.commands = nil
	}
}

// loadSession reads a session.json.
func loadSession(dir string) (s api.Session, err error) {
	data, err := os.ReadFile(filepath.Join(dir, sessionFile))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(data, &s)
}

// loadCommands calls each with the commands of a record in their order, a
// command that has ended twice: when it began, and with its result. A line that
// a crash has torn is left out.
func loadCommands(dir string, each func(api.Command)) error {
	f, err := os.Open(filepath.Join(dir, commandsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		var c api.Command
		if json.Unmarshal(bytes.TrimSpace(line), &c) == nil {
			each(c)
		}
	}
}
