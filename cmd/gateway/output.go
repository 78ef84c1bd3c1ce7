package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"gateway/gateway"
	"gateway/internal/config"
	"gateway/internal/phrase"
	"gateway/transport"
)

// output is where everything goes that gateway says. Writing to it is writing
// to stdout; what cannot be written there ends the command, because nobody
// would see the rest. It may be used concurrently.
type output struct {
	stdout, stderr *os.File
	// toStdout and toStderr write to these.
	toStdout, toStderr io.Writer
	console            *console
	cancel             context.CancelCauseFunc
	format             string // text, json or jsonl
	color              bool   // on stdout
	errColor           bool   // on stderr
	shared             bool   // both streams are a terminal, and so the same one

	// screen is held by whoever writes to a terminal on which progress is shown.
	screen   sync.Mutex
	progress atomic.Pointer[progress] // nil: none is shown
	// drawn: what is shown below the output draws over what the terminal shows by itself.
	drawn atomic.Bool

	mu     sync.Mutex
	broken error // guarded by mu: the first error of stdout
	// begun: something is on stdout, or it is no place for results. Guarded by mu.
	begun bool
	// midline: the line on stderr, or on the terminal that both streams share,
	// has not ended. Guarded by mu.
	midline bool
}

func newOutput(stdout, stderr *os.File, c *console, cancel context.CancelCauseFunc) *output {
	return &output{
		stdout: stdout, stderr: stderr, toStdout: stdout, toStderr: stderr, console: c, cancel: cancel, format: config.Default().Output,
		shared: isTerminal(stdout) && isTerminal(stderr),
	}
}

// configure takes over what the settings say about output.
func (o *output) configure(c *config.Config) {
	o.format = c.Output
	colors := func(f *os.File) bool {
		return c.Color == "always" || c.Color == "auto" && !c.CI && os.Getenv("NO_COLOR") == "" &&
			os.Getenv("TERM") != "dumb" && isTerminal(f)
	}
	o.color, o.errColor = colors(o.stdout), colors(o.stderr)
}

// Write writes to stdout.
func (o *output) Write(b []byte) (int, error) {
	if p := o.progress.Load(); p != nil && o.shared {
		defer p.makeRoom()()
	}
	if o.shared {
		o.shows(b)
	}
	n, err := o.toStdout.Write(b)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun = true
	if err != nil {
		if o.broken == nil {
			o.broken = err
		}
		o.cancel(&transport.Error{Code: "cmd.interrupted", Message: err.Error(), Err: err}) // as by a signal
	}
	return n, err
}

// shows notes where b leaves the cursor. It goes before b: who sees b may press ^C at once,
// and what is noted of that must stay.
func (o *output) shows(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(b) > 0 {
		o.midline = b[len(b)-1] != '\n'
	}
}

// echoed notes that the terminal has shown something by itself.
func (o *output) echoed() {
	if !isTerminal(o.stderr) || o.drawn.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.midline = true
}

// newLine ends a line that has not ended, on the terminal that both streams
// share.
func (o *output) newLine() {
	o.mu.Lock()
	midline := o.shared && o.midline
	o.mu.Unlock()
	if midline {
		_, _ = o.Write([]byte("\r\n"))
	}
}

// failed returns what went wrong with stdout.
func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.broken
}

// stderrWriter writes to stderr. It is the place of last resort, so whether it
// can be written to is nobody's business.
type stderrWriter struct{ o *output }

func (w stderrWriter) Write(b []byte) (int, error) {
	if p := w.o.progress.Load(); p != nil {
		defer p.makeRoom()()
	}
	w.o.shows(b)
	_, _ = w.o.toStderr.Write(b)
	return len(b), nil
}

// errors returns stderr.
func (o *output) errors() io.Writer { return stderrWriter{o} }

// outputStatus returns the status for a stdout that cannot be written to, where
// it would else be that of an error. A command that ran is not one that did not
// start, whoever repeats it has it done twice; and it is no success.
func (a *app) outputStatus(failed, err error) int {
	if errors.Is(failed, syscall.EPIPE) {
		return statusPipe
	}
	hint := "let stdout go where there is room for it"
	if a.ran {
		hint = "the command was started: see what it has done before you run it again"
	}
	a.out.fail(outputError("stdout", phrase.WithoutPath(failed), hint))
	status := a.status(err)
	switch {
	case !a.oneHost:
		return a.out.status(status)
	case !a.ran:
		return statusNotStarted
	case status == 0:
		return statusUnknown
	}
	return status
}

// outputFailed is the code of an output that is not whole.
const outputFailed = "output.failed"

// outputError is the error of an output that could not be written.
func outputError(what string, err error, hint string) error {
	return &transport.Error{Code: outputFailed, Message: what + ": " + err.Error(), Hint: hint, Err: err}
}

// hintFile is the hint where a file could not be written, which stops nothing.
const hintFile = "let it go where there is room for it; what was started has run all the same"

// status returns what a status of many hosts, or of another verb, becomes where
// stdout could not be written to.
func (o *output) status(status int) int {
	switch failed := o.failed(); {
	case errors.Is(failed, syscall.EPIPE):
		return statusPipe
	case failed != nil && status == 0:
		return statusFailed
	}
	return status
}

// printf writes text for people to stdout.
func (o *output) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(o, format, args...)
	return err
}

// fail says why something was not done.
func (o *output) fail(err error) { o.say(strings.Join(complaint(err, gateway.Hint(err)), "\n")) }

// warn says something that stopped nothing.
func (o *output) warn(message string) { o.say("gateway: warning: " + indent(visible(message))) }

// say writes lines to stderr: at the beginning of a line, wherever a command
// stopped, and with the carriage returns that a raw terminal needs.
func (o *output) say(lines string) {
	o.mu.Lock()
	if o.midline {
		lines = "\n" + lines
	}
	o.mu.Unlock()
	lines += "\n"
	if o.console.isRaw() {
		lines = strings.ReplaceAll(lines, "\n", "\r\n")
	}
	_, _ = io.WriteString(o.errors(), lines) // never fails
}
