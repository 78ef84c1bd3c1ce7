package peer

import (
	"context"
	"fmt"
	"io"

	"gateway/bench/lab"
	"gateway/gateway"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// The names that the targets speak of.
const (
	EngineName  = "gateway, package session"
	LibraryName = "gateway, package gateway"
)

// engine is the session engine alone, library the door that a program would use.
var engine = Peer{
	Name: EngineName, Ours: true, InProcess: true, How: "`session.Open` and `Session.Run`", Version: program,
	Warm: func(ctx context.Context, s *lab.Site) (Shell, error) { return dialEngine(ctx, s) },
	Local: func(ctx context.Context, _ *lab.Site) (Shell, error) {
		return openEngine(ctx, local.New(local.Config{}), nil)
	},
	Cold: func(ctx context.Context, s *lab.Site, command string) (Cold, error) {
		e, err := dialEngine(ctx, s)
		if err != nil {
			return Cold{}, err
		}
		out, err := e.Run(ctx, command)
		return Cold{out, e.Close}, err
	},
	Again: func(ctx context.Context, s *lab.Site) (Again, error) {
		t, err := s.Dial(ctx)
		if err != nil {
			return Again{}, err
		}
		return Again{
			Ready: func(ctx context.Context) (Shell, error) { return openEngine(ctx, t, nil) },
			Close: func() { t.Close() },
		}, nil
	},
	Stream: func(ctx context.Context, s *lab.Site) (Stream, error) {
		e, err := dialEngine(ctx, s)
		if err != nil {
			return Stream{}, err
		}
		return Stream{Run: e.stream, Pids: ourselves, Close: e.Close}, nil
	},
}

var library = Peer{
	Name: LibraryName, Ours: true, InProcess: true, How: "`Gateway.Open` and `Session.Run`; in a fan-out, goroutines", Version: program,
	Warm: func(ctx context.Context, s *lab.Site) (Shell, error) {
		open, err := openMany(ctx, s, 1)
		if err != nil {
			return nil, err
		}
		return libraryShell{open.gateway, open.sessions[0]}, nil
	},
	FanWarm: func(ctx context.Context, s *lab.Site, n int) (WarmFan, error) {
		open, err := openMany(ctx, s, n)
		if err != nil {
			return WarmFan{}, err
		}
		return WarmFan{
			Run: func(ctx context.Context, command string) (Crowd, error) {
				return everywhere(n, Forks, func(i int) (string, error) { return heard(runIn(ctx, open.sessions[i], command)) })
			},
			Close: open.close,
		}, nil
	},
	Many: func(ctx context.Context, s *lab.Site, n int) ([]Shell, error) {
		one := *s
		one.Hosts = s.Hosts[:1]
		open, err := openMany(ctx, &one, n)
		if err != nil {
			return nil, err
		}
		shells := make([]Shell, n)
		for i, opened := range open.sessions {
			shells[i] = partOf{libraryShell{session: opened}}
		}
		shells[0] = libraryShell{open.gateway, open.sessions[0]}
		return shells, nil
	},
	Idle: func(ctx context.Context, s *lab.Site, connections, each int) (Idle, error) {
		some := *s // the sessions of a host share its connections
		some.Hosts = s.Hosts[:connections]
		open, err := openMany(ctx, &some, connections*each)
		if err != nil {
			return Idle{}, err
		}
		return Idle{Pids: ourselves(), Close: open.close}, nil
	},
}

type engineShell struct {
	*session.Session
	after func() error
}

// dialEngine opens a session on a connection that ends with it.
func dialEngine(ctx context.Context, s *lab.Site) (*engineShell, error) {
	t, err := s.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return openEngine(ctx, t, t.Close)
}

func openEngine(ctx context.Context, t transport.Transport, after func() error) (*engineShell, error) {
	s, err := session.Open(ctx, t, session.Config{Shell: lab.Shell})
	if err != nil {
		if after != nil {
			_ = after() // the session's error says more
		}
		return nil, err
	}
	return &engineShell{s, after}, nil
}

func (e *engineShell) Run(ctx context.Context, command string) (string, error) {
	r, err := e.Session.Run(ctx, session.Command{Text: command})
	return string(r.Stdout), err
}

func (e *engineShell) stream(ctx context.Context, command string, to io.Writer) error {
	var failed error // written by the one goroutine that gives stdout
	_, err := e.Session.Run(ctx, session.Command{Text: command, Limit: 1 << 10, Output: func(from session.Stream, b []byte) {
		if from == session.Stdout && failed == nil {
			_, failed = to.Write(b)
		}
	}})
	if err == nil {
		err = failed
	}
	return err
}

func (e *engineShell) Close() {
	e.Session.Close()
	if e.after != nil {
		_ = e.after() // nothing is left to do about it
	}
}

type libraryShell struct {
	gateway *gateway.Gateway
	session *gateway.Session
}

func (l libraryShell) Run(ctx context.Context, command string) (string, error) {
	return runIn(ctx, l.session, command)
}

func (l libraryShell) Close() {
	l.session.Close()
	l.gateway.Close()
}

func runIn(ctx context.Context, s *gateway.Session, command string) (string, error) {
	r := s.Run(ctx, gateway.Command{Text: command})
	if r.Err == nil && r.ExitCode != 0 {
		return "", fmt.Errorf("exit status %d", r.ExitCode)
	}
	return string(r.Stdout), r.Err
}

// A partOf many sessions leaves their gateway open.
type partOf struct{ libraryShell }

func (p partOf) Close() { p.session.Close() }

type many struct {
	gateway  *gateway.Gateway
	sessions []*gateway.Session
	hosts    int // that have one
}

// openMany opens n sessions, on one host after the other. Those on one host share its
// connections.
func openMany(ctx context.Context, s *lab.Site, n int) (*many, error) {
	g, err := s.Gateway()
	if err != nil {
		return nil, err
	}
	hosts := min(n, len(s.Hosts))
	m := &many{g, make([]*gateway.Session, n), hosts}
	open := func(first, count int, session func(i int) (*gateway.Session, error)) {
		if err != nil {
			return
		}
		_, err = everywhere(count, 8, func(i int) (_ string, err error) {
			m.sessions[first+i], err = session(first + i)
			return "open", err
		})
	}
	open(0, hosts, func(i int) (*gateway.Session, error) { return g.Open(ctx, s.Hosts[i].Name, gateway.Options{}) })
	open(hosts, n-hosts, func(i int) (*gateway.Session, error) {
		return m.sessions[i%hosts].Beside(ctx, gateway.Options{})
	})
	if err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// close ends the sessions, the first ones last: the others are on their connections.
func (m *many) close() {
	for _, some := range [][]*gateway.Session{m.sessions[m.hosts:], m.sessions[:m.hosts]} {
		_, _ = everywhere(len(some), len(some), func(i int) (string, error) { // closing has no error
			if some[i] != nil {
				some[i].Close()
			}
			return "closed", nil
		})
	}
	m.gateway.Close()
}
