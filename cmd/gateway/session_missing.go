package main

import (
	"cmp"
	"fmt"

	"gateway/gateway"
	"gateway/transport"
)

// cut says where the rest is of an output that is longer than an object has of it:
// the daemon keeps that, and there is no spool.
func (e *execution) cut(r gateway.Result) {
	if r.Truncated && e.app.config.Output == "json" {
		e.app.warn(fmt.Sprintf("the middle of the output was left out: gateway session read %s has what the daemon keeps of it", r.ID))
	}
}

// missing says what this call could not show of the command's output; nil if it
// has shown all that came.
func (e *execution) missing() error {
	switch {
	case e.dropped == 0:
		return nil
	case e.why != nil:
		return notKept(fmt.Sprintf("%d bytes", e.dropped), e.why)
	}
	return &transport.Error{
		Code: outputFailed, Message: fmt.Sprintf("daemon: %d bytes of the output are no longer there: it came faster than it was read", e.dropped), Hint: hintRan,
	}
}

// hintRan is the hint where the output of a command is not whole.
const hintRan = "the command has run: see what it has done before you run it again"

// notKept is the error of an output that the daemon could not keep.
func notKept(what string, why *gateway.JSONError) error {
	return &transport.Error{Code: outputFailed, Message: fmt.Sprintf("daemon: %s of the output could not be kept: %s", what, why.Message), Hint: cmp.Or(why.Hint, hintRan), Err: why.Err()}
}
