package local_test

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"

	"gateway/transport"
	"gateway/transport/local"
)

// TestNoDescriptorsLeft: it is the limit that is told, and not the account's shell, wherever
// it is met.
func TestNoDescriptorsLeft(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	tr := local.New(local.Config{})
	defer tr.Close()
	probe, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	next := uint64(probe.Fd())
	probe.Close()
	for more := range uint64(5) {
		limit := before
		limit.Cur = next + more
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		_, onPipes := tr.Pipe(t.Context(), "true")
		term, onTerminal := tr.Terminal(t.Context(), "true", transport.TerminalOptions{})
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
		if term != nil {
			term.Close()
			onTerminal = nil
		}
		for what, err := range map[string]error{"pipes": onPipes, "a terminal": onTerminal} {
			if refused := new(transport.Error); err != nil && (!errors.As(err, &refused) || refused.Code != "session.limit") || err == nil && more == 0 {
				t.Errorf("%s with %d more: %v, want session.limit", what, more, fmt.Sprintf("%#v", err))
			}
		}
	}
}

// Of several that begin at once, each takes what another one lets go.
func TestNoDescriptorsLeftForSeveral(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	tr := local.New(local.Config{})
	defer tr.Close()
	for round := range uint64(200) {
		probe, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		limit := before
		limit.Cur = uint64(probe.Fd()) + round%20
		probe.Close()
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		check := func(p transport.Program, err error) {
			if err == nil {
				p.Close()
			} else if refused := new(transport.Error); !errors.As(err, &refused) || refused.Code != "session.limit" {
				t.Errorf("with %d more: %v, want session.limit", round%20, err)
			}
		}
		for range 3 {
			all.Go(func() { check(tr.Pipe(t.Context(), "true")) })
			all.Go(func() { check(tr.Terminal(t.Context(), "true", transport.TerminalOptions{})) })
		}
		all.Wait()
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
	}
}
