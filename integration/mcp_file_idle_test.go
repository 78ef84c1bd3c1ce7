package integration

import (
	"syscall"
	"testing"
	"time"

	"gateway/internal/sshdtest"
)

// TestDaemonEndsBesideIdleFiles: a daemon that is told to end does not wait ten seconds for
// an agent that has looked at a file over its connection, and does nothing now.
func TestDaemonEndsBesideIdleFiles(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]sshdtest.Options{"sftp": {}, "bare": {NoSftp: true}} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.write(t, ".config/gateway/hosts.yaml", "hosts:\n  web1: "+entry(sshdtest.Start(t, options), "")+"\n")
			daemon := h.serve(t)
			a, _ := h.stdio(t, eras[1], "--hosts", "web1")
			a.do("session_open", args{"host": "web1"})
			a.file(t, aFileCall("web1", "stat", "/"))
			send(t, daemon, syscall.SIGTERM)
			ends(t, daemon, 0, 5*time.Second)
		})
	}
}
