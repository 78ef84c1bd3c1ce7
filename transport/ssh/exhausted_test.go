package ssh_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"gateway/transport"
	"gateway/transport/ssh"
)

// TestNoDescriptorsLeft: where this process can open no connection, that is told, and not
// the network.
func TestNoDescriptorsLeft(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	probe, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	limit := before
	limit.Cur = uint64(probe.Fd())
	probe.Close()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	_, err = ssh.Dial(t.Context(), ssh.Config{Name: "web1", Addr: "127.0.0.1", Port: 1, User: "me", HostKeys: &ssh.HostKeys{}})
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if refused := new(transport.Error); !errors.As(err, &refused) || refused.Code != "session.limit" || refused.Hint == "" {
		t.Errorf("Dial = %v, want session.limit", err)
	}
}
