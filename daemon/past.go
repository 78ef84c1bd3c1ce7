package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gateway/daemon/api"
	"gateway/internal/phrase"
	"gateway/internal/transcript"
	"gateway/transport"
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

// retire moves a session to the past.
func (d *Daemon) retire(s api.Session) {
	defer d.forget()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, s.ID)
	delete(d.names, scoped{s.Scope, s.Name})
	d.past[s.ID] = outline(s)
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

// acknowledge has a lost session listed no more.
func (d *Daemon) acknowledge(s api.Session) api.Session {
	s.State = api.Closed
	d.rewrite(s.ID, func(past *api.Session) { past.State = api.Closed })
	return s
}

// pastLogs are the transcripts of sessions that are over and are being read: to
// open one is to read all of it, and a long one is read page by page.
type pastLogs struct {
	mu sync.Mutex
	of map[string]*pastLog // by their directory
}

type pastLog struct {
	*transcript.Log
	timer *time.Timer
}

// A transcript is kept for between two pages, and no more than so many of them.
const (
	keepPastLog = 10 * time.Second
	maxPastLogs = 16
)

// open opens the transcript in a directory, which came to a cursor.
func (p *pastLogs) open(dir string, end int64) (*transcript.Log, error) {
	if log := p.get(dir); log != nil {
		return log, nil
	}
	log, err := transcript.Open(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &transport.Error{
			Code: "session.not_found", Message: fmt.Sprintf("daemon: the record of session %s is no longer there", filepath.Base(dir)), Err: err,
			Hint: "somebody has removed it from " + filepath.Dir(dir),
		}
	case err != nil:
		return nil, recordError(err)
	}
	log.Reach(transcript.Cursor(end))
	p.keep(dir, log)
	return log, nil
}

func (p *pastLogs) get(dir string) *transcript.Log {
	p.mu.Lock()
	defer p.mu.Unlock()
	log := p.of[dir]
	if log == nil || !log.timer.Reset(keepPastLog) { // else it goes at this moment
		return nil
	}
	return log.Log
}

func (p *pastLogs) keep(dir string, log *transcript.Log) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[string]*pastLog{}
	}
	if p.of[dir] != nil || len(p.of) >= maxPastLogs {
		return
	}
	p.of[dir] = &pastLog{log, time.AfterFunc(keepPastLog, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.of, dir)
	})}
}
