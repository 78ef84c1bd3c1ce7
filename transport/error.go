package transport

import (
	"context"
	"errors"
	"strings"
)

// The kinds of failure that a caller treats differently. Every error of a
// transport that falls under one of them wraps it; use errors.Is.
var (
	// ErrUnreachable: no connection to the machine came about. Nothing ran.
	ErrUnreachable = errors.New("machine not reached")
	// ErrAuth: the machine refused the credentials, or there were none to show.
	// Never retried: accounts get locked that way.
	ErrAuth = errors.New("authentication refused")
	// ErrHostKey: the machine's host key is unknown, changed or revoked.
	ErrHostKey = errors.New("host key not accepted")
	// ErrLost: the link went away while it was in use. What had been started
	// may still run.
	ErrLost = errors.New("link lost")
	// ErrClosed: the Transport or Program was closed by its owner.
	ErrClosed = errors.New("transport closed")
)

// Cause is [context.Cause], but its error also wraps that of the context: whoever ends
// one for a reason of his own still finds [context.Canceled].
func Cause(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || errors.Is(cause, err) {
		return cause
	}
	return because{cause, err}
}

type because struct{ cause, err error }

func (b because) Error() string   { return b.cause.Error() }
func (b because) Unwrap() []error { return []error{b.cause, b.err} }

// Error is a failure with an error code of the contract and a remedy. It never
// contains a secret.
type Error struct {
	// Code is one of the contract's error codes, such as "hostkey.changed".
	Code string
	// Message names the layer, the object and the cause, in lower case.
	Message string
	// Hint says what a person can do about it. It may be empty.
	Hint string
	// Err is the cause, if its text or type is of use to a caller. Its text is
	// not repeated: Message already holds what matters.
	Err error
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorCode returns the error code of the contract. Errors of every layer
// have this method, so that a caller needs no list of types.
func (e *Error) ErrorCode() string { return e.Code }

// ErrorHint returns the remedy, or the empty string.
func (e *Error) ErrorHint() string { return e.Hint }

// Is reports whether target is the kind of failure that the code stands for.
func (e *Error) Is(target error) bool {
	switch layer, _, _ := strings.Cut(e.Code, "."); layer {
	case "dns", "tcp", "proxy", "ssh":
		return target == ErrUnreachable
	case "auth":
		return target == ErrAuth
	case "hostkey":
		return target == ErrHostKey
	case "link":
		return target == ErrLost
	}
	return false
}
