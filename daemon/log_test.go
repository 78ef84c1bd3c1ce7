package daemon_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gateway/daemon"
)

func TestLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	log := daemon.NewLog(file)
	line := strings.Repeat("x", 90)
	const lines = 50000 // 5 MB
	for i := range lines {
		if _, err := fmt.Fprintf(log, "%08d %s\n", i, line); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 1<<20 || len(text) < 1<<19 {
		t.Errorf("the log has %d bytes", len(text))
	}
	kept := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	for i, got := range kept {
		if want := fmt.Sprintf("%08d %s", lines-len(kept)+i, line); string(got) != want {
			t.Fatalf("line %d of %d is %q, want %q", i, len(kept), got, want)
		}
	}
}
