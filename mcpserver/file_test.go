package mcpserver

import (
	"context"
	"testing"

	"gateway/hosts"
	"gateway/transfer"
)

// silent is a machine that did not answer in time.
type silent struct{ transfer.Machine }

func (silent) Stat(context.Context, string, bool) (transfer.Info, error) {
	return transfer.Info{}, context.DeadlineExceeded
}
func (silent) Close() error { return nil }

// A machine that has kept a call waiting to its end is not kept for the next one.
func TestSilentMachine(t *testing.T) {
	m := &machine{Machine: silent{}, home: "/root", opened: make(chan struct{})}
	close(m.opened)
	s := &Server{machines: machines{of: map[string]*machine{"web1": m}}}
	f := &fileCall{call: &call{Server: s}, in: fileArgs{Op: "stat", Path: "/etc"}, host: hosts.Host{Name: "web1"}, ctx: t.Context()}
	if answer, err := f.do(); err == nil {
		t.Errorf("%v, want an error", answer)
	}
	if s.machines.of["web1"] != nil {
		t.Error("it is kept")
	}
}
