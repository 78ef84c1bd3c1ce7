package mcpserver

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxLine bounds a message, and is more than maxArguments: who brings too much
	// of them is told so.
	maxLine = maxBody
	// maxCalls is how many calls of a client may be unanswered. Each of them may
	// hold an answer that the client does not read.
	maxCalls = 32
	// codeFull is the error of a call beyond that: JSON-RPC 2.0, section 5.1 leaves
	// it to the server.
	codeFull = -32000
	// lastAnswers is how long calls may still be answered when a client has said all:
	// one that pipes them in reads on. Those that end give a server two seconds.
	lastAnswers = 1500 * time.Millisecond
)

// Stdio returns the transport to one client over two pipes. A line that is no
// message is answered with an error and ends nothing, and a client that does
// not read is not read from.
func Stdio(in io.ReadCloser, out io.Writer) mcp.Transport { return &stdio{in, out} }

type stdio struct {
	in  io.ReadCloser
	out io.Writer
}

// Connect implements [mcp.Transport].
func (s *stdio) Connect(ctx context.Context) (mcp.Connection, error) {
	c := &connection{
		in: s.in, out: s.out, ended: ctx.Done(), closed: make(chan struct{}),
		messages: make(chan jsonrpc.Message), calls: map[jsonrpc.ID]bool{}, answered: make(chan struct{}, 1),
	}
	go c.receive(bufio.NewReaderSize(s.in, 64<<10)) // ends with the input, or with the first line behind Close
	return c, nil
}

// A connection is one client's. It refuses a call while too many are unanswered, or one
// with its id, and reads on: what comes next may cancel one of them. The SDK's own would
// decode each message again.
type connection struct {
	in    io.Closer
	out   io.Writer
	lines sync.Mutex      // held while a line is written
	ended <-chan struct{} // the server is told to end

	messages chan jsonrpc.Message // closed behind the last one
	failed   error                // why there are no more; set before messages is closed
	closed   chan struct{}        // closed by Close
	closing  sync.Once

	mu       sync.Mutex
	calls    map[jsonrpc.ID]bool // guarded by mu: those that are unanswered
	answered chan struct{}       // has a value once one of them is not

	writing sync.Mutex // held while an answer is written
}

// SessionID implements [mcp.Connection].
func (c *connection) SessionID() string { return "" }

// Close implements [mcp.Connection]. The output is the program's.
func (c *connection) Close() (err error) {
	c.closing.Do(func() {
		err = c.in.Close()
		close(c.closed)
	})
	return err
}

// receive reads messages until there are no more.
func (c *connection) receive(in *bufio.Reader) {
	defer close(c.messages)
	for c.failed == nil {
		var line []byte
		line, c.failed = nextLine(in)
		messages, why := messagesOf(line)
		if why != nil {
			if err := c.refuse(line, why); err != nil {
				c.failed = err
			}
		}
		for _, message := range messages {
			select {
			case c.messages <- message:
			case <-c.closed:
				c.failed = io.EOF
				return
			}
		}
	}
}

// next waits for a message.
func (c *connection) next(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case message, ok := <-c.messages:
		if !ok {
			return nil, c.failed
		}
		return message, nil
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// send writes a message, unless ctx has ended.
func (c *connection) send(ctx context.Context, message jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(message)
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return err
	}
	return c.write(line)
}

// write writes the line of a message.
func (c *connection) write(line []byte) error {
	c.lines.Lock()
	defer c.lines.Unlock()
	_, err := c.out.Write(append(line, '\n'))
	return err
}

// errLong is why a line was not kept.
var errLong = fmt.Errorf("a message of more than %d MiB", maxLine>>20)

// nextLine reads a line. One that is too long comes as its beginning, which is no
// message.
func nextLine(in *bufio.Reader) (line []byte, err error) {
	for err = bufio.ErrBufferFull; errors.Is(err, bufio.ErrBufferFull); {
		var piece []byte
		piece, err = in.ReadSlice('\n')
		if len(line) <= maxLine {
			line = append(line, piece...)
		}
	}
	return line, err
}

// messagesOf returns the messages of a line; an error says why it is none. Those of a
// batch are answered one by one: protocols from 2025-06-18 on have no batches.
func messagesOf(line []byte) ([]jsonrpc.Message, error) {
	line = bytes.TrimSpace(line)
	switch {
	case len(line) == 0:
		return nil, nil
	case len(line) > maxLine:
		return nil, errLong
	case !json.Valid(line):
		return nil, errors.New("it is not JSON")
	}
	batch := []json.RawMessage{line}
	if line[0] == '[' {
		batch = nil // else it would be decoded into the line
		if err := json.Unmarshal(line, &batch); err != nil {
			return nil, err
		}
		if len(batch) == 0 {
			return nil, errors.New("an empty batch")
		}
	}
	all := make([]jsonrpc.Message, len(batch))
	for i, text := range batch {
		var err error
		if all[i], err = messageOf(text); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// messageOf says why JSON is no message, or none whose answer would have its id: the SDK
// makes a float64 of a number and an int64 of that, whatever it is.
func messageOf(text []byte) (jsonrpc.Message, error) {
	message, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		return nil, err
	}
	var call struct{ ID json.RawMessage }
	if err := json.Unmarshal(text, &call); err != nil || len(call.ID) == 0 || !strings.ContainsRune("-0123456789", rune(call.ID[0])) {
		return message, err
	}
	const exact = 1 << 53
	if id, err := strconv.ParseInt(string(call.ID), 10, 64); err != nil || id > exact || id < -exact {
		return nil, errors.New("an id is a text, or a whole number of at most 2^53")
	}
	return message, nil
}

// refuse answers a line that is no message, as JSON-RPC 2.0, section 5 has it.
func (c *connection) refuse(line []byte, why error) error {
	code, id := jsonrpc.CodeInvalidRequest, json.RawMessage("null")
	var message struct{ ID json.RawMessage }
	switch {
	case len(line) > maxLine || !json.Valid(line):
		code = jsonrpc.CodeParseError
	case json.Unmarshal(line, &message) == nil && len(message.ID) > 0 && message.ID[0] != '{' && message.ID[0] != '[':
		id = message.ID
	}
	return c.fail(id, &jsonrpc.Error{Code: int64(code), Message: fmt.Sprintf("no message: %.200s", why)})
}

// fail writes an answer whose id may be null, which the SDK leaves out.
func (c *connection) fail(id json.RawMessage, why *jsonrpc.Error) error {
	answer, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{"2.0", id, why})
	if err != nil {
		return err
	}
	return c.write(answer)
}

// Read implements [mcp.Connection].
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		message, err := c.next(ctx)
		if err != nil {
			c.finish()
		}
		r, ok := message.(*jsonrpc.Request)
		if err != nil || !ok || !r.IsCall() || c.take(r) == nil {
			return message, err
		}
		if taken, err := c.takeOrRefuse(ctx, r); taken || err != nil {
			return message, err
		}
	}
}

// finish waits for the last answers: the SDK writes none once it knows that nothing
// more is to be read.
func (c *connection) finish() {
	limit := time.After(lastAnswers)
	for c.unanswered() > 0 {
		select {
		case <-c.answered:
		case <-c.ended:
			return
		case <-limit:
			return
		}
	}
}

func (c *connection) unanswered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls)
}

// take counts a call, or says why it is refused. What is quick, as a ping, has room
// beside tools that wait.
func (c *connection) take(r *jsonrpc.Request) (why *jsonrpc.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch n := len(c.calls); {
	case c.calls[r.ID]: // the SDK would not answer it
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("a call with the id %.100s is unanswered: use another id", fmt.Sprint(r.ID.Raw()))}
	case n >= 2*maxCalls, n >= maxCalls && r.Method == "tools/call":
		return &jsonrpc.Error{Code: codeFull, Message: fmt.Sprintf("%d calls are unanswered, and no more are possible: wait for an answer, or cancel a call", n)}
	}
	c.calls[r.ID] = true
	return nil
}

// takeOrRefuse waits for the answer that is being written, since its call counts no
// more for a client that has read it, and answers the call itself if it is refused
// then. A client that does not read is not read from meanwhile.
func (c *connection) takeOrRefuse(ctx context.Context, r *jsonrpc.Request) (taken bool, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	why := c.take(r)
	switch {
	case why == nil:
		return true, nil
	case why.Code == jsonrpc.CodeInvalidRequest: // with its id it would be taken for the other call's answer
		return false, c.fail(json.RawMessage("null"), why)
	}
	return false, c.send(ctx, &jsonrpc.Response{ID: r.ID, Error: why})
}

// Write implements [mcp.Connection].
func (c *connection) Write(ctx context.Context, message jsonrpc.Message) error {
	r, ok := message.(*jsonrpc.Response)
	if !ok {
		return c.send(ctx, message)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	err := c.send(ctx, message)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, r.ID)
	select {
	case c.answered <- struct{}{}:
	default: // it has one
	}
	return err
}
