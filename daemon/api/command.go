package api

import (
	"time"

	"gateway/gateway"
	"gateway/session"
)

// Command is what is known about a command of a session.
type Command struct {
	ID      string `json:"id"`
	Session string `json:"session"`
	Host    string `json:"host"`
	Text    string `json:"command"`
	// TTY, Echo and Merge are as in Run.
	TTY   bool `json:"tty,omitempty"`
	Echo  bool `json:"echo,omitempty"`
	Merge bool `json:"merge,omitempty"`
	// OnTerminal: its machine has no other way for its output than the terminal.
	OnTerminal bool `json:"on_terminal,omitempty"`
	// State is running, waiting_input, or the verdict.
	State     string    `json:"state"`
	StartedAt time.Time `json:"started_at"`
	// Prompt is what it waits for.
	Prompt *Prompt `json:"prompt,omitempty"`
	// From is where its output begins, To where it ended or stands now.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// ExitCode is the result's, if there is one to know.
	ExitCode *int `json:"exit_code,omitempty"`
	// Why says why some of its output could not be kept, if so.
	Why *gateway.JSONError `json:"why_dropped,omitempty"`
	// Ended: the session's shell has gone with it.
	Ended bool `json:"ended,omitempty"`
	// Result is set once it is over, but for a Session's Command.
	Result *gateway.Result `json:"result,omitempty"`
}

// Over reports whether the command has a result.
func (c Command) Over() bool { return c.State != string(Running) && c.State != string(WaitingInput) }

// Streams returns where its output goes, for a result without an end to tell it.
func (c Command) Streams() session.Streams {
	switch {
	case c.TTY || c.OnTerminal:
		return session.OnTerminal
	case c.Merge:
		return session.Merged
	}
	return session.Split
}

// Prompt is what a command that waits for input has said last.
type Prompt struct {
	Text string `json:"text"`
	Kind string `json:"kind"` // password, line or screen
}

// MaxStdin is how much of a Run.Stdin the daemon takes: a request is bounded.
const MaxStdin = 8 << 20

// Run asks for a command in a session. It is answered with the Command at once.
type Run struct {
	Text  string            `json:"command"`
	Cwd   string            `json:"cwd,omitempty"`
	Env   map[string]string `json:"env,omitempty"`
	Stdin []byte            `json:"stdin_base64,omitempty"`
	TTY   bool              `json:"tty,omitempty"`
	// Echo gives a TTY command the modes that a person expects.
	Echo  bool `json:"echo,omitempty"`
	Merge bool `json:"merge,omitempty"`
	// Cols and Rows are the size that the session's terminal gets with it; 0: it stays.
	Cols int `json:"cols,omitempty"`
	Rows int `json:"rows,omitempty"`
	// Timeout ends it that long after its start, Idle after a silence.
	Timeout Duration `json:"timeout_ms,omitempty"`
	Idle    Duration `json:"idle_ms,omitempty"`
	// Attachment lets the holder of one run commands while others can't.
	Attachment string `json:"attachment,omitempty"`
	// Client is the id of a Presence: once the one that the session was opened with is
	// gone, it goes on as this one's.
	Client string `json:"client,omitempty"`
	// Wait has the answer come when the command is over or waits for input, or
	// after that long. 0: at once.
	Wait Duration `json:"wait_ms,omitempty"`
	// Limit is how many bytes of each stream a result comes with; 0: 1 MiB.
	Limit int `json:"limit,omitempty"`
}

// Input is typed to the command that runs: Text, Data or Keys.
type Input struct {
	Text  string   `json:"text,omitempty"`
	Enter bool     `json:"enter,omitempty"`       // a newline behind Text
	Data  []byte   `json:"data_base64,omitempty"` // as they are, for a terminal's keys
	Keys  []string `json:"keys,omitempty"`
	// Secret: the text is to be in no output and in no file.
	Secret     bool   `json:"secret,omitempty"`
	Attachment string `json:"attachment,omitempty"`
	// Command is the one that is meant: no other is typed to. Empty: what runs.
	Command string `json:"id,omitempty"`
}

// End is the level of an Interrupt that does not ask: the command is ended as at its
// deadline, with its shell if need be.
const End = "end"

// Interrupt asks the command that runs to end.
type Interrupt struct {
	Level   string `json:"level"`        // int, term, kill or End
	Command string `json:"id,omitempty"` // the one that is meant; empty: what runs
	// Attachment is the caller's, if any. With a scope, others are refused.
	Attachment string `json:"attachment,omitempty"`
}

// What Wait may wait for.
const (
	UntilExit   = "exit"   // the command that runs has ended
	UntilPrompt = "prompt" // it waits for input
	UntilMatch  = "match"  // its output matches
	UntilIdle   = "idle"   // nothing has come for a while
)

// Wait waits for something to happen in a session, or to the end of Max.
type Wait struct {
	Until string   `json:"until"`
	Match string   `json:"match,omitempty"` // RE2
	Idle  Duration `json:"idle_ms,omitempty"`
	Max   Duration `json:"wait_ms"`
	// Command is what is waited for; empty: what runs, or ran last.
	Command string `json:"id,omitempty"`
	// Since is the cursor that Match looks from. A line that is unfinished there is
	// looked at as a whole, but must match with what comes behind.
	Since int64 `json:"since,omitempty"`
	// Through: a command that waits for input does not end the wait.
	Through bool `json:"through,omitempty"`
	// Limit is how many bytes of each stream a result comes with; 0: 1 MiB.
	Limit int `json:"limit,omitempty"`
}

// Waited is what came of a Wait.
type Waited struct {
	// Met: what was waited for has happened. Whatever happened, a command that
	// ends or waits for input ends every Wait.
	Met     bool     `json:"met"`
	Session Session  `json:"session"`
	Command *Command `json:"command,omitempty"`
	// Line is what matched, and At where.
	Line string `json:"line,omitempty"`
	At   int64  `json:"at,omitempty"`
}

// Query reads output. The zero value is all of it, as much as Max allows.
type Query struct {
	Command string `json:"id,omitempty"`     // of this command only
	Stream  string `json:"stream,omitempty"` // stdout, stderr or terminal; empty: all
	Since   int64  `json:"since,omitempty"`  // a cursor
	To      int64  `json:"to,omitempty"`     // the cursor to end at; 0: all there is
	Head    int    `json:"head,omitempty"`   // bytes from the beginning
	Tail    int    `json:"tail,omitempty"`   // bytes from the end
	Grep    string `json:"grep,omitempty"`   // RE2, by line
	Context int    `json:"context,omitempty"`
	Max     int    `json:"max,omitempty"` // bytes in all; 0: 64 KiB
}

// Output is what a Query found.
type Output struct {
	Pieces []Piece `json:"pieces"`
	// Next is where to go on.
	Next int64 `json:"next"`
	// Dropped counts bytes that are not there any more. The limit of the transcript
	// took them, or Why says why they could not be kept.
	Dropped int64              `json:"dropped,omitempty"`
	Why     *gateway.JSONError `json:"why_dropped,omitempty"`
	// Omitted counts bytes that the query left out between its pieces.
	Omitted int64 `json:"omitted,omitempty"`
	// Total counts the bytes that there are of what was asked for; with Grep, those
	// of the pieces.
	Total int64 `json:"total"`
	// Matches counts the lines that Grep found, up to Next.
	Matches int `json:"matches,omitempty"`
}

// Piece is a run of bytes of one stream.
type Piece struct {
	Stream string    `json:"stream,omitempty"` // empty: of several
	At     int64     `json:"at"`
	Time   time.Time `json:"time"`
	Data   []byte    `json:"data_base64"`
	// Match: the line is one that Grep found, not its context.
	Match bool `json:"match,omitempty"`
	// Cut says where a line goes on that is too long to be given as a whole; empty:
	// it is whole.
	Cut Cut `json:"cut,omitempty"`
}

// Cut is the side of a Piece on which its line goes on.
type Cut string

// The sides of a Piece.
const (
	CutBefore Cut = "before"
	CutBehind Cut = "behind"
	CutBoth   Cut = "both"
)

// Ellipses returns what is shown before and behind the piece: where the line goes
// on, an ellipsis.
func (c Cut) Ellipses() (before, behind string) {
	if c == CutBefore || c == CutBoth {
		before = "…"
	}
	if c == CutBehind || c == CutBoth {
		behind = "…"
	}
	return before, behind
}

// Event is a line of a stream: of one session's output and commands, or of all
// sessions' lives.
type Event struct {
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
	// Event is stdout, stderr, terminal (Piece), dropped (Dropped), started,
	// waiting_input, result (Command); opened, state, reopened, exited, lost, closed
	// (Session).
	Event string `json:"event"`
	Piece *Piece `json:"piece,omitempty"`
	// Dropped counts the bytes that are not there any more, or in the stream of all
	// sessions the events; Missed the events of a session, with the same name. Why
	// says why bytes could not be kept; else a limit took them.
	Dropped int64              `json:"dropped,omitempty"`
	Missed  int                `json:"missed,omitempty"`
	Why     *gateway.JSONError `json:"why_dropped,omitempty"`
	Command *Command           `json:"command,omitempty"`
	Session *Session           `json:"session,omitempty"`
	// Next is the cursor behind this event.
	Next int64 `json:"next,omitempty"`
}
