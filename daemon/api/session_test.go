package api_test

import (
	"testing"

	"gateway/daemon/api"
)

// TestFate: a reason that says no more than the state is not said.
func TestFate(t *testing.T) {
	for want, s := range map[string]api.Session{
		"session work is lost":                                   {Name: "work", State: api.Lost},
		"session work is closed":                                 {Name: "work", State: api.Closed, Reason: "closed"},
		"session work is closed: its shell ended with status 3":  {Name: "work", State: api.Closed, Reason: "its shell ended with status 3"},
		"session work is lost: the daemon ended while it was on": {Name: "work", State: api.Lost, Reason: "the daemon ended while it was on"},
	} {
		if got := s.Fate(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
