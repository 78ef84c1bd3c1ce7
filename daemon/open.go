package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/internal/transcript"
	"gateway/session"
	"gateway/transport"
)

// sudoTimeout bounds an opening that may have to ask a person for a password.
const sudoTimeout = 2 * time.Minute

// everySession is what a person says for all sessions, and so the name of none.
const everySession = "all"

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// idForm is what ids of sessions and of commands look like. A name of that form
// would be taken for another session's id, or hide behind it.
var idForm = regexp.MustCompile(`^s-[0-9a-z]{10}(\..*)?$`)

// open opens a session for the asker in ctx. Its place is reserved before anything is
// connected.
func (d *Daemon) open(ctx context.Context, o api.Open) (*live, error) {
	if err := checkSize(transport.Size{Cols: o.Cols, Rows: o.Rows}); err != nil {
		return nil, err
	}
	id, name, err := d.reserve(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the opening
		select {
		case <-d.ending:
			cancel()
		case <-ctx.Done():
		}
	}()
	s, err := d.start(ctx, o, id, name)
	if isClosed(d.ending) {
		if err == nil {
			s.close("the daemon ended") // between the reservation and now nobody could
		}
		return nil, ending()
	}
	if err != nil {
		return nil, err
	}
	if o.Client != "" && !o.Keep && !d.clients.has(o.Client) {
		d.clients.gone(o.Client)
	}
	return s, nil
}

func ending() error {
	return &transport.Error{Code: "daemon.unreachable", Message: "daemon: it is ending", Hint: "try again in a moment"}
}

// checkSize refuses what no terminal can be; 0 stands for the usual size.
func checkSize(size transport.Size) error {
	if min(size.Cols, size.Rows) >= 0 && max(size.Cols, size.Rows) <= transport.MaxSize {
		return nil
	}
	return usage("", "a terminal of %d columns and %d rows: use 1 to %d of each", size.Cols, size.Rows, transport.MaxSize)
}

// reserve takes a place for a session, and its name.
func (d *Daemon) reserve(o api.Open) (id, name string, err error) {
	switch {
	case o.Target.Name == "":
		return "", "", usage("", "no host")
	case o.Name != "" && !validName.MatchString(o.Name):
		return "", "", usage("", "session name %q: use letters, digits, dots, dashes and underscores, 64 at most", o.Name)
	case idForm.MatchString(o.Name):
		return "", "", usage("choose another name, or none: then the session goes by its id", "session name %q: that is what an id looks like", o.Name)
	case o.Name == everySession:
		return "", "", usage("", "session name %q: it stands for all of them", o.Name)
	case o.Kind != "" && o.Kind != api.PTY && o.Kind != api.Pipe:
		return "", "", usage("", "kind %q: use pty or pipe", o.Kind)
	}
	id = gateway.NewSessionID()
	name = cmp.Or(o.Name, id)
	d.mu.Lock()
	defer d.mu.Unlock()
	limit := func(what string, n int) error {
		return &transport.Error{Code: "session.limit", Message: fmt.Sprintf("daemon: %d sessions are open%s", n, what), Hint: "close some: gateway session list"}
	}
	onHost := 0
	for _, p := range d.names {
		if p.host == o.Target.Name {
			onHost++
		}
	}
	switch {
	case isClosed(d.ending):
		return "", "", ending()
	case d.names[scoped{o.Scope, name}] != place{}:
		return "", "", usage("use it, or choose another name", "a session named %s is open", name)
	case len(d.names) >= d.config.MaxSessions:
		return "", "", limit("", len(d.names))
	case onHost >= d.config.MaxPerHost:
		return "", "", limit(" on "+o.Target.Name, onHost)
	}
	d.names[scoped{o.Scope, name}] = place{id, o.Target.Name}
	return id, name, nil
}

// unreserve gives a place back.
func (d *Daemon) unreserve(name scoped) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.names, name)
}

// start connects, starts the shell and begins the record. Without a session, also
// after a panic, the place is given back.
func (d *Daemon) start(ctx context.Context, o api.Open, id, name string) (started *live, err error) {
	undo := []func(){func() { d.unreserve(scoped{o.Scope, name}) }}
	defer func() {
		if started == nil {
			for i := len(undo) - 1; i >= 0; i-- {
				undo[i]()
			}
		}
	}()
	t, release, err := d.pool.get(ctx, o.Target)
	if err != nil {
		return nil, err
	}
	undo = append(undo, release)
	config := d.sessionConfig(ctx, o, id)
	password := sudoPassword(ctx, o.SudoPassword)
	engine, err := session.Open(ctx, t, config)
	if err != nil {
		return nil, err
	}
	undo = append(undo, func() { engine.Close() })
	s := &live{
		daemon: d, options: o, client: o.Client, release: release, engine: engine, sudoPassword: password,
		over: make(chan struct{}), pace: pace{lead: leadOf(d.config.TranscriptLimit)},
		session: api.Session{
			ID: id, Name: name, Host: o.Target.Name, User: o.Target.Login(), Transport: transportName(o.Target),
			Shell: gateway.ShellName(engine.Shell()), Kind: kind(engine), Sudo: sudoUser(o.Sudo), Scope: o.Scope, Keep: o.Keep, Once: o.Once,
			State: api.Idle, Cwd: engine.Origin(), TTL: cmp.Or(o.TTL, api.Duration(d.config.TTL)),
		},
	}
	s.use()
	s.session.OpenedAt = s.session.UsedAt
	d.prune()
	if s.record, err = createRecord(d.root(), id, d.config.TranscriptLimit); err != nil {
		return nil, recordError(err)
	}
	undo = append(undo, func() { os.RemoveAll(s.record.dir) })
	if s.log, err = transcript.Create(s.record.dir, transcript.Options{Limit: d.config.TranscriptLimit}); err != nil {
		return nil, recordError(err)
	}
	if err = s.record.saveSession(s.info()); err != nil {
		return nil, recordError(err)
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.timer = time.AfterFunc(time.Duration(s.session.TTL), s.expire)
	info := s.info()
	d.mu.Lock()
	d.sessions[id] = s
	d.events.publish("opened", info) // before anybody can close it
	d.mu.Unlock()
	go s.watch(engine) // ends with the session
	return s, nil
}

// recordError explains why a session can't be: what could not be told after a
// crash is not begun.
func recordError(err error) error {
	e := &transport.Error{Code: "internal", Message: fmt.Sprintf("daemon: record of the session: %v", err), Hint: "see that the state directory can be written to", Err: err}
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		e.Code, e.Hint = "session.limit", "this machine or its limits (ulimit -n) let the daemon open no more files: close some sessions"
	}
	return e
}

func (d *Daemon) sessionConfig(ctx context.Context, o api.Open, id string) session.Config {
	config := session.Config{
		ID: id, Shell: o.Shell, Login: o.Login, Env: o.Env, Cwd: o.Cwd,
		Size: transport.Size{Cols: o.Cols, Rows: o.Rows}, Term: o.Term,
		NoTerminal: o.Kind == api.Pipe,
		Reopen:     true,
		Ledger:     d.ledger, OpenTimeout: gateway.OpenTimeout(o.Target.ConnectTimeout),
	}
	if o.Sudo != nil {
		config.Sudo, config.OpenTimeout = sudo(o, sudoPassword(ctx, o.Sudo.Password)), max(config.OpenTimeout, sudoTimeout)
	}
	return config
}

// sudo answers sudo's prompt when the session is opened, and when it gets a fresh
// shell: nobody waits for that who could be asked.
func sudo(o api.Open, password func(context.Context) (string, error)) *session.Sudo {
	return &session.Sudo{
		User: o.Sudo.User, Flags: o.Sudo.Flags,
		Password: func(ctx context.Context, attempt int) (string, error) {
			who := askerOf(ctx)
			switch {
			case password != nil && attempt > 1:
				return "", errors.New("sudo.password is wrong") // asking again would lock the account
			case password != nil:
				return password(ctx)
			case who.interactive:
				return who.ask(ctx, gateway.SudoQuestion(o.Target.Login(), o.Target.Name, attempt))
			}
			return "", errors.New("nobody to ask")
		},
	}
}

// sudoPassword returns how the password for sudo is found out when it is wanted:
// by the caller, or without one by the daemon. A variable is the caller's, which
// is not there any more by then. If it can't be had, that is said when sudo asks.
func sudoPassword(ctx context.Context, reference string) func(context.Context) (string, error) {
	switch {
	case reference == "":
		return nil
	case strings.HasPrefix(reference, "env:"):
		password, err := askerOf(ctx).secret(ctx, reference)
		return func(context.Context) (string, error) { return password, err }
	}
	return func(ctx context.Context) (string, error) {
		password, err := askerOf(ctx).secret(ctx, reference)
		if errors.Is(err, errNobody) {
			return gateway.Secret(ctx, reference)
		}
		return password, err
	}
}

func transportName(t gateway.Target) string {
	if t.Local {
		return "local"
	}
	return "ssh"
}

func kind(engine *session.Session) string {
	if engine.Terminal() {
		return api.PTY
	}
	return api.Pipe
}

func sudoUser(s *api.Sudo) string {
	if s == nil {
		return ""
	}
	return cmp.Or(s.User, "root")
}
