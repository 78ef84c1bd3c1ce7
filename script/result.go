package script

import (
	"time"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/internal/phrase"
	"gateway/session"
)

// ResultSchema is the schema of a [Result] in JSON.
const ResultSchema = "gateway.script/v1"

// A Result is what happened on one host. No text of it has a secret in it.
type Result struct {
	Script  string // its name, else its file
	Host    string
	User    string
	Session string
	Shell   string
	// Transport is ssh or local.
	Transport string
	// Outcome is that of the first step that ended the script.
	Outcome  fleet.Outcome
	Started  time.Time
	Duration time.Duration
	Connect  time.Duration
	// Err says why no step was run, or no further one; nil if a step says that.
	Err   error
	Steps []StepResult
}

// The blocks of a script.
const (
	Steps  = "steps"
	Always = "always"
)

// A StepResult is what happened with one step.
type StepResult struct {
	Name  string
	Block string // Steps or Always
	// Line is where the step stands in the file; FailedLine that of the statement
	// that ended it, or 0.
	Line, FailedLine int
	Command          string
	Outcome          fleet.Outcome
	// Ignored: it failed, and that is allowed.
	Ignored bool
	// Reason says why it was left out.
	Reason   string
	Verdict  session.Verdict
	ExitCode int // -1: none is known
	Signal   string
	Attempts int
	Register string
	Sudo     string // the other user
	// Copy is what the last attempt of a step with copy or fetch has copied; nil
	// if it has not begun. The exit code of such a step is -1.
	Copy *Copied

	Stdout, Stderr, Terminal []byte
	Streams                  session.Streams
	StdoutBytes, StderrBytes int64
	Cwd                      string
	Started                  time.Time
	Duration                 time.Duration
	// Err says what is wrong with it; nil if it did what was expected.
	Err error
}

// Failed reports whether the step counts as a failure of its host.
func (s *StepResult) Failed() bool {
	return s.Outcome != fleet.OK && s.Outcome != fleet.Skipped && !s.Ignored
}

// FirstFailure returns the first step that failed, or, where the outcome is unknown,
// whose own is; nil if there is none.
func (r *Result) FirstFailure() *StepResult {
	for i := range r.Steps {
		if s := &r.Steps[i]; s.Failed() && (r.Outcome != fleet.Unknown || s.Outcome == fleet.Unknown) {
			return s
		}
	}
	return nil
}

type jsonResult struct {
	Schema     string             `json:"schema"`
	Script     string             `json:"script"`
	Host       string             `json:"host"`
	User       string             `json:"user"`
	Transport  string             `json:"transport"`
	Session    string             `json:"session"`
	Shell      string             `json:"shell"`
	Outcome    fleet.Outcome      `json:"outcome"`
	StartedAt  *time.Time         `json:"started_at"`
	DurationMS int64              `json:"duration_ms"`
	ConnectMS  int64              `json:"connect_ms"`
	Error      *gateway.JSONError `json:"error"`
	Steps      []StepResult       `json:"steps"`
}

type jsonStep struct {
	Name       string          `json:"name"`
	Block      string          `json:"block"`
	Line       int             `json:"line"`
	Command    string          `json:"command"`
	Outcome    fleet.Outcome   `json:"outcome"`
	Ignored    bool            `json:"ignored"`
	Reason     string          `json:"reason,omitempty"`
	Verdict    session.Verdict `json:"verdict"`
	ExitCode   *int            `json:"exit_code"`
	Signal     *string         `json:"signal"`
	FailedLine int             `json:"failed_line,omitempty"`
	Attempts   int             `json:"attempts"`
	Register   string          `json:"register,omitempty"`
	Sudo       string          `json:"sudo,omitempty"`
	Copy       *Copied         `json:"copy,omitempty"`
	gateway.JSONOutput
	Streams     session.Streams    `json:"streams"`
	StdoutBytes int64              `json:"stdout_bytes"`
	StderrBytes int64              `json:"stderr_bytes"`
	Cwd         string             `json:"cwd"`
	StartedAt   *time.Time         `json:"started_at"`
	DurationMS  int64              `json:"duration_ms"`
	Error       *gateway.JSONError `json:"error"`
}

// MarshalJSON returns the result as gateway.script/v1.
func (r Result) MarshalJSON() ([]byte, error) {
	return phrase.JSON(jsonResult{
		Schema: ResultSchema, Script: r.Script, Host: r.Host, User: r.User, Transport: r.Transport,
		Session: r.Session, Shell: gateway.ShellName(r.Shell), Outcome: r.Outcome,
		StartedAt: gateway.Timestamp(r.Started), DurationMS: r.Duration.Milliseconds(), ConnectMS: r.Connect.Milliseconds(),
		Error: gateway.NewJSONError(r.Err), Steps: append([]StepResult{}, r.Steps...),
	})
}

// MarshalJSON returns the step as it stands in gateway.script/v1.
func (s StepResult) MarshalJSON() ([]byte, error) {
	j := jsonStep{
		Name: s.Name, Block: s.Block, Line: s.Line, Command: s.Command, Outcome: s.Outcome, Ignored: s.Ignored, Reason: s.Reason,
		Verdict: s.Verdict, FailedLine: s.FailedLine, Attempts: s.Attempts, Register: s.Register, Sudo: s.Sudo, Copy: s.Copy,
		Signal: gateway.Optional(s.Signal), JSONOutput: gateway.NewJSONOutput(s.Stdout, s.Stderr, s.Terminal),
		Streams: s.Streams, StdoutBytes: s.StdoutBytes, StderrBytes: s.StderrBytes,
		Cwd: s.Cwd, StartedAt: gateway.Timestamp(s.Started), DurationMS: s.Duration.Milliseconds(), Error: gateway.NewJSONError(s.Err),
	}
	if s.ExitCode >= 0 {
		j.ExitCode = &s.ExitCode
	}
	return phrase.JSON(j)
}
