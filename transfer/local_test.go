package transfer

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"gateway/gateway"
)

// TestFIFO: what has taken the place of a file or a directory since that was found keeps
// nobody waiting.
func TestFIFO(t *testing.T) {
	fifo := t.TempDir() + "/fifo"
	must(t, syscall.Mkfifo(fifo, 0o600))
	here := &Local{}
	for name, test := range map[string]struct {
		do   func(context.Context) error
		code string
	}{
		"Open":   {func(ctx context.Context) error { _, err := here.Open(ctx, fifo, Info{}, 0); return err }, codeSpecial},
		"Sum":    {func(ctx context.Context) error { _, err := here.Sum(ctx, fifo, 0, -1); return err }, codeSpecial},
		"List":   {func(ctx context.Context) error { return here.List(ctx, fifo, nil) }, codeNotDirectory},
		"Settle": {func(ctx context.Context) error { return here.Settle(ctx, fifo) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan error, 1)
			go func() { done <- test.do(t.Context()) }()
			select {
			case err := <-done:
				if gateway.Code(err) != test.code {
					t.Errorf("%v, want %s", err, test.code)
				}
			case <-time.After(10 * time.Second):
				t.Error("it waits for who writes to the FIFO")
				f, err := os.OpenFile(fifo, os.O_RDWR, 0) // lets it go
				if err != nil {
					t.Fatal(err)
				}
				f.Close()
			}
		})
	}
}
