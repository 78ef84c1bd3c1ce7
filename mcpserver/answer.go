package mcpserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/internal/phrase"
	"gateway/session"
)

// answerSchema is the schema of an answer about a command.
const answerSchema = "gateway.answer/v1"

// An answer is what is said of a command, small enough to be read by a model:
// the fields of gateway.result/v1, as text and as much as was asked for, and what
// to do next. What is empty is left out, and so is what goes without saying:
// streams that are split, counts of a stream that is shown as a whole, unless some
// of the output was dropped. Session is the name. There is no transport, which the tool hosts tells, no time of
// connecting, and no spool: the tool output reads what is left out.
type answer struct {
	Schema  string `json:"schema"`
	ID      string `json:"id"`
	Host    string `json:"host"`
	User    string `json:"user,omitempty"`
	Session string `json:"session"`
	Shell   string `json:"shell,omitempty"`
	Command string `json:"command,omitempty"`

	Verdict  string `json:"verdict"`
	ExitCode *int   `json:"exit_code,omitempty"`
	Signal   string `json:"signal,omitempty"`

	Stdout      string `json:"stdout"` // also if empty: that is a result
	Stderr      string `json:"stderr,omitempty"`
	Terminal    string `json:"terminal,omitempty"`
	Streams     string `json:"streams,omitempty"` // if not split
	StdoutBytes int64  `json:"stdout_bytes,omitempty"`
	StderrBytes int64  `json:"stderr_bytes,omitempty"`
	Truncated   bool   `json:"truncated,omitempty"`
	Background  bool   `json:"background,omitempty"`

	Cwd        string     `json:"cwd,omitempty"`
	StartedAt  *time.Time `json:"started_at,omitempty"`
	DurationMS int64      `json:"duration_ms"`
	Error      *jsonError `json:"error,omitempty"`

	Prompt *api.Prompt `json:"prompt,omitempty"`
	// Met says whether what was waited for has happened, and Line what matched.
	Met  *bool  `json:"met,omitempty"`
	Line string `json:"line,omitempty"`
	// Process says what an interrupt did.
	Process string `json:"process,omitempty"`
	// Since is the cursor at which the streams begin, if not the command's
	// beginning; Cursor is where they end.
	Since  int64    `json:"since,omitempty"`
	Cursor int64    `json:"cursor"`
	Notes  []string `json:"notes,omitempty"`
	Next   string   `json:"next,omitempty"`
}

type jsonError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func newError(err error) *jsonError {
	if err == nil {
		return nil
	}
	return &jsonError{Code: gateway.Code(err), Message: plain(err.Error()), Hint: plain(advice(gateway.Hint(err)))}
}

// advice is a hint for an agent. What it says to do with the command line, or at a
// terminal, is for a person to decide: to trust a host's key, or to end the daemon.
func advice(hint string) string {
	persons := strings.Contains(hint, "gateway ") || strings.Contains(hint, "at a terminal")
	if persons && !strings.Contains(hint, "person") {
		return "ask a person: " + hint
	}
	return hint
}

// A busyError is an error with the answer of the command that is in the way.
type busyError struct {
	error
	running *answer
}

func (e busyError) Unwrap() error { return e.error }

// failure is the result of a call that could not be done.
func failure(err error) *mcp.CallToolResult {
	content := struct {
		Error   *jsonError `json:"error"`
		Running *answer    `json:"running,omitempty"`
	}{Error: newError(err)}
	if busy, ok := err.(busyError); ok { //nolint:errorlint // ours, never wrapped
		content.Running = busy.running
	}
	r := success(content)
	r.IsError = true
	return r
}

// success is the result of a call: the same JSON as text and as structure.
func success(content any) *mcp.CallToolResult {
	text, err := phrase.JSON(content)
	if err != nil {
		panic(err) // our own types
	}
	r := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text)}
	if a, ok := content.(*answer); ok {
		r.IsError = a.Verdict == string(session.NotStarted) || a.Verdict == string(session.Unknown)
	}
	return r
}

func (c *call) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// answer says what is known of a command, with what of its output has not been
// shown yet. Once its result has been shown, it is shown as a whole.
func (c *call) answer(command api.Command, s api.Session, limit int) (*answer, error) {
	p := c.shown.command(command.ID)
	p.Lock()
	defer p.Unlock()
	// Another call has seen its end meanwhile, or it comes without its result, as a
	// session's command does.
	if (p.over || command.Over()) && command.Result == nil {
		var err error
		if command, err = c.daemon.Command(c.ctx, command.ID, limit); err != nil {
			return nil, err
		}
	}
	if from := p.from(command); from != p.cursor || p.over {
		p.cursor, p.rest = from, [3][]byte{}
	}
	command.To = max(command.To, p.cursor) // another call may have come further
	a := &answer{
		Schema: answerSchema, ID: command.ID, Host: command.Host, User: s.User, Session: s.Name, Shell: s.Shell,
		Command: phrase.Brief(plain(command.Text), known), Verdict: command.State, ExitCode: command.ExitCode, Prompt: prompt(command.Prompt),
		Cursor: command.To, DurationMS: api.Since(command.StartedAt).Milliseconds(),
	}
	if p.cursor > command.From {
		a.Since = p.cursor
	}
	streams := command.Streams()
	if command.Result != nil {
		a.fill(*command.Result)
		streams = command.Result.Streams
	}
	if streams != session.Split {
		a.Streams = string(streams)
	}
	bytesOf, lost := [3]int64{}, ""
	rest := p.rest // of what is not shown
	for stream, text := range [3]*string{session.Stdout: &a.Stdout, session.Stderr: &a.Stderr, session.Terminal: &a.Terminal} {
		shown, err := c.excerpt(command, session.Stream(stream), p, limit)
		if err != nil {
			p.rest = rest
			return nil, err
		}
		*text, bytesOf[stream], lost = shown.text, shown.bytes, cmp.Or(lost, shown.lost)
		a.Truncated = a.Truncated || shown.cut
	}
	a.StdoutBytes, a.StderrBytes = bytesOf[session.Stdout], bytesOf[session.Stderr]
	p.cursor = command.To
	if r := command.Result; r != nil && gateway.Code(r.Err) != "daemon.unreachable" { // it may be heard of again
		p.over = true
	}
	a.Next = next(a, command, s, p.timeout)
	if lost != "" { // and nothing reads it: not in Next
		c.note("%s", lost)
		a.Truncated = true
	}
	a.Notes = c.notes
	return a, nil
}

// fill takes over what the result says.
func (a *answer) fill(r gateway.Result) {
	a.Signal, a.Background, a.Cwd = r.Signal, r.Background, r.Cwd
	a.StartedAt, a.DurationMS = gateway.Timestamp(r.Started), r.Duration.Milliseconds()
	a.Error = newError(r.Err)
}

// prompt returns what a command asks as it is shown: the end, where the choices are,
// since it may be all that it has drawn.
func prompt(p *api.Prompt) *api.Prompt {
	if p == nil {
		return nil
	}
	return &api.Prompt{Text: phrase.End(plain(p.Text), known), Kind: p.Kind}
}

// known is how many characters are shown of a text that the caller knows.
const known = 200

// next says in one line what can be done now.
func next(a *answer, command api.Command, s api.Session, timeout time.Duration) string {
	switch {
	case command.State == string(api.WaitingInput) && command.Prompt != nil && command.Prompt.Kind == "password":
		return fmt.Sprintf("it asks for a password, which is a person's or the inventory's: ask them to run gateway session answer %s, or interrupt it; then wait with id %[1]s", a.ID)
	case command.State == string(api.WaitingInput) && command.Prompt != nil && command.Prompt.Kind == string(session.ScreenPrompt):
		return fmt.Sprintf("it draws on the screen, and waits for keys: look with sessions (action screen), press keys with send (id %s), or interrupt it", a.ID)
	case command.State == string(api.WaitingInput):
		return fmt.Sprintf("it waits for input: answer with send (id %s), or interrupt it", a.ID)
	case !command.Over():
		text := fmt.Sprintf("still running after %.1f s", api.Since(command.StartedAt).Seconds())
		if timeout > 0 {
			text += fmt.Sprintf(", is ended at %g s (timeout_ms)", timeout.Seconds())
		}
		return text + fmt.Sprintf(": wait, output or interrupt with id %s", a.ID)
	case command.State == string(session.Unknown):
		return "nobody knows how it ended: look at the host before you run it again"
	case command.Ended && !s.Once:
		return "the session's shell has ended with it: session_open opens another"
	case a.Truncated:
		return fmt.Sprintf("the middle was left out: output with id %s and the cursor named there, or with grep", a.ID)
	}
	return ""
}
