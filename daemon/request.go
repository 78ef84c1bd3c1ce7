package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"gateway/gateway"
	"gateway/internal/phrase"
	"gateway/transport"
)

// maxBody bounds a request: the longest text of a command, in JSON, and some
// standard input.
const maxBody = 16 << 20

// A request is one call, and its answer.
type request struct {
	w     http.ResponseWriter
	r     *http.Request
	scope string

	mu      sync.Mutex // lines may come from several goroutines
	started bool       // the answer is under way: it is too late for an error
	over    bool       // w must not be used any more
}

// end comes before net/http takes the answer back: what a request has begun may
// have something to say when it is over.
func (q *request) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
}

func (q *request) context() context.Context { return q.r.Context() }

// body reads the request's JSON.
func (q *request) body(into any) error { return readBody(q.w, q.r, into) }

// readBody reads a request's JSON. What the API does not know is refused.
func readBody(w http.ResponseWriter, r *http.Request, into any) error {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return usage("move large data as a file", "the request is longer than %d MiB", maxBody>>20)
	case err != nil:
		return err
	case !utf8.Valid(data): // a decoder would put U+FFFD there, without a word
		return usage("", "the request is not valid UTF-8")
	case phrase.HalfPair(data): // and there
		return usage("", "the request has half a surrogate pair: that is no character")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return usage("", "request: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return usage("", "the request has something behind its JSON")
	}
	return nil
}

// usage is the error of a request that asks for what can't be.
func usage(hint, format string, args ...any) error {
	return &transport.Error{Code: "usage", Message: "daemon: " + fmt.Sprintf(format, args...), Hint: hint}
}

// reply answers with one object.
func (q *request) reply(answer any) error { return reply(q.w, answer) }

// result answers with what a call has returned, or returns its error.
func (q *request) result(answer any, err error) error {
	if err != nil {
		return err
	}
	return q.reply(answer)
}

// line sends one line of an answer that goes on.
func (q *request) line(answer any) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return errNobody
	}
	if !q.started {
		q.w.Header().Set("Content-Type", "application/x-ndjson")
		q.started = true
	}
	if err := json.NewEncoder(q.w).Encode(answer); err != nil {
		return err
	}
	return http.NewResponseController(q.w).Flush()
}

// statuses maps error codes to statuses, for those who look at nothing else.
var statuses = map[string]int{
	"usage":              http.StatusBadRequest,
	"config.invalid":     http.StatusBadRequest, // the request says how a target is reached
	"session.not_found":  http.StatusNotFound,
	"session.busy":       http.StatusConflict,
	"session.closed":     http.StatusGone,
	"session.limit":      http.StatusTooManyRequests,
	"daemon.version":     http.StatusUpgradeRequired,
	"daemon.unreachable": http.StatusServiceUnavailable,
}

// fail answers with an error, if there is still room for one.
func (q *request) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.started || q.context().Err() != nil {
		// Whoever is still there was cut, as by the daemon's end. What was asked may have
		// been done, and what was told is not all: without the end of an answer they know
		// that they do not know.
		panic(http.ErrAbortHandler)
	}
	status, ok := statuses[gateway.Code(err)]
	if !ok {
		status = http.StatusInternalServerError
	}
	refuse(q.w, status, err)
}

// stamp returns the time as the API tells it, which is as results do.
func stamp() time.Time { return stampOf(time.Now()) }

func stampOf(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// number reads a parameter of the query.
func (q *request) number(name string, otherwise int64) (int64, error) {
	text := q.r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, usage("", "%s: %q is no number", name, text)
	}
	return n, nil
}
