package daemon

import (
	"testing"
	"time"

	"gateway/daemon/api"
)

// setBack is what a session looks like once the clock has been set back by an hour.
func setBack(s *live) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range []*time.Time{&s.session.OpenedAt, &s.session.UsedAt} {
		*at = at.Add(time.Hour)
	}
	if c := s.session.Command; c != nil {
		c.StartedAt = c.StartedAt.Add(time.Hour)
	}
}

// A clock that is set back makes nobody wait.
func TestClockIsSetBack(t *testing.T) {
	t.Run("until idle", func(t *testing.T) {
		s := open(t)
		c := begin(t, s, "sleep 60")
		setBack(s)
		w, err := s.waitFor(t.Context(), c, api.Wait{Until: api.UntilIdle, Idle: api.Duration(50 * time.Millisecond), Max: api.Duration(5 * time.Second)})
		if err != nil || !w.Met {
			t.Errorf("wait until idle = %+v, %v", w, err)
		}
	})
	t.Run("idle for its TTL", func(t *testing.T) {
		s := open(t)
		setBack(s)
		s.mu.Lock()
		s.session.TTL = api.Duration(time.Nanosecond) // it is over
		s.mu.Unlock()
		s.expire()
		if info := s.info(); info.State != api.Closed {
			t.Errorf("the session is %s", info.State)
		}
	})
}
