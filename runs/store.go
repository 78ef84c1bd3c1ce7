package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/transport"
)

// What is remembered, and for how long.
const (
	maxAge   = 30 * 24 * time.Hour
	maxTotal = 64 << 20
	maxRuns  = 1000
)

// A Store is a directory of records. The zero value remembers nothing.
type Store struct{ Dir string }

const suffix = ".json"

// Save writes a record, in the place of an earlier one of the same run, whole or
// not at all. The oldest records make room for a new one.
func (s Store) Save(r Record) error {
	if s.Dir == "" {
		return nil
	}
	r.Schema = recordSchema
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(s.Dir, r.ID+".*.tmp") // 0600
	if err != nil {
		return err
	}
	_, err = file.Write(append(data, '\n'))
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), s.path(r.ID))
	}
	if err != nil {
		os.Remove(file.Name())
		return err
	}
	s.prune()
	return nil
}

func (s Store) path(id string) string { return filepath.Join(s.Dir, id+suffix) }

// prune removes what is too old or too much, and what a crash has left.
func (s Store) prune() {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return
	}
	total, count := int64(0), 0
	for _, entry := range slices.Backward(entries) { // ids sort by time
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		age := time.Since(info.ModTime())
		if strings.HasSuffix(entry.Name(), ".tmp") {
			if age > time.Hour {
				os.Remove(filepath.Join(s.Dir, entry.Name()))
			}
			continue
		}
		total += info.Size()
		id, beside := strings.CutSuffix(entry.Name(), progressSuffix)
		if beside { // it goes with its record, unless that was never made
			if age > maxAge {
				os.Remove(s.progressPath(id))
			}
			continue
		}
		if count++; count > 1 && (age > maxAge || total > maxTotal || count > maxRuns) {
			os.Remove(filepath.Join(s.Dir, entry.Name()))
			os.Remove(s.progressPath(strings.TrimSuffix(entry.Name(), suffix)))
		}
	}
}

// nextID returns an id above all that there are, also where the clock has been set
// back meanwhile: the last run is the one that was begun last.
func (s Store) nextID() string {
	id := ulid.Make()
	ids, _ := s.IDs() // a directory that can't be read is told by Save
	if len(ids) > 0 && ids[0] >= id.String() {
		_ = id.SetTime(ulid.MustParseStrict(ids[0]).Time() + 1) // it fails for the year 10889
	}
	return id.String()
}

// IDs returns the runs, the latest first. The error is as that of [Store.Load].
func (s Store) IDs() ([]string, error) {
	if s.Dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &transport.Error{
			Code: "selector.invalid", Message: fmt.Sprintf("runs can't be read: %v", err),
			Hint: "see who owns the directory: a sudo with your HOME may have made it", Err: err,
		}
	}
	var ids []string
	for _, entry := range slices.Backward(entries) {
		id, ok := strings.CutSuffix(entry.Name(), suffix)
		if _, err := ulid.ParseStrict(id); ok && err == nil {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Load returns a run by its id, the beginning of one, or "last". The error is a
// *[transport.Error] with the code selector.invalid if there is none.
func (s Store) Load(name string) (Record, error) {
	if id := strings.ToUpper(name); s.has(id) { // a list of many would else read the directory for each
		return s.read(id)
	}
	if name == "" { // every id begins with it
		return Record{}, unknown(`"" is not the id of a run`)
	}
	ids, err := s.IDs()
	if err != nil {
		return Record{}, err
	}
	if name == "last" {
		if len(ids) == 0 {
			hint := "exec, run and cp with a selector of many hosts are"
			if s.Dir == "" {
				hint = "set HOME or XDG_STATE_HOME, below which runs are remembered"
			}
			return Record{}, &transport.Error{Code: "selector.invalid", Message: "no run is remembered", Hint: hint}
		}
		return s.read(ids[0])
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, strings.ToUpper(name)) })
	switch len(ids) {
	case 0:
		return Record{}, unknown("no run %s", name)
	case 1:
		return s.read(ids[0])
	}
	return Record{}, unknown("%d runs begin with %s", len(ids), name)
}

// has reports whether there is a run of just this id.
func (s Store) has(id string) bool {
	if _, err := ulid.ParseStrict(id); err != nil || s.Dir == "" {
		return false
	}
	_, err := os.Lstat(s.path(id))
	return err == nil
}

func unknown(format string, args ...any) error {
	return &transport.Error{Code: "selector.invalid", Message: fmt.Sprintf(format, args...), Hint: "gateway runs list shows what is remembered"}
}

// read returns a record with what is known of a run that has no end.
func (s Store) read(id string) (Record, error) {
	r, err := s.record(id)
	if err != nil || r.EndedAt != nil {
		return r, err
	}
	if err := s.follow(&r); err != nil {
		return Record{}, unreadable(id, err)
	}
	if !r.Running { // it may have come to its end meanwhile
		if ended, err := s.record(id); err == nil && ended.EndedAt != nil {
			return ended, nil
		}
	}
	return r, nil
}

func (s Store) record(id string) (Record, error) {
	var r Record
	data, err := os.ReadFile(s.path(id))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err == nil && (r.Schema != recordSchema || r.ID != id) {
		err = errors.New("not a record of this run")
	}
	if err != nil {
		return Record{}, unreadable(id, err)
	}
	return r, nil
}

func unreadable(id string, err error) error {
	return &transport.Error{
		Code: "selector.invalid", Message: fmt.Sprintf("run %s: its record can't be read: %v", id, err),
		Hint: "gateway runs list shows the others", Err: err,
	}
}

// Hosts names the hosts of a run that had one of the outcomes, as
// hosts.Lookup.Run does. Those of a run that goes on are no selection: they would
// change with the moment, and a host that is busy would be tried once more.
func (s Store) Hosts(name string, outcomes []string) ([]string, error) {
	r, err := s.Load(name)
	if err != nil {
		return nil, err
	}
	if r.Running {
		return nil, &transport.Error{
			Code: "usage", Message: fmt.Sprintf("run %s still goes on: its hosts can't be selected yet", r.ID),
			Hint: "gateway runs show " + r.ID + " shows how far it is: wait for its end, or name an earlier run by its id",
		}
	}
	return r.With(outcomes), nil
}
