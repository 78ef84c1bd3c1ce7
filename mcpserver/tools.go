package mcpserver

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const instructions = `Runs commands on remote hosts in shells that stay: open a session with session_open, then run commands in it; directory, exported and plain variables, functions and background jobs are there for the next command, also after a timeout or an interrupt. exec runs one command in a shell of its own that is gone afterwards.

No call blocks longer than wait_ms (10 s unless you say otherwise, 55 s at most): then it answers verdict "running" with an id, and the command goes on. Follow it with wait (cheaper than polling), send with nothing to send (what is new), output (any part of its output, by cursor or grep), interrupt. Every answer has only what is new since the one before; the whole output can be read with output at any time.

A non-zero exit_code is a result, not an error of the tool. Verdict "unknown" means that the link or the daemon was lost: the command may have run, look before you repeat it. "waiting_input" means that it asks something: answer with send, unless it wants a password. Passwords are given by a person (gateway session answer NAME) or by the inventory, never by you. Standard input is at its end unless you give stdin; programs that ask on it need tty: true.

Hosts, keys and passwords are set by a person. There is no way to change them from here, nor to accept a host key: tell the person what the error says. "next" in an answer says what can be done now.`

// addTools adds the tools of the contract.
func (s *Server) addTools() {
	add(s, "hosts", "List hosts", reads,
		`List the hosts that can be used here: name, groups, tags, address; of more than 100 the names of the others. Start here when you do not know a host's name.`,
		(*call).hosts)
	add(s, "exec", "Run one command on a host", changes,
		`Run one command on a host, in a fresh shell that is gone afterwards: nothing persists but what it did to the host, and its background jobs lose their terminal. For several commands that belong together use session_open and run. If it takes longer than wait_ms the answer is "running" with its id, for wait, send, output and interrupt. At timeout_ms it is ended. Long output is cut in the middle; output with its id gives the rest.`,
		(*call).exec)
	add(s, "session_open", "Open a session", adds,
		`Open a shell on a host that stays: between commands it keeps its directory, variables (exported or not), functions, options and background jobs. It survives timeouts and interrupts, and ends with close, with exit, after some hours of idleness, or 60 s after this client is gone unless keep is true. A person can see it and take it over.`,
		(*call).open)
	add(s, "run", "Run a command in a session", changes,
		`Run a command in a session. What it does to the shell stays: cd, export, functions, background jobs; exit ends the session. One command at a time: while one runs, another is refused and not run. If it takes longer than wait_ms the answer is "running" with what is there so far, or "waiting_input" if it asks something. At timeout_ms it is ended, the session stays. Long output is cut in the middle; output with its id gives the rest. stdout and stderr are apart unless tty is true.`,
		(*call).run)
	add(s, "send", "Type to a running command", changes,
		`Type text or press keys for the command that runs: one that waits for input or has a terminal (tty: true). Answers with what came since the last answer, when the command has ended, asks again, or has said something and fell silent. With neither text nor keys it only polls for wait_ms. A newline at the end of text is the Enter key. Passwords are refused: they are a person's.`,
		(*call).send)
	add(s, "wait", "Wait for a command", reads,
		`Wait until a command has ended, asks something, has printed a line that matches, or is silent; at most wait_ms. One wait is cheaper than many polls. Answers with the result, or with "running" and what is new. After the end it can be asked again, for the whole result.`,
		(*call).wait)
	add(s, "output", "Read output", reads,
		`Read the output of a command (id) or of all that ran in a session, also after its end: from a cursor on, its head, its tail, or the lines that match. Answers with text, the cursor to go on with, and counts. ANSI sequences are removed and progress lines shown in their last state.`,
		(*call).output)
	add(s, "interrupt", "Interrupt a command", destroys,
		`End the command that runs, as ctrl-c does, or with a signal to all that it has started. Answers with what it has said so far and what became of it. The session and its state stay. Start with int; what ignores it needs term, then kill.`,
		(*call).interrupt)
	add(s, "sessions", "Manage sessions", destroys,
		`List the open and the lost sessions (host, state, directory, age, what runs), close one, reset one (what runs is ended; a fresh shell with its directory and exported variables), or show the screen of a full-screen program.`,
		(*call).sessions)
	add(s, "file", "Read and write files", changes,
		`Read, write, list or look at files of a host, exactly and without a shell. read answers with text, or base64 where the bytes are no UTF-8 text (encoding says which), with the file's size and next_offset where there is more. write replaces a whole file or makes it, at one stroke: others see the old content or the new one, nothing in between; permissions stay, the owner becomes the account; its directory must be there; a symlink is followed. list is sorted by name. The inventory may confine paths: file.denied. Large files and trees are a person's, with gateway cp.`,
		(*call).file)
}

// The kinds of tools, as hints for clients that ask a person.
var (
	reads    = mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(false)}
	adds     = mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(true)}
	changes  = mcp.ToolAnnotations{DestructiveHint: new(true), OpenWorldHint: new(true)}
	destroys = mcp.ToolAnnotations{DestructiveHint: new(true), OpenWorldHint: new(false)}
)

// A call is one call of a tool.
type call struct {
	*Server
	ctx   context.Context
	req   *mcp.CallToolRequest
	begun time.Time
	notes []string // for the answer
}

// add adds a tool.
func add[In any](s *Server, name, title string, hints mcp.ToolAnnotations, description string, handle func(*call, In) (any, error)) {
	schema := schemaOf[In]()
	s.schemas[name] = schema
	hints.Title = title
	tool := &mcp.Tool{Name: name, Title: title, Description: description, Annotations: &hints, InputSchema: schema}
	mcp.AddTool(s.mcp, tool, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		c := &call{Server: s, ctx: ctx, req: req, begun: time.Now()}
		answer, err := handle(c, in)
		if err != nil {
			return failure(err), nil, nil
		}
		return success(answer), nil, nil
	})
}

// longest returns how long a call may wait at the most, and notes where that is
// less than what was asked for.
func (c *call) longest(ms int) time.Duration {
	asked := milliseconds(ms)
	if asked > maxWait {
		c.note("wait_ms %d is more than the limit of %d, which counted", ms, maxWait.Milliseconds())
	}
	return min(asked, maxWait)
}

// bound returns how long a call may wait from now on.
func (c *call) bound(ms int) time.Duration {
	return max(c.longest(ms)-time.Since(c.begun), time.Millisecond)
}

// progress tells a client that wants to know that the call still waits. The
// returned function ends it.
func (c *call) progress(id string, limit time.Duration) (done func()) {
	token := c.req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(c.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			// A client that does not read it gets the answer all the same.
			_ = c.req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: time.Since(c.begun).Seconds(), Total: limit.Seconds(), Message: c.saying(ctx, id),
			})
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
