package daemon

import (
	"testing"
	"time"

	"gateway/daemon/api"
	"gateway/gateway"
)

// TestOpenTimeoutOfASlowHost is as in package gateway.
func TestOpenTimeoutOfASlowHost(t *testing.T) {
	d := &Daemon{}
	for connect, want := range map[time.Duration]time.Duration{0: 30 * time.Second, time.Minute: time.Minute} {
		open := api.Open{Target: gateway.Target{ConnectTimeout: connect}}
		if got := d.sessionConfig(t.Context(), open, "id").OpenTimeout; got != want {
			t.Errorf("%v to connect: %v to open, want %v", connect, got, want)
		}
	}
}
