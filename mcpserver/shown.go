package mcpserver

import (
	"sync"
	"time"

	"gateway/daemon/api"
)

// A shown remembers how far the output of commands has been shown, so that
// every answer has what is new.
type shown struct {
	mu sync.Mutex
	of map[string]*progress // by the command's id
}

// progress is how far one command has been shown.
type progress struct {
	sync.Mutex // held while an answer is made
	cursor     int64
	rest       [3][]byte // the unfinished end of each stream: half a character, half an escape
	over       bool      // with its result
	timeout    time.Duration
}

// from returns where the next answer about a command begins: behind what has been
// shown, or once its result has been shown at the command's beginning.
func (p *progress) from(command api.Command) int64 {
	if p.over {
		return command.From
	}
	return max(p.cursor, command.From)
}

// enough bounds what is remembered; a command that is forgotten is shown from
// its beginning.
const enough = 4096

func (s *shown) command(id string) *progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil || len(s.of) > enough {
		s.of = map[string]*progress{}
	}
	if s.of[id] == nil {
		s.of[id] = &progress{}
	}
	return s.of[id]
}

// An opened remembers what never changes of a session that is open, by what it
// was called: a command in it needs no question then. A name is another's only
// once the session is over, and the daemon refuses its id from then on.
type opened struct {
	mu sync.Mutex
	of map[string]api.Session
}

func (o *opened) get(name string) (api.Session, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, ok := o.of[name]
	return s, ok
}

func (o *opened) add(name string, s api.Session) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil || len(o.of) > enough {
		o.of = map[string]api.Session{}
	}
	s.Command = nil // it will be another one
	o.of[name] = s
}

func (o *opened) forget(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.of, name)
}
