package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/session"
)

// The exit statuses of the contract. One host: the command's own status is
// passed on, and these are ours.
const (
	statusUnknown    = 122
	statusRunning    = 123
	statusTimedOut   = 124
	statusNotStarted = 125
	statusPipe       = 128 + int(syscall.SIGPIPE)
)

// Many hosts, and verbs that run no command.
const (
	statusFailed       = 1
	statusUsage        = 2
	statusSomeNotBegun = 3
	statusSomeTimedOut = 4
	statusSomeUnknown  = 5
	statusStopped      = 6
)

// An exitStatus is the error of a command that has said all there is to say.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// ended returns the error for a status; nil for 0.
func ended(status int) error {
	if status == 0 {
		return nil
	}
	return exitStatus(status)
}

// status returns the exit status for an error that kept a command from doing
// its work.
func (a *app) status(err error) int {
	var code exitStatus
	signal, stopped := interrupted(err)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case stopped:
		return signal.status()
	case a.oneHost:
		return statusNotStarted
	}
	family, _, _ := strings.Cut(gateway.Code(err), ".")
	switch family {
	case "usage", "config", "inventory", "selector", "script", "secret":
		return statusUsage
	}
	return statusFailed
}

// resultStatus returns the exit status for a command on one host.
func resultStatus(ctx context.Context, r gateway.Result) int {
	if signal, ok := interrupted(context.Cause(ctx)); ok && (r.Verdict == session.Interrupted || r.Verdict == session.NotStarted || errors.Is(r.Err, signal)) {
		return signal.status()
	}
	switch r.Verdict {
	case session.Verdict(api.Running), session.Verdict(api.WaitingInput):
		return statusRunning
	case session.Interrupted:
		if errors.Is(r.Err, session.ErrNeedsInput) {
			return statusNotStarted
		}
		if ctx.Err() != nil { // by this process: nobody would see its output
			return statusUnknown
		}
		return 128 + int(syscall.SIGINT) // by somebody else
	case session.Exited, session.Signaled:
		if code := gateway.Code(r.Err); r.ExitCode == 0 && (code == outputFailed || code == session.InputFailed) { // which is no success
			return statusUnknown
		}
		if r.ExitCode < 0 { // of a signal without a number
			return 128
		}
		return r.ExitCode
	case session.TimedOut:
		return statusTimedOut
	case session.Unknown:
		return statusUnknown
	}
	return statusNotStarted
}
