// Package client is the way to the daemon for everything that wants a session:
// the command line, the agents' door, tests.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"time"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/session"
	"gateway/transport"
)

// A Client calls the daemon. Methods may be called concurrently. Errors carry
// the codes of the contract: those of the daemon, and daemon.unreachable or
// daemon.version for itself.
type Client struct {
	http  *http.Client
	scope string
	where string // the socket, for people
}

// New returns a client of the daemon that dial reaches. A scope, if it is not
// empty, is all that the client sees and makes.
func New(dial func(context.Context) (net.Conn, error), scope string) *Client {
	t := &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
	}
	// The API redirects nobody; where it leads, something else would be done.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{http: &http.Client{Transport: t, CheckRedirect: stay}, scope: scope, where: "the socket"}
}

// Release gives back the idle connections to the daemon.
func (c *Client) Release() { c.http.CloseIdleConnections() }

// Hello greets the daemon.
func (c *Client) Hello(ctx context.Context) (hello api.Hello, err error) {
	return hello, c.ask(ctx, answerTime, http.MethodGet, "/v1/hello", nil, &hello)
}

// Stats returns the daemon's figures.
func (c *Client) Stats(ctx context.Context) (stats api.Stats, err error) {
	return stats, c.ask(ctx, answerTime, http.MethodGet, "/v1/stats", nil, &stats)
}

// Sessions lists sessions, the newest first; with all also those that are over.
func (c *Client) Sessions(ctx context.Context, all bool) (list []api.Session, err error) {
	path := "/v1/sessions"
	if all {
		path += "?all=1"
	}
	return list, c.ask(ctx, answerTime, http.MethodGet, path, nil, &list)
}

// Session returns one session by its id or name. One that is over is found too.
func (c *Client) Session(ctx context.Context, name string) (s api.Session, err error) {
	return s, c.ask(ctx, answerTime, http.MethodGet, sessionPath(name), nil, &s)
}

// Close ends a session and returns what it was. Its records stay.
func (c *Client) Close(ctx context.Context, name string) (s api.Session, err error) {
	return s, c.ask(ctx, machineTime, http.MethodDelete, sessionPath(name), nil, &s)
}

// Run starts a command. It does not wait for its end.
func (c *Client) Run(ctx context.Context, name string, run api.Run) (command api.Command, err error) {
	if err := checkRun(run); err != nil {
		return command, err
	}
	return command, c.ask(ctx, time.Duration(run.Wait)+2*answerTime, http.MethodPost, sessionPath(name)+"/commands", run, &command)
}

// Exec starts a command and calls each with what happens to it. The last event
// is its result, unless there is an error. The end of ctx ends the call, not the
// command.
func (c *Client) Exec(ctx context.Context, name string, run api.Run, each func(api.Event) error) error {
	if err := checkRun(run); err != nil {
		return err
	}
	return stream(ctx, c, http.MethodPost, sessionPath(name)+"/commands?follow=1", run, decodeEvent, each)
}

// Command returns a command by its id, with its result if it is over. At most
// limit bytes of each stream come with it; 0 means 1 MiB.
func (c *Client) Command(ctx context.Context, id string, limit int) (command api.Command, err error) {
	return command, c.ask(ctx, answerTime, http.MethodGet, "/v1/commands/"+url.PathEscape(id)+"?limit="+strconv.Itoa(limit), nil, &command)
}

// Send types to the command that runs. A program that does not read is waited for, but
// no daemon that answers nothing: with an error that wraps [ErrLost] it may have typed.
func (c *Client) Send(ctx context.Context, name string, input api.Input) error {
	if err := checkInput(input); err != nil {
		return err
	}
	alive, cancel := c.whileAlive(ctx)
	defer cancel()
	err := c.call(alive, http.MethodPost, sessionPath(name)+"/input", input, nil)
	if errors.Is(err, ErrLost) {
		err = &transport.Error{Code: gateway.Code(err), Message: err.Error() + ": it may have been typed", Hint: gateway.Hint(err), Err: err}
	}
	return err
}

// Interrupt asks the command that runs to end.
func (c *Client) Interrupt(ctx context.Context, name string, interrupt api.Interrupt) error {
	return c.ask(ctx, machineTime, http.MethodPost, sessionPath(name)+"/interrupt", interrupt, nil)
}

// Wait waits for something to happen in a session.
func (c *Client) Wait(ctx context.Context, name string, wait api.Wait) (waited api.Waited, err error) {
	if wait.Max <= 0 {
		return waited, c.call(ctx, http.MethodPost, sessionPath(name)+"/wait", wait, &waited)
	}
	return waited, c.ask(ctx, time.Duration(wait.Max)+2*answerTime, http.MethodPost, sessionPath(name)+"/wait", wait, &waited)
}

// Matched is [Client.Wait] for a line of a command that is over, also where its
// session is.
func (c *Client) Matched(ctx context.Context, command api.Command, wait api.Wait) (api.Waited, error) {
	waited := api.Waited{Command: &command}
	o, err := c.Output(ctx, command.Session, api.Query{Command: command.ID, Since: wait.Since, Grep: wait.Match})
	for _, p := range o.Pieces {
		if p.Match && c.isBehind(ctx, command, wait, p) {
			waited.Met, waited.Line, waited.At = true, string(p.Data), p.At
			break
		}
	}
	return waited, err
}

// Output reads what a session has said.
func (c *Client) Output(ctx context.Context, name string, query api.Query) (output api.Output, err error) {
	limit := answerTime
	if query.Grep != "" {
		limit = grepTime
	}
	return output, c.ask(ctx, limit, http.MethodPost, sessionPath(name)+"/output", query, &output)
}

// Screen returns what the program on the session's terminal shows.
func (c *Client) Screen(ctx context.Context, name string) (screen session.Screen, err error) {
	return screen, c.ask(ctx, answerTime, http.MethodGet, sessionPath(name)+"/screen", nil, &screen)
}

// Resize tells the session's terminal its new size.
func (c *Client) Resize(ctx context.Context, name string, size transport.Size) error {
	return c.ask(ctx, answerTime, http.MethodPost, sessionPath(name)+"/resize", api.Size{Cols: size.Cols, Rows: size.Rows}, nil)
}

// Reset puts a fresh shell in the place of a session's, in the same directory and
// with the same exported variables. What runs is ended.
func (c *Client) Reset(ctx context.Context, name string) error {
	return c.ask(ctx, machineTime, http.MethodPost, sessionPath(name)+"/reset", nil, nil)
}

// Follow calls each with what happens in a session: its output from a cursor on,
// and its commands. It ends when each returns an error, which it returns, or
// with the session, and returns nil then.
func (c *Client) Follow(ctx context.Context, name string, since int64, each func(api.Event) error) error {
	return stream(ctx, c, http.MethodGet, sessionPath(name)+"/stream?since="+strconv.FormatInt(since, 10), nil, decodeEvent, each)
}

// Events calls each with what happens to all sessions, from an event's number
// on; negative means from now on. An event named dropped says that the caller
// was too slow.
func (c *Client) Events(ctx context.Context, since int64, each func(api.Event) error) error {
	return stream(ctx, c, http.MethodGet, "/v1/events?since="+strconv.FormatInt(since, 10), nil, decodeEvent, each)
}

// Attach takes a session's terminal over until ctx ends; the daemon refuses
// everybody else's commands and keys meanwhile.
func (c *Client) Attach(ctx context.Context, name, who string) (attached api.Attached, err error) {
	attached, _, err = hold[api.Attached](ctx, c, sessionPath(name)+"/attachment?who="+url.QueryEscape(who))
	return attached, err
}

// Presence tells the daemon that this client is there until ctx ends; see
// [api.Open]. over is closed when the daemon no more believes it, or is gone.
func (c *Client) Presence(ctx context.Context) (presence api.Presence, over <-chan struct{}, err error) {
	return hold[api.Presence](ctx, c, "/v1/clients")
}

func sessionPath(name string) string { return "/v1/sessions/" + url.PathEscape(name) }

// How long a daemon may take for what it only has to look up, for a search of all that
// a session has said, and for what a machine has a part in, whose own timers are
// shorter. One that was stopped would take for ever. While it takes any other time, it
// is greeted after each aliveTime.
const (
	aliveTime   = time.Second
	answerTime  = 5 * time.Second
	grepTime    = 30 * time.Second
	machineTime = 3 * time.Minute
)

// ask is call for a request that does not wait for anything at the daemon, or not
// for longer than the limit.
func (c *Client) ask(ctx context.Context, limit time.Duration, method, path string, body, answer any) error {
	ctx, _, cancel := c.within(ctx, limit)
	defer cancel()
	return c.call(ctx, method, path, body, answer)
}

// within returns a context for a request whose answer must come in time; arrived
// says that it has, or reports false. The time counts from the connection on: for
// that, a daemon may have to be started.
func (c *Client) within(ctx context.Context, limit time.Duration) (bound context.Context, arrived func() bool, cancel func()) {
	bound, end := context.WithCancelCause(ctx)
	late := time.AfterFunc(startTime+limit, func() {
		end(&transport.Error{
			Code: "daemon.unreachable", Message: fmt.Sprintf("daemon: what listens on %s does not answer", c.where), Err: ErrLost,
			Hint: "it may be stopped or stuck: see its log, or end it: gateway serve --stop --force",
		})
	})
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { late.Reset(limit) }}
	return httptrace.WithClientTrace(bound, trace), late.Stop, func() {
		late.Stop()
		end(nil)
	}
}

// whileAlive returns a context for a request that may take any time. It ends where the
// daemon does not even greet any more, with the error of that.
func (c *Client) whileAlive(ctx context.Context) (bound context.Context, cancel func()) {
	bound, end := context.WithCancelCause(ctx)
	go func() { // ends with bound
		for {
			select {
			case <-bound.Done():
				return
			case <-time.After(aliveTime):
			}
			if _, err := c.Hello(bound); errors.Is(err, ErrLost) {
				end(err)
			}
		}
	}()
	return bound, func() { end(nil) }
}

// call sends one request and reads its one answer.
func (c *Client) call(ctx context.Context, method, path string, body, answer any) error {
	response, err := c.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if answer != nil {
		err = json.NewDecoder(response.Body).Decode(answer)
	}
	if err == nil { // only a connection whose answer was read to its end is used again
		_, err = io.Copy(io.Discard, response.Body)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return unreadable(response, c.where, err)
	}
	return nil
}

// do sends a request. The error of an answer that is one is returned as such.
func (c *Client) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://gateway"+path, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set(api.ProtocolHeader, strconv.Itoa(api.Protocol))
	if c.scope != "" {
		request.Header.Set(api.ScopeHeader, c.scope)
	}
	response, err := c.http.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, unreachable(err)
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer response.Body.Close()
	return nil, refusal(response, c.where)
}

// unreadable is the error of an answer that makes no sense. A daemon names its protocol,
// whatever it says.
func unreadable(response *http.Response, where string, err error) error {
	if response.Header.Get(api.ProtocolHeader) != "" {
		return unreachable(err)
	}
	return &transport.Error{
		Code: "daemon.unreachable", Message: fmt.Sprintf("daemon: what listens on %s is no gateway daemon", where),
		Hint: "end it, or name another socket, as with GATEWAY_SOCKET", Err: errForeign,
	}
}

// errForeign is wrapped by the error of an answer that is no daemon's.
var errForeign = fmt.Errorf("%w of a daemon's", ErrLost)

// ErrLost is wrapped by the error of a request whose answer did not come: the
// daemon may have done what was asked.
var ErrLost = errors.New("no answer")

func unreachable(err error) error {
	var coded *transport.Error
	if errors.As(err, &coded) {
		return coded // of the socket: it names the cause better
	}
	return &transport.Error{Code: "daemon.unreachable", Message: fmt.Sprintf("daemon: %v", err), Hint: "see its log, or start it with gateway serve", Err: fmt.Errorf("%w: %w", ErrLost, err)}
}

// hold sends a request that lasts until ctx ends, and returns its first line.
func hold[T any](ctx context.Context, c *Client, path string) (first T, over <-chan struct{}, err error) {
	ctx, arrived, cancel := c.within(ctx, answerTime)
	response, err := c.do(ctx, http.MethodPost, path, nil)
	if err != nil {
		cancel()
		return first, nil, err
	}
	err = json.NewDecoder(response.Body).Decode(&first)
	switch {
	case !arrived() && ctx.Err() != nil:
		err = context.Cause(ctx)
	case err != nil:
		err = unreachable(err)
	}
	if err != nil {
		cancel()
		response.Body.Close()
		return first, nil, err
	}
	ended := make(chan struct{})
	go func() { // ends with ctx, or with the request
		defer close(ended)
		defer cancel()
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, response.Body) // how it ended makes no difference
	}()
	return first, ended, nil
}

// caller answers the questions of an open request.
type caller struct {
	client *Client
	gateway.Caller
}

// Open opens a session. Questions and secret references on the way are the
// caller's to answer.
func (c *Client) Open(ctx context.Context, open api.Open, who gateway.Caller) (api.Session, error) {
	if err := checkPlace(open.Cwd, open.Env); err != nil {
		return api.Session{}, err
	}
	if who.Secret == nil {
		who.Secret = gateway.Secret
	}
	open.Interactive = who.Ask != nil
	var opened *api.Session
	ctx, cancel := context.WithCancel(ctx) // ends the answers with the request
	defer cancel()
	err := stream(ctx, c, http.MethodPost, "/v1/sessions", open, decodeLine, func(e api.OpenEvent) error {
		switch {
		case e.Question != nil:
			go caller{c, who}.answer(ctx, *e.Question)
		case e.Warning != "" && who.Warn != nil:
			who.Warn(e.Warning)
		case e.Error != nil:
			return e.Error.Err()
		case e.Session != nil:
			opened = e.Session
		}
		return nil
	})
	if err == nil && opened == nil {
		err = unreachable(errors.New("its answer has no end"))
	}
	if err != nil {
		return api.Session{}, err
	}
	return *opened, nil
}

// answer answers one question. The answer that can't be delivered is of a
// request that has failed.
func (c caller) answer(ctx context.Context, q api.Question) {
	var answer api.Answer
	var err error
	switch {
	case q.Secret != "":
		answer.Text, err = c.Secret(ctx, q.Secret)
	case c.Ask != nil:
		answer.Text, err = c.Ask(ctx, gateway.Question{Kind: q.Kind, Host: q.Host, User: q.User, Prompt: q.Prompt, Instruction: q.Instruction, Echo: q.Echo})
	default:
		err = errors.New("nobody to ask")
	}
	answer.Error = gateway.NewJSONError(err)
	_ = c.client.ask(ctx, answerTime, http.MethodPost, "/v1/answers/"+url.PathEscape(q.ID), answer, nil)
}
