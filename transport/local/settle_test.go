package local_test

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gateway/transport"
	"gateway/transport/local"
)

// TestSettle hears on a pipe of its own that a byte was written to the
// terminal: behind Settle it has been read.
func TestSettle(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "said")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	tr := local.New(local.Config{})
	defer tr.Close()
	terminal, err := tr.Terminal(t.Context(), "exec 3>"+fifo+"; while printf x && echo said >&3; do read -r go; done", transport.TerminalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	var read atomic.Int64
	go func() { // ends with the terminal
		buffer := make([]byte, 16)
		for {
			n, err := terminal.Read(buffer)
			if read.Add(int64(n)); err != nil {
				return
			}
		}
	}()
	said, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	lines := bufio.NewReader(said)
	for i := int64(1); i <= 500; i++ {
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if !terminal.(interface{ Settle(time.Duration) bool }).Settle(10 * time.Second) {
			t.Fatal("not settled")
		}
		if got := read.Load(); got != i {
			t.Fatalf("%d bytes have been read, want %d", got, i)
		}
		if _, err := io.WriteString(terminal, "\n"); err != nil {
			t.Fatal(err)
		}
	}
}
