package daemon_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
)

// What a daemon that died was running keeps the next one no longer where it has said
// much: how much it was is counted for who asks.
func TestStartReadsNoTranscript(t *testing.T) {
	const size = 9 << 20 // of which the last file has 1 MiB
	state := t.TempDir()
	c := start(t, daemon.Config{StateDir: state})("")
	s := open(t, c, api.Open{Name: "work"})
	begin(t, c, "work", api.Run{Text: fmt.Sprintf("head -c %d /dev/zero; echo end; sleep 1000", size)})
	if w, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilMatch, Match: "end$", Max: api.Duration(20 * time.Second)}); err != nil || !w.Met {
		t.Fatalf("%+v, %v", w, err)
	}
	crashed := leftBy(t, state)
	before := charsRead(t)
	c = start(t, daemon.Config{StateDir: crashed})("")
	if n := charsRead(t) - before; n > size/2 {
		t.Errorf("the start has read %d bytes of %d", n, size)
	}
	if got, err := c.Command(t.Context(), s.ID+".1", 100); err != nil || got.State != "unknown" || got.To != size+4 || got.Result == nil || got.Result.StdoutBytes != size+4 || !got.Result.Truncated {
		t.Errorf("Command = %+v, %v", got, err)
	}
}

// charsRead is how many bytes this process has read so far; see proc(5).
func charsRead(t *testing.T) (n int64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err == nil {
		_, err = fmt.Sscanf(string(text), "rchar: %d", &n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}
