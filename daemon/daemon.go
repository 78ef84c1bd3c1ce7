package daemon

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/hosts"
	"gateway/session"
	"gateway/transport"
)

// Config bounds a daemon. Zero values stand for the defaults named here.
type Config struct {
	// StateDir is where records go, a directory for each session, and where open
	// sessions are noted; see gateway.NewLedger.
	StateDir string
	// MaxSessions bounds the open sessions (256), MaxPerHost those on one host
	// (64).
	MaxSessions, MaxPerHost int
	// TTL is how long a session may be idle (12 h).
	TTL time.Duration
	// Grace is how long sessions outlive the client that opened them (60 s).
	Grace time.Duration
	// Linger is how long a connection that nobody uses stays open (10 min).
	Linger time.Duration
	// TranscriptLimit is how much of a session's output is kept on disk (64 MiB), and
	// as much of what was run in it.
	TranscriptLimit int64
	// Log is told what cannot be told to a caller; nil drops it.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	c.MaxSessions = cmp.Or(c.MaxSessions, 256)
	c.MaxPerHost = cmp.Or(c.MaxPerHost, 64)
	c.TTL = cmp.Or(c.TTL, 12*time.Hour)
	c.Grace = cmp.Or(c.Grace, time.Minute)
	c.Linger = cmp.Or(c.Linger, 10*time.Minute)
	c.TranscriptLimit = cmp.Or(c.TranscriptLimit, 64<<20)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// A Daemon owns sessions and connections. Its Handler serves the API.
type Daemon struct {
	config    Config
	started   time.Time
	pool      *pool
	events    *events
	questions *questions
	clients   *clients
	ledger    session.Ledger
	pastLogs  pastLogs

	commands atomic.Int64 // that were started
	bytes    atomic.Int64 // of output

	mu       sync.Mutex
	sessions map[string]*live       // open ones, by id
	names    map[scoped]place       // of open ones, and of those being opened
	past     map[string]api.Session // those that are over, by id
	ending   chan struct{}          // closed under mu: it drains, and no session is opened any more
	pruned   time.Time              // when the records were cleared last
	prunedAt int64                  // how many bytes of output there had been

	inherited chan struct{} // closed once past has what an earlier daemon has left
	rewriting sync.Mutex    // held while the record of one of past is changed; taken before mu
}

// New returns a daemon, which takes over what an earlier one has left: sessions
// that it had open are lost. To read that may take longer than a caller waits for a
// daemon, on a disk that is slow: it answers meanwhile, and only who asks for a session
// waits.
func New(config Config) (*Daemon, error) {
	d := &Daemon{
		config: config.withDefaults(), started: time.Now(),
		events: &events{}, questions: newQuestions(), ending: make(chan struct{}), inherited: make(chan struct{}), pruned: time.Now(),
		sessions: map[string]*live{}, names: map[scoped]place{}, past: map[string]api.Session{},
	}
	d.pool = newPool(d.config.Linger)
	d.ledger = gateway.NewLedger(filepath.Join(d.config.StateDir, "open"))
	d.clients = newClients(d.config.Grace, d.closeOf)
	left, err := d.records()
	if err != nil {
		return nil, err
	}
	go d.inherit(left) // ends by itself; Drain waits for what it reads
	return d, nil
}

// holds reports whether a directory belongs to a session that is open, or being
// opened.
func (d *Daemon) holds(dir string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.names {
		if p.id == filepath.Base(dir) {
			return true
		}
	}
	return false
}

// Sessions counts the sessions that are open or being opened.
func (d *Daemon) Sessions() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.names)
}

// Drain closes all sessions in order. Commands that run may end until ctx does.
func (d *Daemon) Drain(ctx context.Context) {
	d.mu.Lock()
	if !isClosed(d.ending) {
		close(d.ending)
	}
	open := slices.Collect(maps.Values(d.sessions))
	d.mu.Unlock()
	var all sync.WaitGroup
	for _, s := range open {
		all.Go(func() {
			s.idle(ctx)
			s.close("the daemon ended")
		})
	}
	all.Wait()
	d.pool.unused(ctx) // commands of borrowers may end, too
	d.pool.close()
	select {
	case <-d.inherited:
	case <-ctx.Done(): // the next daemon reads the rest
	}
}

// A scoped name is unique. Those who can't see each other's sessions choose the
// same words.
type scoped struct{ scope, name string }

// A place is that of a session, which is open or being opened.
type place struct{ id, host string }

// find returns an open session by its id or name. Who sees all scopes sees their
// names, too; one that several have means none of them. So does one that they have
// had themselves: who goes on in a session that has ended meanwhile does not mean
// another one, which an agent has called the same.
func (d *Daemon) find(scope, name string) (*live, error) {
	d.mu.Lock()
	s := d.sessions[name]
	if s == nil {
		s = d.sessions[d.names[scoped{scope, name}].id]
	}
	d.mu.Unlock()
	if s == nil {
		if err := d.known(); err != nil {
			return nil, err
		}
	}
	if s == nil && scope == "" {
		var err error
		if s, err = d.ofOthers(name); err != nil {
			return nil, err
		}
	}
	if s != nil && s.visible(scope) {
		return s, nil
	}
	if past, ok := d.over(scope, name); ok {
		return nil, closedError(past)
	}
	return nil, d.notFound(scope, name)
}

// ofOthers returns the open session that somebody with a scope has named so; nil if
// there is none.
func (d *Daemon) ofOthers(name string) (s *live, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var several []string
	for n, p := range d.names {
		if n.name == name && d.sessions[p.id] != nil {
			s, several = d.sessions[p.id], append(several, p.id)
		}
	}
	own, ok := d.lastLocked(func(s api.Session) bool { return s.Name == name && s.Scope == "" })
	if ok && s != nil {
		several = append(several, own.ID+" (yours, which is "+string(own.State)+")")
	}
	if len(several) > 1 {
		slices.Sort(several)
		return nil, usage("use the id: "+strings.Join(several, ", "), "there are %d sessions named %s", len(several), name)
	}
	return s, nil
}

// over returns a session that is over by its id, or the last one of a name.
func (d *Daemon) over(scope, name string) (found api.Session, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lastLocked(func(s api.Session) bool {
		return (s.ID == name || s.Name == name) && (scope == "" || s.Scope == scope)
	})
}

// lastLocked returns the session that was opened last of those that are over and meant.
func (d *Daemon) lastLocked(meant func(api.Session) bool) (found api.Session, ok bool) {
	for _, s := range d.past {
		if meant(s) && (!ok || s.OpenedAt.After(found.OpenedAt)) {
			found, ok = s, true
		}
	}
	return found, ok
}

// pastOf returns the session that is meant where [Daemon.find] has failed with err,
// if that is because it is over.
func (d *Daemon) pastOf(scope, name string, err error) (api.Session, bool) {
	if gateway.Code(err) != "session.closed" { // the name has several meanings, or is not known yet
		return api.Session{}, false
	}
	return d.over(scope, name)
}

// describe returns what is known about a session, also one that is over.
func (d *Daemon) describe(scope, name string) (api.Session, error) {
	s, err := d.find(scope, name)
	if err == nil {
		return s.info(), nil
	}
	if past, ok := d.pastOf(scope, name, err); ok {
		return past, nil
	}
	return api.Session{}, err
}

// list returns the sessions, the newest first. Those that are over are left
// out, except for lost ones, which somebody will want to know of.
func (d *Daemon) list(scope string, all bool) []api.Session {
	d.mu.Lock()
	open := slices.Collect(maps.Values(d.sessions))
	list := []api.Session{}
	for _, s := range d.past {
		if all || s.State == api.Lost {
			list = append(list, s)
		}
	}
	d.mu.Unlock()
	for _, s := range open {
		list = append(list, s.info())
	}
	if scope != "" {
		list = slices.DeleteFunc(list, func(s api.Session) bool { return s.Scope != scope })
	}
	slices.SortFunc(list, func(a, b api.Session) int {
		return cmp.Or(b.OpenedAt.Compare(a.OpenedAt), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// notFound names what was near.
func (d *Daemon) notFound(scope, name string) error {
	var names []string
	for _, s := range d.list(scope, false) {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	hint := hosts.DidYouMean(name, "", names)
	switch {
	case hint != "":
	case len(names) == 0:
		hint = "open one with gateway session open HOST"
	case len(names) == 1:
		hint = "there is " + names[0]
	default:
		hint = "there are " + strings.Join(hosts.Fold(names), ", ")
	}
	return &transport.Error{Code: "session.not_found", Message: fmt.Sprintf("daemon: there is no session %q", name), Hint: hint}
}

// closedError says what became of a session that is asked for too late.
func closedError(s api.Session) error {
	return &transport.Error{Code: "session.closed", Message: "daemon: " + s.Fate(), Hint: "its output is still there: gateway session read " + s.ID + "; another one: gateway session open " + s.Host}
}
