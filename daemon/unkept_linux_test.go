package daemon_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gateway/daemon"
	"gateway/daemon/api"
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
			if err := unix.Dup3(int(full.Fd()), fd, unix.O_CLOEXEC); err != nil {
				t.Fatal(err)
			}
		}
	}
}
