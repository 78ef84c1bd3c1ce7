package daemon_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/gateway"
)

// A daemon that comes to many records, or to a slow disk, serves at once: only who asks
// for what an earlier one has left waits for that, and in the end is told to come again.
func TestRecordsThatTakeLongToRead(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	const id = "s-0123456789"
	dir := filepath.Join(state, "sessions", id)
	file := filepath.Join(dir, "session.json")
	must(t, os.MkdirAll(dir, 0o700))
	must(t, syscall.Mkfifo(file, 0o600)) // who reads it waits for who writes it
	c := start(t, daemon.Config{StateDir: state})("")
	s := open(t, c, api.Open{Name: "work"})
	if r := run(t, c, "work", "echo said"); string(r.Stdout) != "said\n" {
		t.Errorf("meanwhile: %+v", r)
	}
	later := make(chan error, 3)
	go func() { _, err := c.Sessions(t.Context(), true); later <- err }()
	go func() { _, err := c.Session(t.Context(), id); later <- err }()
	go func() { _, err := c.Command(t.Context(), id+".1", 0); later <- err }()
	for range cap(later) {
		if err := <-later; gateway.Code(err) != "daemon.unreachable" || gateway.Hint(err) == "" {
			t.Errorf("before that is read: %v, want daemon.unreachable", err)
		}
	}
	data, err := json.Marshal(api.Session{ID: id, Name: "work", State: api.Idle, OpenedAt: time.Now()})
	if err == nil {
		err = os.WriteFile(file, data, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Sessions(t.Context(), false)
	if err != nil || len(list) != 2 || list[0].ID != s.ID && list[1].ID != s.ID {
		t.Errorf("Sessions = %+v, %v", list, err)
	}
	if got, err := c.Session(t.Context(), id); err != nil || got.State != api.Lost {
		t.Errorf("Session = %+v, %v", got, err)
	}
}
