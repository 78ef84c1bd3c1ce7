package gateway

import (
	"testing"
	"time"

	"gateway/hosts"
)

// TestOpenTimeoutOfASlowHost: who gives a host more time to be connected to gives its shell as
// much to start.
func TestOpenTimeoutOfASlowHost(t *testing.T) {
	for connect, want := range map[time.Duration][2]time.Duration{
		0:               {30 * time.Second, sudoTimeout},
		time.Second:     {30 * time.Second, sudoTimeout},
		time.Minute:     {time.Minute, sudoTimeout},
		5 * time.Minute: {5 * time.Minute, 5 * time.Minute},
	} {
		s := &Session{gateway: &Gateway{}, host: hosts.Host{ConnectTimeout: connect}}
		plain := s.config().OpenTimeout
		s.options.Sudo = true
		if got := [2]time.Duration{plain, s.config().OpenTimeout}; got != want {
			t.Errorf("%v to connect: %v to open, want %v", connect, got, want)
		}
	}
}
