package local

import (
	"errors"
	"fmt"
	"syscall"

	"gateway/transport"
)

// isExhausted reports whether the process, or the machine, has no more of what it takes to
// start a program: that says nothing of the account or its shell. Between fork and exec,
// dup2(2) calls a descriptor bad that is beyond the limit.
func isExhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.EBADF) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM)
}

func exhausted(what string, err error) *transport.Error {
	return &transport.Error{
		Code: "session.limit", Message: fmt.Sprintf("local: %s: %v", what, err),
		Hint: "this machine or its limits (ulimit -n, ulimit -u) let no more be opened or started", Err: err,
	}
}
