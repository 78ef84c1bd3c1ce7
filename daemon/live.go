package daemon

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gateway/daemon/api"
	"gateway/internal/phrase"
	"gateway/internal/transcript"
	"gateway/session"
	"gateway/transport"
)

// A live is an open session: its shell, its transcript, and the command that
// runs in it.
type live struct {
	daemon  *Daemon
	record  *record
	log     *transcript.Log
	options api.Open
	release func() // gives the connection back
	// sudoPassword is what sudo is answered; nil: it is left to who types.
	sudoPassword func(context.Context) (string, error)

	// ctx ends with the session, and its commands with it.
	ctx context.Context
	end context.CancelFunc

	over chan struct{} // closed once nothing happens any more
	pace pace          // of the command that runs

	mu     sync.Mutex
	engine *session.Session
	current
	session api.Session // idle or over, see infoLocked; with a Reason nothing begins any more
	runs    bool        // a command is in the engine, or it is being replaced
	resets  int         // how many are to put a fresh shell there
	lost    bool        // the link went while one came
	untaken int         // bytes that are typed to the command that runs and not taken yet, with their requests
	count   int         // commands so far
	last    spoken      // by one of them
	notes   notes
	noted   bell        // rung when something happens
	changed bell        // then, and once the shell has the command
	said    bell        // when something happens, and with output
	used    time.Time   // [api.Session.UsedAt], by a clock that nobody sets
	torn    bool        // the transcript could not be written last time
	client  string      // whose it is; empty: nobody's
	holder  string      // the attachment that may run and type; empty: everybody
	timer   *time.Timer // closes the transcript of an idle session, and at its TTL the session
	ending  bool        // a command has ended the shell, and soon the session is over
}

// current is what belongs to the command that runs, or ran last, and to no other one.
type current struct {
	runner   string      // the client that ran it
	stop     func()      // ends it
	begun    bool        // its shell has it, or it is over
	quiet    time.Time   // since when it has said nothing
	asks     *api.Prompt // what, of who types or, for sudo, of the inventory; nil: nothing
	answered bool        // sudo was
}

// spoken is all that a command has said, for those who read it at once: little
// of it, and nothing on the terminal.
type spoken struct {
	id             string
	stdout, stderr []byte
}

// info returns what is known about the session now.
func (s *live) info() api.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.infoLocked()
}

func (s *live) infoLocked() api.Session {
	info := s.session
	info.From, info.To = int64(s.log.Start()), int64(s.log.End())
	if c := s.nowLocked(info.Command); c != nil {
		c.Result, info.Command = nil, c
		if !c.Over() { // the session does what its command does
			info.State = api.State(c.State)
		}
	}
	return info
}

// nowLocked returns a copy of a command as it is now; nil for nil.
func (s *live) nowLocked(c *api.Command) *api.Command {
	if c == nil {
		return nil
	}
	now := *c
	if !now.Over() {
		now.To = int64(s.log.End())
	}
	return &now
}

func (s *live) now(c *api.Command) *api.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nowLocked(c)
}

func (s *live) visible(scope string) bool { return scope == "" || s.options.Scope == scope }

// use notes that the session is used now. It is locked.
func (s *live) use() {
	s.used = time.Now()
	s.session.UsedAt = stampOf(s.used)
}

// A bell wakes those who wait for it, on a processor that the command's shell may need
// just then: what few wait for has a bell of its own. The zero value is ready.
type bell chan struct{}

// next returns a channel that is closed when the bell rings.
func (b *bell) next() <-chan struct{} {
	if *b == nil {
		*b = make(bell)
	}
	return *b
}

func (b *bell) ring() {
	if *b != nil {
		close(*b)
		*b = nil
	}
}

// happened wakes whoever waits for something to happen. The session is locked.
func (s *live) happened() {
	s.changed.ring()
	s.noted.ring()
	s.said.ring()
}

// until waits until ready, which is called with every ring of changed. The error is the
// context's. The session is locked, but while it waits.
func (s *live) until(ctx context.Context, ready func() bool) error {
	for !ready() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		changed := s.changed.next()
		s.unlocked(func() {
			select {
			case <-changed:
			case <-ctx.Done():
			}
		})
	}
	return nil
}

// unlocked calls what takes its time, while others have the session.
func (s *live) unlocked(f func()) {
	s.mu.Unlock()
	defer s.mu.Lock()
	f()
}

// noteLocked keeps an event for followers at the transcript's end: one of a
// command, or else of the session.
func (s *live) noteLocked(name string, c *api.Command) {
	at := int64(s.log.End())
	event := api.Event{Time: stamp(), Event: name, Next: at}
	if c != nil {
		event.Command = new(*c)
	} else {
		event.Session = new(s.infoLocked())
	}
	s.notes.add(note{at, event, c})
	s.happened()
}

// shell returns the session's engine.
func (s *live) shell() *session.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine
}

// openLocked reports why nothing can begin in the session any more.
func (s *live) openLocked() error {
	switch {
	case s.session.State.Over():
		return closedError(s.session)
	case s.session.Reason != "":
		return &transport.Error{
			Code: "session.closed", Message: fmt.Sprintf("daemon: session %s is closing: %s", s.session.Name, s.session.Reason),
			Hint: "open another session",
		}
	}
	return nil
}

// freeLocked reports why no command can be run now.
func (s *live) freeLocked(attachment string) error {
	if err := s.openLocked(); err != nil {
		return err
	}
	if err := s.heldLocked(attachment); err != nil { // before what runs, which is theirs
		return err
	}
	switch {
	case s.resets > 0:
		return &transport.Error{Code: "session.busy", Message: fmt.Sprintf("daemon: session %s gets a fresh shell", s.session.Name), Hint: "try again in a moment"}
	case s.runs:
		c := s.session.Command
		return &transport.Error{
			Code:    "session.busy",
			Message: fmt.Sprintf("daemon: session %s has been running %q for %v", s.session.Name, phrase.Brief(c.Text, 80), api.Since(c.StartedAt).Round(time.Second)),
			Hint:    "wait for it, interrupt it, or open another session",
		}
	}
	return nil
}

// heldLocked reports whether somebody else has taken the terminal over.
func (s *live) heldLocked(attachment string) error {
	if s.holder == "" || s.holder == attachment {
		return nil
	}
	return &transport.Error{
		Code:    "session.busy",
		Message: fmt.Sprintf("daemon: %s has attached to session %s", s.session.Attached, s.session.Name),
		Hint:    "wait until they detach, or open another session",
	}
}

// takenLocked is heldLocked for what ends something. The machine's user, who has no
// scope, may do that all the same: what ignores ^C is ended from another terminal.
func (s *live) takenLocked(scope, attachment string) error {
	if scope == "" {
		return nil
	}
	return s.heldLocked(attachment)
}
