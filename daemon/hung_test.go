package daemon_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
)

// While a disk takes neither that a command begins nor how it went, who looks is
// answered: the command runs.
func TestSessionsAreListedWhileTheDiskHangs(t *testing.T) {
	state := t.TempDir()
	c := start(t, daemon.Config{StateDir: state})("")
	s := open(t, c, api.Open{})
	gate := fifo(t, filepath.Join(state, "gate"))
	record := fifo(t, filepath.Join(state, "sessions", s.ID, "commands.jsonl")) // which waits for a reader, and for room
	listed := func(when string) {
		t.Helper()
		list, err := c.Sessions(t.Context(), false)
		if err != nil || len(list) != 1 || list[0].State != api.Running || list[0].Command == nil || list[0].Command.ID != s.ID+".1" {
			t.Errorf("%s: Sessions = %+v, %v", when, list, err)
		}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := c.Run(t.Context(), s.ID, api.Run{Text: "read x <" + gate, Wait: api.Duration(time.Minute)})
		ended <- err
	}()
	eventually(t, "the command is there", func() bool {
		list, err := c.Sessions(t.Context(), false)
		return err != nil || list[0].Command != nil
	})
	listed("at its beginning")

	disk, err := syscall.Open(record, syscall.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(disk)
	begun, err := os.OpenFile(gate, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{4096, 1} {
		for n := 1; n > 0; n, err = syscall.Write(disk, make([]byte, size)) {
		}
	}
	if !errors.Is(err, syscall.EAGAIN) {
		t.Fatal(err)
	}
	begun.Close()
	if w, err := c.Wait(t.Context(), s.ID, api.Wait{Until: api.UntilExit, Max: api.Duration(300 * time.Millisecond)}); err != nil || w.Met {
		t.Errorf("Wait = %+v, %v", w, err)
	}
	listed("at its end")
	for n := 1; n > 0; n, _ = syscall.Read(disk, make([]byte, 1<<20)) {
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got, err := c.Command(t.Context(), s.ID+".1", 1); err != nil || got.ExitCode == nil || *got.ExitCode != 1 {
		t.Errorf("Command = %+v, %v", got, err)
	}
}

// fifo makes one of that name.
func fifo(t *testing.T, path string) string {
	t.Helper()
	must(t, syscall.Mkfifo(path, 0o600))
	return path
}
