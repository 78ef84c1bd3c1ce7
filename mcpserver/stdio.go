package mcpserver

import (
	"bufio"
	"bytes"
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
	out := &wholeWriter{out: s.out}
	in := &lines{Closer: s.in, in: bufio.NewReaderSize(s.in, 64<<10), out: out}
	connection, err := (&mcp.IOTransport{Reader: in, Writer: out, MaxLineLength: -1}).Connect(ctx)
	return &bounded{Connection: connection, out: out, ended: ctx.Done(), calls: map[jsonrpc.ID]bool{}, answered: make(chan struct{}, 1)}, err
}

// A wholeWriter writes lines of several writers one after the other.
type wholeWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// Close implements [io.Closer]. The pipe is the program's.
func (w *wholeWriter) Close() error { return nil }

func (w *wholeWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(b)
}

// lines passes on the lines that are messages.
type lines struct {
	io.Closer
	in   *bufio.Reader
	out  io.Writer
	rest []byte // of what is being passed on
}

// Read implements [io.Reader].
func (l *lines) Read(b []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.next()
		passed, why := messages(line)
		if why != nil {
			if err := l.refuse(line, why); err != nil {
				return 0, err
			}
			passed = nil
		}
		if l.rest = passed; err != nil && len(l.rest) == 0 {
			return 0, err
		}
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// errLong is why a line was not kept.
var errLong = fmt.Errorf("a message of more than %d MiB", maxLine>>20)

// next reads a line. One that is too long comes as its beginning, which is no
// message.
func (l *lines) next() (line []byte, err error) {
	for err = bufio.ErrBufferFull; errors.Is(err, bufio.ErrBufferFull); {
		var piece []byte
		piece, err = l.in.ReadSlice('\n')
		if len(line) <= maxLine {
			line = append(line, piece...)
		}
	}
	return line, err
}

// messages returns what is passed on of a line; an error says why it is no
// message. Those of a batch are passed on one by one, and so answered: protocols
// from 2025-06-18 on have no batches, and the SDK loses the answer of one in which
// a notification stands.
func messages(line []byte) ([]byte, error) {
	line = bytes.TrimSpace(line)
	switch {
	case len(line) == 0:
		return nil, nil
	case len(line) > maxLine:
		return nil, errLong
	case !json.Valid(line):
		return nil, errors.New("it is not JSON")
	case line[0] != '[':
		return append(line, '\n'), check(line)
	}
	var batch []json.RawMessage
	if err := json.Unmarshal(line, &batch); err != nil {
		return nil, err
	}
	if len(batch) == 0 {
		return nil, errors.New("an empty batch")
	}
	var all []byte
	for _, message := range batch {
		if err := check(message); err != nil {
			return nil, err
		}
		all = append(append(all, message...), '\n')
	}
	return all, nil
}

// check says why JSON is no message, or none whose answer would have its id: the SDK
// makes a float64 of a number and an int64 of that, whatever it is.
func check(message []byte) error {
	if _, err := jsonrpc.DecodeMessage(message); err != nil {
		return err
	}
	var call struct{ ID json.RawMessage }
	if err := json.Unmarshal(message, &call); err != nil || len(call.ID) == 0 || !strings.ContainsRune("-0123456789", rune(call.ID[0])) {
		return err
	}
	const exact = 1 << 53
	if id, err := strconv.ParseInt(string(call.ID), 10, 64); err != nil || id > exact || id < -exact {
		return errors.New("an id is a text, or a whole number of at most 2^53")
	}
	return nil
}

// refuse answers a line that is no message, as JSON-RPC 2.0, section 5 has it.
func (l *lines) refuse(line []byte, why error) error {
	code, id := jsonrpc.CodeInvalidRequest, json.RawMessage("null")
	var message struct{ ID json.RawMessage }
	switch {
	case len(line) > maxLine || !json.Valid(line):
		code = jsonrpc.CodeParseError
	case json.Unmarshal(line, &message) == nil && len(message.ID) > 0 && message.ID[0] != '{' && message.ID[0] != '[':
		id = message.ID
	}
	return writeFailure(l.out, id, &jsonrpc.Error{Code: int64(code), Message: fmt.Sprintf("no message: %.200s", why)})
}

// writeFailure writes an answer whose id may be null, which the SDK leaves out.
func writeFailure(out io.Writer, id json.RawMessage, why *jsonrpc.Error) error {
	answer, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{"2.0", id, why})
	if err == nil {
		_, err = out.Write(append(answer, '\n'))
	}
	return err
}

// bounded refuses a call while too many are unanswered, or one with its id, and reads
// on: what comes next may cancel one of them.
type bounded struct {
	mcp.Connection
	out   io.Writer       // beside the connection
	ended <-chan struct{} // the server is told to end

	mu       sync.Mutex
	calls    map[jsonrpc.ID]bool // guarded by mu: those that are unanswered
	answered chan struct{}       // has a value once one of them is not

	writing sync.Mutex // held while an answer is written
}

// Read implements [mcp.Connection].
func (b *bounded) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		message, err := b.Connection.Read(ctx)
		if err != nil {
			b.finish()
		}
		r, ok := message.(*jsonrpc.Request)
		if err != nil || !ok || !r.IsCall() || b.take(r) == nil {
			return message, err
		}
		if taken, err := b.takeOrRefuse(ctx, r); taken || err != nil {
			return message, err
		}
	}
}

// finish waits for the last answers: the SDK writes none once it knows that nothing
// more is to be read.
func (b *bounded) finish() {
	limit := time.After(lastAnswers)
	for b.unanswered() > 0 {
		select {
		case <-b.answered:
		case <-b.ended:
			return
		case <-limit:
			return
		}
	}
}

func (b *bounded) unanswered() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.calls)
}

// take counts a call, or says why it is refused. What is quick, as a ping, has room
// beside tools that wait.
func (b *bounded) take(r *jsonrpc.Request) (why *jsonrpc.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch n := len(b.calls); {
	case b.calls[r.ID]: // the SDK would not answer it
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("a call with the id %.100s is unanswered: use another id", fmt.Sprint(r.ID.Raw()))}
	case n >= 2*maxCalls, n >= maxCalls && r.Method == "tools/call":
		return &jsonrpc.Error{Code: codeFull, Message: fmt.Sprintf("%d calls are unanswered, and no more are possible: wait for an answer, or cancel a call", n)}
	}
	b.calls[r.ID] = true
	return nil
}

// takeOrRefuse waits for the answer that is being written, since its call counts no
// more for a client that has read it, and answers the call itself if it is refused
// then. A client that does not read is not read from meanwhile.
func (b *bounded) takeOrRefuse(ctx context.Context, r *jsonrpc.Request) (taken bool, err error) {
	b.writing.Lock()
	defer b.writing.Unlock()
	why := b.take(r)
	switch {
	case why == nil:
		return true, nil
	case why.Code == jsonrpc.CodeInvalidRequest: // with its id it would be taken for the other call's answer
		return false, writeFailure(b.out, json.RawMessage("null"), why)
	}
	return false, b.Connection.Write(ctx, &jsonrpc.Response{ID: r.ID, Error: why})
}

// Write implements [mcp.Connection].
func (b *bounded) Write(ctx context.Context, message jsonrpc.Message) error {
	r, ok := message.(*jsonrpc.Response)
	if !ok {
		return b.Connection.Write(ctx, message)
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	err := b.Connection.Write(ctx, message)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.calls, r.ID)
	select {
	case b.answered <- struct{}{}:
	default: // it has one
	}
	return err
}
