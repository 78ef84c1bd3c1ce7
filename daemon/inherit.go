package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gateway/daemon/api"
	"gateway/internal/transcript"
	"gateway/transport"
)

// root is the directory of the records.
func (d *Daemon) root() string { return filepath.Join(d.config.StateDir, "sessions") }

func (d *Daemon) recordDir(id string) string { return filepath.Join(d.root(), id) }

// records returns what is in root now, and makes it.
func (d *Daemon) records() ([]fs.DirEntry, error) {
	err := os.MkdirAll(d.root(), 0o700)
	var entries []fs.DirEntry
	if err == nil {
		entries, err = os.ReadDir(d.root())
	}
	if err != nil {
		return nil, fmt.Errorf("daemon: state: %w", err)
	}
	return entries, nil
}

// inherit reads the records of earlier daemons. What it concludes is written when nobody
// waits for it any more: for each of thousands of records, a disk may have to be waited for.
func (d *Daemon) inherit(left []fs.DirEntry) {
	var unwritten []string
	for _, entry := range left {
		dir := filepath.Join(d.root(), entry.Name())
		s, whole, err := loadSession(dir)
		if err == nil && s.ID != entry.Name() {
			err = fmt.Errorf("it is of %.40q", s.ID)
		}
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) { // it was never opened
				d.config.Log.Warn("record of a session", "directory", dir, "error", err)
			}
			continue
		}
		if !whole {
			if s, err = conclude(dir, s); err != nil {
				d.config.Log.Warn("record of a session", "session", s.ID, "error", err)
			}
			unwritten = append(unwritten, s.ID)
		}
		d.mu.Lock()
		d.past[s.ID] = outline(s)
		d.mu.Unlock()
	}
	d.forget()
	close(d.inherited)
	for _, id := range unwritten {
		d.rewrite(id, func(*api.Session) {})
	}
	d.clear()
}

// rewrite changes a session that is over, also in its record, if it is known.
func (d *Daemon) rewrite(id string, change func(*api.Session)) {
	d.rewriting.Lock()
	defer d.rewriting.Unlock()
	d.mu.Lock()
	s, ok := d.past[id]
	if ok {
		change(&s)
		d.past[id] = s
	}
	d.mu.Unlock()
	if !ok { // forgotten meanwhile
		return
	}
	if err := (&record{dir: d.recordDir(id)}).saveSession(s); err != nil {
		d.config.Log.Warn("record of a session", "session", id, "error", err)
	}
}

// knownTime is how long who asks for a session waits for what [Daemon.inherit] reads:
// less than a caller waits for an answer.
const knownTime = 4 * time.Second

// known waits until the sessions are known that an earlier daemon has left.
func (d *Daemon) known() error {
	select {
	case <-d.inherited:
		return nil
	case <-time.After(knownTime):
		return &transport.Error{
			Code: "daemon.unreachable", Message: "daemon: it still reads the records of earlier sessions",
			Hint: "try again in a moment",
		}
	}
}

// The limits of the records, as of the contract's spools.
const (
	maxRecords   = 1 << 30
	maxRecordAge = 7 * 24 * time.Hour
)

// prune clears now and then: every hour, and when as much has been written as one session keeps.
func (d *Daemon) prune() {
	d.mu.Lock()
	written := d.bytes.Load()
	due := time.Since(d.pruned) > time.Hour || written-d.prunedAt >= d.config.TranscriptLimit
	if due {
		d.pruned, d.prunedAt = time.Now(), written
	}
	d.mu.Unlock()
	if due {
		d.clear()
	}
}

// clear removes the records that are too old, and the oldest beyond the limit.
func (d *Daemon) clear() {
	removed, err := transcript.Prune(d.root(), maxRecords, maxRecordAge, d.holds)
	if err != nil {
		d.config.Log.Warn("records", "error", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, dir := range removed {
		delete(d.past, filepath.Base(dir))
	}
}
