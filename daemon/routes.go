package daemon

import (
	"context"
	"net/http"
	"runtime"
	"time"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/transport"
)

// routes are the API, but for hello and stop, which the handshake answers, and
// lend, which leaves HTTP.
func (d *Daemon) routes() map[string]func(*request) error {
	return map[string]func(*request) error{
		"GET /v1/stats":                       d.stats,
		"GET /v1/events":                      d.follow,
		"POST /v1/clients":                    d.presence,
		"POST /v1/answers/{question}":         d.answer,
		"POST /v1/sessions":                   d.openSession,
		"GET /v1/sessions":                    d.listSessions,
		"GET /v1/sessions/{id}":               d.showSession,
		"DELETE /v1/sessions/{id}":            d.closeSession,
		"POST /v1/sessions/{id}/commands":     inSessionWith(d, d.run),
		"GET /v1/commands/{command}":          d.command,
		"POST /v1/sessions/{id}/input":        inSessionWith(d, d.input),
		"POST /v1/sessions/{id}/interrupt":    inSessionWith(d, d.interrupt),
		"POST /v1/sessions/{id}/wait":         inSessionWith(d, d.wait),
		"POST /v1/sessions/{id}/output":       d.output,
		"GET /v1/sessions/{id}/stream":        d.stream,
		"GET /v1/sessions/{id}/screen":        d.inSession(d.screen),
		"POST /v1/sessions/{id}/resize":       inSessionWith(d, d.resize),
		"POST /v1/sessions/{id}/attachment":   d.inSession(d.attach),
		"DELETE /v1/sessions/{id}/attachment": d.inSession(d.detach),
		"POST /v1/sessions/{id}/reset":        d.inSession(d.reset),
	}
}

const routeLend = "POST /v1/lend"

// Handler serves the API. Whoever reaches it may do everything: the socket says
// who that is.
func (d *Daemon) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, serve := range d.routes() {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			q := &request{w: w, r: r, scope: r.Header.Get(api.ScopeHeader)}
			defer q.end()
			if err := serve(q); err != nil {
				q.fail(err)
			}
		})
	}
	mux.Handle(routeLend, Lend(func(l api.Lend) (transport.Transport, func(), bool) {
		return d.pool.warm(l.Key, &asker{interactive: l.Interactive})
	}, d.ending))
	return mux
}

// session returns the open session that the path names.
func (d *Daemon) session(q *request) (*live, error) { return d.find(q.scope, q.r.PathValue("id")) }

// inSession makes a handler of what is done to the open session that the path
// names.
func (d *Daemon) inSession(do func(*request, *live) error) func(*request) error {
	return func(q *request) error {
		s, err := d.session(q)
		if err != nil {
			return err
		}
		return do(q, s)
	}
}

// inSessionWith is [Daemon.inSession] with the request's JSON, which is looked at first.
func inSessionWith[T any](d *Daemon, do func(*request, *live, T) error) func(*request) error {
	return func(q *request) error {
		var body T
		if err := q.body(&body); err != nil {
			return err
		}
		s, err := d.session(q)
		if err != nil {
			return err
		}
		return do(q, s, body)
	}
}

func (d *Daemon) stats(q *request) error {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return q.reply(api.Stats{
		Uptime: api.Duration(time.Since(d.started)), Sessions: d.Sessions(), Connections: d.pool.count(),
		Commands: d.commands.Load(), Bytes: d.bytes.Load(), Memory: memory.HeapAlloc + memory.StackInuse,
		Goroutines: runtime.NumGoroutine(),
	})
}

func (d *Daemon) follow(q *request) error {
	since, err := q.number("since", -1)
	if err != nil {
		return err
	}
	if err := http.NewResponseController(q.w).Flush(); err != nil {
		return err
	}
	err = d.events.follow(q.context(), since, func(e api.Event) error {
		if q.scope != "" && e.Session != nil && e.Session.Scope != q.scope {
			return nil
		}
		return q.line(e)
	})
	if q.context().Err() == nil { // else they end with the daemon
		return err
	}
	return nil
}

func (d *Daemon) presence(q *request) error {
	id := d.clients.join()
	defer d.clients.gone(id)
	if err := q.line(api.Presence{Client: id}); err != nil {
		return err
	}
	<-q.context().Done()
	return nil
}

func (d *Daemon) answer(q *request) error {
	var answer api.Answer
	if err := q.body(&answer); err != nil {
		return err
	}
	if !d.questions.answer(q.r.PathValue("question"), answer) {
		return usage("", "nobody waits for this answer")
	}
	return nil
}

func (d *Daemon) openSession(q *request) error {
	var o api.Open
	if err := q.body(&o); err != nil {
		return err
	}
	if q.scope != "" {
		o.Scope = q.scope
	}
	who := &asker{interactive: o.Interactive, questions: d.questions, send: func(e api.OpenEvent) error { return q.line(e) }}
	s, err := d.open(context.WithValue(q.context(), askerKey{}, who), o)
	if err != nil {
		q.mu.Lock()
		started := q.started
		q.mu.Unlock()
		if !started {
			return err
		}
		return q.line(api.OpenEvent{Error: gateway.NewJSONError(err)})
	}
	err = q.line(api.OpenEvent{Session: new(s.info())})
	if err == nil {
		err = context.Cause(q.context())
	}
	if err != nil {
		s.close("the caller that opened it is gone") // and never heard of it
	}
	return err
}

func (d *Daemon) listSessions(q *request) error {
	if err := d.known(); err != nil {
		return err
	}
	d.awaitEnds(q.context())
	return q.reply(d.list(q.scope, q.r.URL.Query().Get("all") != ""))
}

func (d *Daemon) showSession(q *request) error {
	return q.result(d.describe(q.scope, q.r.PathValue("id")))
}

func (d *Daemon) closeSession(q *request) error {
	name := q.r.PathValue("id")
	s, err := d.find(q.scope, name)
	if err == nil {
		return q.result(s.closeFor(q.scope))
	}
	// A lost session is seen until somebody says that they have.
	if past, ok := d.pastOf(q.scope, name, err); ok && past.State == api.Lost {
		return q.reply(d.acknowledge(past))
	}
	return err
}

func (d *Daemon) run(q *request, s *live, r api.Run) error {
	c, err := s.run(q.context(), r)
	if err != nil {
		return err
	}
	switch {
	case q.r.URL.Query().Get("follow") != "":
		return s.follow(q.context(), c.From, c, r.Limit, q.line)
	case r.Wait > 0:
		waited, err := s.waitFor(q.context(), c, api.Wait{Until: api.UntilExit, Max: r.Wait, Limit: r.Limit})
		return q.result(waited.Command, err)
	}
	return q.reply(s.now(c))
}

func (d *Daemon) command(q *request) error {
	limit, err := q.number("limit", resultLimit)
	if err != nil {
		return err
	}
	return q.result(d.commandByID(q.scope, q.r.PathValue("command"), int(limit)))
}

func (d *Daemon) input(q *request, s *live, in api.Input) error {
	return s.send(q.context(), in)
}

func (d *Daemon) interrupt(q *request, s *live, in api.Interrupt) error {
	return s.interrupt(q.context(), q.scope, in)
}

func (d *Daemon) wait(q *request, s *live, w api.Wait) error {
	return q.result(s.wait(q.context(), w))
}

func (d *Daemon) output(q *request) error {
	var query api.Query
	if err := q.body(&query); err != nil {
		return err
	}
	return q.result(d.read(q.context(), q.scope, q.r.PathValue("id"), query))
}

func (d *Daemon) stream(q *request) error {
	since, err := q.number("since", -1)
	if err != nil {
		return err
	}
	limit, err := q.number("limit", resultLimit)
	if err != nil {
		return err
	}
	s, err := d.session(q)
	if err != nil {
		return err
	}
	if err := http.NewResponseController(q.w).Flush(); err != nil {
		return err
	}
	return s.follow(q.context(), since, nil, int(limit), q.line)
}

func (d *Daemon) screen(q *request, s *live) error {
	screen := s.shell().Screen()
	if screen.Rows == nil { // nothing has run there: [] in JSON
		screen.Rows = []string{}
	}
	return q.reply(screen)
}

func (d *Daemon) resize(q *request, s *live, body api.Size) error {
	return s.resize(q.context(), transport.Size(body))
}

func (d *Daemon) attach(q *request, s *live) error {
	id, err := s.attach(q.r.URL.Query().Get("who"))
	if err != nil {
		return err
	}
	defer s.detach(id)
	if err := q.line(api.Attached{Attachment: id, Session: s.info()}); err != nil {
		return err
	}
	select {
	case <-q.context().Done():
	case <-s.over:
	}
	return nil
}

// detach ends an attachment before the request does that holds it: whoever comes next
// is not refused.
func (d *Daemon) detach(q *request, s *live) error {
	s.detach(q.r.URL.Query().Get("attachment"))
	return q.reply(s.info())
}

func (d *Daemon) reset(q *request, s *live) error {
	if err := s.reset(q.context()); err != nil {
		return err
	}
	return q.reply(s.info())
}
