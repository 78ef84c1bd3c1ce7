package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/hosts"
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

// A usageError is a mistake on the command line.
type usageError struct {
	message, hint string
	unread        bool // the flags behind it were not read
}

func (e *usageError) Error() string { return e.message }

// ErrorCode returns the error code of the contract.
func (e *usageError) ErrorCode() string { return "usage" }

// ErrorHint returns what to type instead, or where to read about it.
func (e *usageError) ErrorHint() string { return e.hint }

// usage returns a usageError of a command. Without a hint it names the help.
func usage(cmd *cobra.Command, hint, format string, args ...any) error {
	if hint == "" {
		hint = seeHelp(cmd)
	}
	return &usageError{message: fmt.Sprintf(format, args...), hint: hint}
}

func seeHelp(cmd *cobra.Command) string { return "see " + cmd.CommandPath() + " --help" }

// flagError turns pflag's error into a usageError.
func flagError(cmd *cobra.Command, err error) error {
	wrong := &usageError{unread: true}
	wrong.message, wrong.hint = flagMistake(cmd, err)
	if wrong.hint == "" {
		wrong.hint = seeHelp(cmd)
	}
	return wrong
}

// flagMistake says what is wrong with a flag, and what may be meant.
func flagMistake(cmd *cobra.Command, err error) (message, hint string) {
	var (
		missing *pflag.NotExistError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &invalid):
		return fmt.Sprintf("--%s: %s", invalid.GetFlag().Name, wanted(invalid)), ""
	case !errors.As(err, &missing) || missing.GetSpecifiedShortnames() != "":
		return err.Error(), ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	name := "--" + missing.GetSpecifiedName()
	return "unknown flag " + name, hosts.DidYouMean(name, "", names)
}

// wanted says what a flag has to be. The flags of this program say it
// themselves; of a number or a switch strconv only tells which of its functions
// has refused it.
func wanted(invalid *pflag.InvalidValueError) string {
	var number *strconv.NumError
	if !errors.As(invalid, &number) {
		return invalid.Unwrap().Error()
	}
	value := invalid.GetValue()
	switch {
	case number.Func == "ParseBool":
		return fmt.Sprintf("%q is neither true nor false", value)
	case errors.Is(number, strconv.ErrRange):
		return fmt.Sprintf("%q is out of range", value)
	}
	return fmt.Sprintf("%q is not a whole number", value)
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
		return r.ExitCode
	case session.TimedOut:
		return statusTimedOut
	case session.Unknown:
		return statusUnknown
	}
	return statusNotStarted
}
