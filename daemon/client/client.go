// Package client is the way to the daemon for everything that wants a session:
// the command line, the agents' door, tests.
package client

import (
	"context"
	"errors"
	"net"
	"net/http"
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
	return hello, c.askWithin(ctx, answerTime, http.MethodGet, api.RouteHello, nil, &hello)
}

// Stats returns the daemon's figures.
func (c *Client) Stats(ctx context.Context) (stats api.Stats, err error) {
	return stats, c.ask(ctx, 0, http.MethodGet, "/v1/stats", nil, &stats)
}

// Sessions lists sessions, the newest first; with all also those that are over.
func (c *Client) Sessions(ctx context.Context, all bool) (list []api.Session, err error) {
	path := "/v1/sessions"
	if all {
		path += "?all=1"
	}
	return list, c.ask(ctx, 0, http.MethodGet, path, nil, &list)
}

// Session returns one session by its id or name. One that is over is found too.
func (c *Client) Session(ctx context.Context, name string) (s api.Session, err error) {
	return s, c.ask(ctx, 0, http.MethodGet, sessionPath(name), nil, &s)
}

// Close ends a session and returns what it was. Its records stay.
func (c *Client) Close(ctx context.Context, name string) (s api.Session, err error) {
	return s, c.ask(ctx, 0, http.MethodDelete, sessionPath(name), nil, &s)
}

// Run starts a command. It does not wait for its end.
func (c *Client) Run(ctx context.Context, name string, run api.Run) (command api.Command, err error) {
	if err := checkRun(run); err != nil {
		return command, err
	}
	return command, c.ask(ctx, time.Duration(run.Wait), http.MethodPost, sessionPath(name)+"/commands", run, &command)
}

// Exec starts a command and calls each with what happens to it. The last event
// is its result, unless there is an error. The end of ctx ends the call, not the
// command. A daemon that answers nothing is not waited for once the command's time may be
// over: the error then wraps [ErrLost].
func (c *Client) Exec(ctx context.Context, name string, run api.Run, each func(api.Event) error) error {
	if err := checkRun(run); err != nil {
		return err
	}
	limit := run.Timeout
	if run.Idle > 0 && (limit == 0 || run.Idle < limit) {
		limit = run.Idle
	}
	if limit > 0 {
		alive, cancel := c.whileAlive(ctx, time.Duration(limit)+aliveTime)
		defer cancel()
		ctx = alive
	}
	return stream(ctx, c, http.MethodPost, sessionPath(name)+"/commands?follow=1", run, decodeEvent, each)
}

// Command returns a command by its id, with its result if it is over. At most
// limit bytes of each stream come with it; 0 means 1 MiB.
func (c *Client) Command(ctx context.Context, id string, limit int) (command api.Command, err error) {
	return command, c.ask(ctx, 0, http.MethodGet, "/v1/commands/"+url.PathEscape(id)+"?limit="+strconv.Itoa(limit), nil, &command)
}

// Send types to the command that runs. A program that does not read is waited for, but
// no daemon that answers nothing: with an error that wraps [ErrLost] it may have typed.
func (c *Client) Send(ctx context.Context, name string, input api.Input) error {
	if err := checkText("the text", "", input.Text); err != nil {
		return err
	}
	alive, cancel := c.whileAlive(ctx, aliveTime)
	defer cancel()
	err := c.call(alive, http.MethodPost, sessionPath(name)+"/input", input, nil)
	if errors.Is(err, ErrLost) {
		err = &transport.Error{Code: gateway.Code(err), Message: err.Error() + ": it may have been typed", Hint: gateway.Hint(err), Err: err}
	}
	return err
}

// Interrupt asks the command that runs to end.
func (c *Client) Interrupt(ctx context.Context, name string, interrupt api.Interrupt) error {
	return c.ask(ctx, 0, http.MethodPost, sessionPath(name)+"/interrupt", interrupt, nil)
}

// Wait waits for something to happen in a session.
func (c *Client) Wait(ctx context.Context, name string, wait api.Wait) (waited api.Waited, err error) {
	if wait.Max <= 0 {
		return waited, c.call(ctx, http.MethodPost, sessionPath(name)+"/wait", wait, &waited)
	}
	return waited, c.ask(ctx, time.Duration(wait.Max), http.MethodPost, sessionPath(name)+"/wait", wait, &waited)
}

// Output reads what a session has said.
func (c *Client) Output(ctx context.Context, name string, query api.Query) (output api.Output, err error) {
	return output, c.ask(ctx, 0, http.MethodPost, sessionPath(name)+"/output", query, &output)
}

// Screen returns what the program on the session's terminal shows.
func (c *Client) Screen(ctx context.Context, name string) (screen session.Screen, err error) {
	return screen, c.ask(ctx, 0, http.MethodGet, sessionPath(name)+"/screen", nil, &screen)
}

// Resize tells the session's terminal its new size.
func (c *Client) Resize(ctx context.Context, name string, size transport.Size) error {
	return c.ask(ctx, 0, http.MethodPost, sessionPath(name)+"/resize", api.Size(size), nil)
}

// Reset puts a fresh shell in the place of a session's, in the same directory and
// with the same exported variables. What runs is ended.
func (c *Client) Reset(ctx context.Context, name string) error {
	return c.ask(ctx, 0, http.MethodPost, sessionPath(name)+"/reset", nil, nil)
}

// Follow calls each with what happens in a session: its output from a cursor on,
// and its commands, whose results hold a byte of each stream at most. It ends when
// each returns an error, which it returns, or with the session, and returns nil then.
func (c *Client) Follow(ctx context.Context, name string, since int64, each func(api.Event) error) error {
	return stream(ctx, c, http.MethodGet, sessionPath(name)+"/stream?limit=1&since="+strconv.FormatInt(since, 10), nil, decodeEvent, each)
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

// Detach ends an attachment. One that is over is no error.
func (c *Client) Detach(ctx context.Context, name, attachment string) error {
	return c.askWithin(ctx, answerTime, http.MethodDelete, sessionPath(name)+"/attachment?attachment="+url.QueryEscape(attachment), nil, nil)
}

// Presence tells the daemon that this client is there until ctx ends; see
// [api.Open]. over is closed when the daemon no more believes it, or is gone.
func (c *Client) Presence(ctx context.Context) (presence api.Presence, over <-chan struct{}, err error) {
	return hold[api.Presence](ctx, c, "/v1/clients")
}

func sessionPath(name string) string { return "/v1/sessions/" + url.PathEscape(name) }
