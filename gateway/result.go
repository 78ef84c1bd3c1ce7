package gateway

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	"gateway/internal/phrase"
	"gateway/session"
	"gateway/transport"
)

// resultSchema is the schema of a Result in JSON.
const resultSchema = "gateway.result/v1"

// Result is what happened with one command on one host.
type Result struct {
	session.Result
	ID        string
	Host      string
	User      string
	Transport string
	Session   string
	Shell     string
	Command   string
	// Connect is how long it took to have a session.
	Connect time.Duration
	// Line is that of the statement that ended a script early; 0 if none did.
	Line int
	// Reopened: a fresh shell has taken the place of the one that ended, with its
	// directory and exported variables from before the command.
	Reopened bool
	// Err is nil if the command ended by itself.
	Err error
}

// jsonResult is gateway.result/v1, in the order of the contract.
type jsonResult struct {
	Schema    string  `json:"schema"`
	ID        string  `json:"id"`
	Host      string  `json:"host"`
	User      string  `json:"user"`
	Transport string  `json:"transport"`
	Session   string  `json:"session"`
	Shell     string  `json:"shell"`
	Command   string  `json:"command"`
	Verdict   string  `json:"verdict"`
	ExitCode  *int    `json:"exit_code"`
	Signal    *string `json:"signal"`
	JSONOutput
	Streams     string     `json:"streams"`
	StdoutBytes int64      `json:"stdout_bytes"`
	StderrBytes int64      `json:"stderr_bytes"`
	Truncated   bool       `json:"truncated"`
	Spool       *string    `json:"spool"`
	SpoolStderr *string    `json:"spool_stderr"`
	Background  bool       `json:"background"`
	Cwd         string     `json:"cwd"`
	StartedAt   *time.Time `json:"started_at"`
	DurationMS  int64      `json:"duration_ms"`
	ConnectMS   int64      `json:"connect_ms"`
	Line        int        `json:"line,omitempty"`
	ShellEnded  bool       `json:"shell_ended,omitempty"`
	Reopened    bool       `json:"reopened,omitempty"`
	Error       *JSONError `json:"error"`
}

// JSONOutput is what a command has written, in JSON; see [Text].
type JSONOutput struct {
	Stdout       *string `json:"stdout,omitempty"`
	StdoutBase64 *string `json:"stdout_base64,omitempty"`
	Stderr       *string `json:"stderr,omitempty"`
	StderrBase64 *string `json:"stderr_base64,omitempty"`
	Terminal     *string `json:"terminal,omitempty"`
	TermBase64   *string `json:"terminal_base64,omitempty"`
}

// NewJSONOutput returns what a command has written as it stands in JSON.
func NewJSONOutput(stdout, stderr, terminal []byte) (o JSONOutput) {
	o.Stdout, o.StdoutBase64 = Text(stdout)
	o.Stderr, o.StderrBase64 = Text(stderr)
	o.Terminal, o.TermBase64 = Text(terminal)
	return o
}

// JSONError is an error in JSON.
type JSONError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// NewJSONError returns err as it stands in JSON; nil for nil.
func NewJSONError(err error) *JSONError {
	if err == nil {
		return nil
	}
	return &JSONError{Code: Code(err), Message: err.Error(), Hint: Hint(err)}
}

// MarshalJSON returns the result as gateway.result/v1.
func (r Result) MarshalJSON() ([]byte, error) {
	j := jsonResult{
		Schema: resultSchema, ID: r.ID, Host: r.Host, User: r.User, Transport: r.Transport,
		Session: r.Session, Shell: ShellName(r.Shell), Command: r.Command,
		Verdict: string(r.Verdict), Signal: Optional(r.Signal),
		JSONOutput: NewJSONOutput(r.Stdout, r.Stderr, r.Terminal), Streams: string(r.Streams),
		StdoutBytes: r.StdoutBytes, StderrBytes: r.StderrBytes, Truncated: r.Truncated,
		Spool: Optional(r.Spool), SpoolStderr: Optional(r.SpoolStderr),
		Background: r.Background, Cwd: r.Cwd, StartedAt: Timestamp(r.Started),
		DurationMS: r.Duration.Milliseconds(), ConnectMS: r.Connect.Milliseconds(), Line: r.Line,
		ShellEnded: r.Ended && r.Verdict != session.Unknown, Reopened: r.Reopened,
		Error: NewJSONError(r.Err),
	}
	if r.ExitCode >= 0 {
		j.ExitCode = &r.ExitCode
	}
	return phrase.JSON(j)
}

// UnmarshalJSON reads gateway.result/v1. Err is a *[transport.Error] then.
func (r *Result) UnmarshalJSON(b []byte) error {
	var j jsonResult
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*r = Result{
		ID: j.ID, Host: j.Host, User: j.User, Transport: j.Transport,
		Session: j.Session, Shell: j.Shell, Command: j.Command,
		Result: session.Result{
			Verdict: session.Verdict(j.Verdict), ExitCode: -1, Signal: value(j.Signal),
			Streams:     session.Streams(j.Streams),
			StdoutBytes: j.StdoutBytes, StderrBytes: j.StderrBytes, Truncated: j.Truncated,
			Spool: value(j.Spool), SpoolStderr: value(j.SpoolStderr),
			Background: j.Background, Cwd: j.Cwd, Ended: j.ShellEnded,
			Started: value(j.StartedAt), Duration: time.Duration(j.DurationMS) * time.Millisecond,
		},
		Connect:  time.Duration(j.ConnectMS) * time.Millisecond,
		Line:     j.Line,
		Reopened: j.Reopened,
		Err:      j.Error.Err(),
	}
	if j.ExitCode != nil {
		r.ExitCode = *j.ExitCode
	}
	var errs [3]error
	r.Stdout, errs[0] = bytesOf(j.Stdout, j.StdoutBase64)
	r.Stderr, errs[1] = bytesOf(j.Stderr, j.StderrBase64)
	r.Terminal, errs[2] = bytesOf(j.Terminal, j.TermBase64)
	return errors.Join(errs[:]...)
}

// Err returns the error that stands in JSON, with its code and hint; nil for
// nil.
func (e *JSONError) Err() error {
	if e == nil {
		return nil
	}
	return &transport.Error{Code: e.Code, Message: e.Message, Hint: e.Hint}
}

// bytesOf undoes Text.
func bytesOf(text, base *string) ([]byte, error) {
	switch {
	case base != nil:
		return base64.StdEncoding.DecodeString(*base)
	case text != nil:
		return []byte(*text), nil
	}
	return nil, nil
}

// value undoes [Optional] and [Timestamp].
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Optional returns a text as JSON carries it where null stands for none.
func Optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Timestamp returns a time as JSON carries it; nil for the zero time.
func Timestamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC().Truncate(time.Microsecond))
}

// Text returns bytes as JSON carries them: as text, or in base64 if they are
// not UTF-8. The other one is nil.
func Text(b []byte) (text, base *string) {
	if utf8.Valid(b) {
		return new(string(b)), nil
	}
	return nil, new(base64.StdEncoding.EncodeToString(b))
}
