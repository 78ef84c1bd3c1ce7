package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"time"

	"gateway/daemon/api"
	"gateway/transport"
)

// How long a daemon may take to greet, and for what it waits for nobody with; and for all
// else, in which a machine may have a part, whose own timers are shorter, or which may be
// much. One that was stopped would take for ever: it is greeted after each aliveTime.
const (
	aliveTime  = time.Second
	answerTime = 5 * time.Second
	workTime   = 3 * time.Minute
)

// ask is call for what an alive daemon answers in a known time, behind a wait that the
// request asks for.
func (c *Client) ask(ctx context.Context, wait time.Duration, method, path string, body, answer any) error {
	ctx, cancel := c.whileAlive(ctx, wait+aliveTime)
	defer cancel()
	return c.askWithin(ctx, wait+workTime, method, path, body, answer)
}

// askWithin is call for what must be answered in time, whatever the daemon does.
func (c *Client) askWithin(ctx context.Context, limit time.Duration, method, path string, body, answer any) error {
	ctx, _, cancel := c.within(ctx, limit)
	defer cancel()
	return c.call(ctx, method, path, body, answer)
}

// within returns a context for a request whose answer must come in time; arrived
// says that it has. The time counts from the connection on: for that, a daemon may
// have to be started.
func (c *Client) within(ctx context.Context, limit time.Duration) (bound context.Context, arrived, cancel func()) {
	bound, end := context.WithCancelCause(ctx)
	late := time.AfterFunc(startTime+limit, func() {
		end(&transport.Error{
			Code: "daemon.unreachable", Message: fmt.Sprintf("daemon: what listens on %s does not answer", c.where), Err: ErrLost,
			Hint: "it may be stopped or stuck: see its log, or end it: gateway serve --stop --force",
		})
	})
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { late.Reset(limit) }}
	return httptrace.WithClientTrace(bound, trace), func() { late.Stop() }, func() {
		late.Stop()
		end(nil)
	}
}

// whileAlive returns a context for a request that may take any time. Once a first time is
// over, it ends where the daemon does not even greet any more, with the error of that.
func (c *Client) whileAlive(ctx context.Context, first time.Duration) (bound context.Context, cancel func()) {
	bound, end := context.WithCancelCause(ctx)
	go func() { // ends with bound
		for pause := first; ; pause = aliveTime {
			select {
			case <-bound.Done():
				return
			case <-time.After(pause):
			}
			if _, err := c.Hello(bound); errors.Is(err, ErrLost) && !errors.Is(err, errForeign) { // which is an answer
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
		return cause(ctx)
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
			return nil, cause(ctx)
		}
		return nil, unreachable(err)
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer response.Body.Close()
	return nil, refusal(response, c.where)
}

// cause says why the context of a request has ended: by the client itself, as it does
// where no answer comes, or by the caller.
func cause(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, ErrLost) {
		return err
	}
	return transport.Cause(ctx)
}

// refusal is the error that an answer stands for.
func refusal(response *http.Response, where string) error {
	var body api.Failure
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&body); err != nil || body.Error == nil {
		return unreadable(response, where, fmt.Errorf("it answers %s", response.Status))
	}
	return body.Error.Err()
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
	if coded, ok := errors.AsType[*transport.Error](err); ok {
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
	arrived()
	switch {
	case ctx.Err() != nil:
		err = cause(ctx)
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
