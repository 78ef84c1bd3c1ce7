package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A signal ends the wait for who writes a FIFO.
func TestReadAllOfAFIFO(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, syscall.Mkfifo(fifo, 0o600))
	told := errors.New("told to stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(told)
	ended := make(chan error, 1)
	go func() {
		_, err := readAll(ctx, fifo, 100)
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, told) {
			t.Errorf("readAll = %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits for a writer")
	}
	writer, err := os.OpenFile(fifo, os.O_WRONLY, 0) // the end of who still waits
	if err != nil {
		t.Fatal(err)
	}
	writer.Close()
}
