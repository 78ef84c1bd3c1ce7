// Package api is what the daemon and its callers say to each other: JSON over
// HTTP on a unix socket. docs/api.md describes the routes.
package api

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"gateway/gateway"
)

// Protocol is the version of the API. Daemon and caller must have the same one.
const Protocol = 1

// ProtocolHeader carries it in every request and answer.
const ProtocolHeader = "Gateway-Protocol"

// ScopeHeader restricts a request to the sessions of one scope.
const ScopeHeader = "Gateway-Scope"

// The routes that stay the same for ever, so that a caller and a daemon that
// share nothing else can still part. RouteStop is answered whatever the protocol.
const (
	RouteHello = "/v1/hello" // GET
	RouteStop  = "/v1/stop"  // POST: Stop, answered with Hello
)

// Stop asks the daemon to end.
type Stop struct {
	// Force: also with sessions open or requests in progress that do something, and without waiting
	// for what runs in them.
	Force bool `json:"force"`
}

// Hello is what the daemon says of itself.
type Hello struct {
	Protocol int       `json:"protocol"`
	Version  string    `json:"version"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started_at"`
	Sessions int       `json:"sessions"` // that are open
}

// Failure is the body of every answer that is not 2xx.
type Failure struct {
	Error *gateway.JSONError `json:"error"`
}

// State is what a session is doing.
type State string

// The states of a session. Closed and Lost are final.
const (
	Idle         State = "idle"
	Running      State = "running"
	WaitingInput State = "waiting_input"
	// Closed: it ended in order, or its shell did.
	Closed State = "closed"
	// Lost: the link or the daemon went away. What ran may go on running.
	Lost State = "lost"
)

// Over reports whether the session is gone.
func (s State) Over() bool { return s == Closed || s == Lost }

// The kinds of a session.
const (
	PTY  = "pty"
	Pipe = "pipe" // no terminal at all
)

// Session is what is known about a session.
type Session struct {
	ID        string `json:"id"`
	Name      string `json:"name"` // unique among those of its scope that are open
	Host      string `json:"host"`
	User      string `json:"user"`
	Transport string `json:"transport"`
	Shell     string `json:"shell"`
	Kind      string `json:"kind"`
	Sudo      string `json:"sudo,omitempty"` // the user that it has become
	// Scope is who may see it besides the machine's user; see Open.
	Scope string `json:"scope,omitempty"`
	Keep  bool   `json:"keep,omitempty"`
	// Once: it is over when its first command is.
	Once  bool  `json:"once,omitempty"`
	State State `json:"state"`
	// Cwd is where the last command ended that told it.
	Cwd string `json:"cwd"`
	// Command is the one that runs, or ran last.
	Command *Command `json:"command,omitempty"`
	// Attached says who has taken the terminal over.
	Attached string `json:"attached,omitempty"`
	// ExitCode is the shell's, once it has ended by itself.
	ExitCode *int `json:"exit_code,omitempty"`
	// Reason says why the session is over.
	Reason   string     `json:"reason,omitempty"`
	OpenedAt time.Time  `json:"opened_at"`
	UsedAt   time.Time  `json:"used_at"`
	ClosedAt *time.Time `json:"closed_at,omitempty"`
	// TTL is how long it may be idle.
	TTL Duration `json:"ttl_ms"`
	// From and To bound what can be read of its output; what stood before From
	// was dropped.
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Why returns the reason for a session's end, if it says more than the state.
func (s Session) Why() string {
	if s.Reason == string(s.State) {
		return ""
	}
	return s.Reason
}

// Fate says what has become of a session, and why.
func (s Session) Fate() string {
	text := fmt.Sprintf("session %s is %s", s.Name, s.State)
	if why := s.Why(); why != "" {
		text += ": " + why
	}
	return text
}

// Since is [time.Since] for a time that the daemon tells. That is one of the machine's
// clock, which may have been set back meanwhile.
func Since(t time.Time) time.Duration { return max(time.Since(t), 0) }

// Open asks for a session. The answer is a stream of OpenEvent.
type Open struct {
	Target gateway.Target    `json:"target"`
	Name   string            `json:"name,omitempty"` // empty: the daemon makes one
	Shell  string            `json:"shell,omitempty"`
	Login  bool              `json:"login,omitempty"`
	Cwd    string            `json:"cwd,omitempty"`
	Env    map[string]string `json:"env,omitempty"`
	Kind   string            `json:"kind,omitempty"` // empty: pty
	Cols   int               `json:"cols,omitempty"`
	Rows   int               `json:"rows,omitempty"`
	Term   string            `json:"term,omitempty"`
	Sudo   *Sudo             `json:"sudo,omitempty"`
	// SudoPassword is a reference to what sudo is answered when a command calls it.
	SudoPassword string `json:"sudo_password,omitempty"`
	// TTL is how long it may be idle; 0 is the daemon's default.
	TTL Duration `json:"ttl_ms,omitempty"`
	// Client is the id of a Presence: the session closes a while after that is
	// gone, unless Keep is set.
	Client string `json:"client,omitempty"`
	Keep   bool   `json:"keep,omitempty"`
	// Scope is noted in the session. A request that names a scope sees only the
	// sessions of that scope.
	Scope string `json:"scope,omitempty"`
	// Reopen puts a fresh shell in place of one that a command has ended, in the
	// same directory and with the same exported variables, and says so.
	Reopen bool `json:"reopen,omitempty"`
	// Once closes the session when its first command has ended.
	Once bool `json:"once,omitempty"`
	// Interactive: the caller can put questions to a person.
	Interactive bool `json:"interactive,omitempty"`
}

// Sudo is how the session becomes another user's.
type Sudo struct {
	User     string   `json:"user,omitempty"`
	Flags    []string `json:"flags,omitempty"`
	Password string   `json:"password,omitempty"` // a reference
}

// OpenEvent is a line of what Open answers: any number of questions and
// warnings, and Session or Error as the last one.
type OpenEvent struct {
	Question *Question          `json:"question,omitempty"`
	Warning  string             `json:"warning,omitempty"`
	Session  *Session           `json:"session,omitempty"`
	Error    *gateway.JSONError `json:"error,omitempty"`
}

// Question is for the caller, which answers with an Answer. Nobody else knows
// its id.
type Question struct {
	ID string `json:"id"`
	// Secret is a reference to resolve in the caller's environment. If it is
	// empty, the rest is a question to a person.
	Secret string `json:"secret,omitempty"`
	gateway.Question
}

// Answer is a caller's answer to a Question.
type Answer struct {
	Text  string             `json:"text"`
	Error *gateway.JSONError `json:"error,omitempty"`
}

// Attached is the first line of the answer to an attachment, which lasts as
// long as its request. Others may not run or type meanwhile.
type Attached struct {
	Attachment string  `json:"attachment"`
	Session    Session `json:"session"`
}

// Presence is the first line of the answer to a client that says it is there,
// which it is as long as its request lasts.
type Presence struct {
	Client string `json:"client"`
}

// Stats are the daemon's figures.
type Stats struct {
	Uptime      Duration `json:"uptime_ms"`
	Sessions    int      `json:"sessions"`
	Connections int      `json:"connections"`
	Commands    int64    `json:"commands"` // since its start
	Bytes       int64    `json:"bytes"`    // of output
	Memory      uint64   `json:"memory_bytes"`
	Goroutines  int      `json:"goroutines"`
}

// Duration is a time.Duration as whole milliseconds in JSON.
type Duration time.Duration

// MarshalJSON rounds up: a short time must not become no time.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal((time.Duration(d) + time.Millisecond - 1).Milliseconds())
}

// maxMillis is about what a Duration holds: 292 years.
const maxMillis = int64(math.MaxInt64/time.Millisecond) - 1

// UnmarshalJSON reads milliseconds. More than a Duration holds is as much as it does,
// and less than none is refused.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var ms int64
	if err := json.Unmarshal(b, &ms); err != nil {
		return err
	}
	if ms < 0 {
		return fmt.Errorf("a time of %d ms", ms)
	}
	*d = Duration(time.Duration(min(ms, maxMillis)) * time.Millisecond)
	return nil
}
