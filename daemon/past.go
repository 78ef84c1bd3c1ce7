package daemon

import (
	"os"

	"gateway/daemon/api"
	"gateway/internal/phrase"
)

// What is remembered of sessions that are over: maxPast of them, the newest, and
// of their last command's text no more than maxOutline characters. Records have it all.
const (
	maxPast    = 4096
	maxOutline = 1 << 10
)

// outline returns a session without what is too long to be kept in numbers.
func outline(s api.Session) api.Session {
	if s.Command == nil || len(s.Command.Text) <= maxOutline {
		return s
	}
	c := *s.Command
	c.Text = phrase.Brief(c.Text, maxOutline)
	s.Command = &c
	return s
}

// forget removes the oldest sessions beyond the limit, with their records.
func (d *Daemon) forget() {
	for {
		id := d.oldest()
		if id == "" {
			return
		}
		if err := os.RemoveAll(d.recordDir(id)); err != nil {
			d.config.Log.Warn("records", "session", id, "error", err)
		}
	}
}

// oldest takes the oldest session out of the past, if there are too many.
func (d *Daemon) oldest() (id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.past) <= maxPast {
		return ""
	}
	for other, s := range d.past {
		if id == "" || s.OpenedAt.Before(d.past[id].OpenedAt) {
			id = other
		}
	}
	delete(d.past, id)
	return id
}
