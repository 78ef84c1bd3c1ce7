package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"gateway/internal/phrase"
	"gateway/transport"
)

const (
	defaultWait    = 10 * time.Second
	maxWait        = 55 * time.Second // clients give up at 60 s
	defaultTimeout = 2 * time.Minute
	maxTimeout     = 24 * time.Hour
	defaultOutput  = 16 << 10
	minOutput      = 256
	maxOutput      = 256 << 10
	// maxArguments bounds what a call brings: models do not write more, and a file
	// is no argument.
	maxArguments = 4 << 20
)

type hostsArgs struct {
	Select string `json:"select,omitempty" jsonschema:"which hosts: a name, glob web*, range web[01-20], group @staging, tag tag:eu; comma-separated terms; ! removes, & keeps only. Default: all that this server may touch"`
}

// commandArgs say how a command is run.
type commandArgs struct {
	Command   string            `json:"command" jsonschema:"shell text, up to 4 MiB, any number of lines; read by the session's shell"`
	Cwd       string            `json:"cwd,omitempty" jsonschema:"run it in this directory; the session's own directory stays as it is"`
	Env       map[string]string `json:"env,omitempty" jsonschema:"environment variables for this command only"`
	Stdin     string            `json:"stdin,omitempty" jsonschema:"text for its standard input; without it, standard input is at its end"`
	TTY       bool              `json:"tty,omitempty" jsonschema:"run it on a terminal: for programs that ask on standard input and REPLs. What draws on the whole screen, as editors, htop and menus do, needs env TERM=xterm-256color beside it: TERM is dumb otherwise. stderr then comes with stdout"`
	TimeoutMS int               `json:"timeout_ms,omitempty" jsonschema:"the command is ended this long after its start; the session of run survives"`
	WaitMS    int               `json:"wait_ms,omitempty" jsonschema:"answer after this long at the latest, at most 55000; the command goes on"`
	MaxOutput int               `json:"max_output,omitempty" jsonschema:"bytes of each stream in the answer; of more, head and tail are shown"`
}

type execArgs struct {
	Host string `json:"host" jsonschema:"a host's name; see hosts"`
	commandArgs
}

type runArgs struct {
	Session string `json:"session" jsonschema:"the session's name"`
	commandArgs
}

type openArgs struct {
	Host  string            `json:"host" jsonschema:"a host's name; see hosts"`
	Name  string            `json:"name,omitempty" jsonschema:"a name to call the session by; default: one is made"`
	Cwd   string            `json:"cwd,omitempty" jsonschema:"start in this directory"`
	Env   map[string]string `json:"env,omitempty" jsonschema:"environment variables of the session"`
	Shell string            `json:"shell,omitempty" jsonschema:"path or name of the shell; default: the host's setting, else bash, else sh"`
	Cols  int               `json:"cols,omitempty" jsonschema:"width of its terminal"`
	Rows  int               `json:"rows,omitempty" jsonschema:"height of its terminal"`
	Keep  bool              `json:"keep,omitempty" jsonschema:"leave it open when this client is gone; else it closes 60 s after that"`
}

// targetArgs name a session, or a command by its id.
type targetArgs struct {
	Session string `json:"session,omitempty" jsonschema:"the session's name: what runs in it, or ran last. Either session or id"`
	ID      string `json:"id,omitempty" jsonschema:"the id of a command, from an answer of exec or run. Either session or id"`
}

type sendArgs struct {
	targetArgs
	Text      string   `json:"text,omitempty" jsonschema:"text to type; a newline at its end is the Enter key. Without text and keys: only look what is new"`
	Keys      []string `json:"keys,omitempty" jsonschema:"keys to press, instead of text: enter, tab, esc, up, pgdn, f5, ctrl-c, alt-x, single characters"`
	WaitMS    int      `json:"wait_ms,omitempty" jsonschema:"answer after this long at the latest, at most 55000"`
	MaxOutput int      `json:"max_output,omitempty" jsonschema:"bytes of each stream in the answer; of more, head and tail are shown"`
}

type waitArgs struct {
	targetArgs
	Until     string `json:"until" jsonschema:"exit: it has ended. prompt: it waits for input. match: a line matches, with what of it has not been shown yet. idle: nothing came for idle_ms. Its end or a prompt ends every wait"`
	Match     string `json:"match,omitempty" jsonschema:"regular expression (RE2), for until=match"`
	IdleMS    int    `json:"idle_ms,omitempty" jsonschema:"for until=idle"`
	WaitMS    int    `json:"wait_ms,omitempty" jsonschema:"answer after this long at the latest, at most 55000"`
	MaxOutput int    `json:"max_output,omitempty" jsonschema:"bytes of each stream in the answer; of more, head and tail are shown"`
}

type outputArgs struct {
	targetArgs
	Stream  string `json:"stream,omitempty" jsonschema:"only this stream; default: all, in the order in which they came"`
	Cursor  int64  `json:"cursor,omitempty" jsonschema:"read from here on: a cursor of an earlier answer"`
	Head    int    `json:"head,omitempty" jsonschema:"that many bytes from the beginning"`
	Tail    int    `json:"tail,omitempty" jsonschema:"that many bytes from the end"`
	Grep    string `json:"grep,omitempty" jsonschema:"only lines that match this regular expression (RE2), each with its cursor; of a long line 1 KiB around the match, with … where it goes on"`
	Context int    `json:"context,omitempty" jsonschema:"with grep: lines around each match"`
}

type interruptArgs struct {
	targetArgs
	Level string `json:"level,omitempty" jsonschema:"int: what ctrl-c does. term, kill: signals to all that the command has started; kill also leaves a loop of the shell's own"`
}

type sessionsArgs struct {
	Action  string `json:"action" jsonschema:"list: the open sessions, and lost ones. close: end one, or take a lost one off the list. reset: a fresh shell in its place, with its directory and exported variables. screen: what a full-screen program shows"`
	Session string `json:"session,omitempty" jsonschema:"the session's name; not for list"`
}

// schemaOf returns the schema of a tool's arguments: what the type says, and the
// bounds that a type can't say.
func schemaOf[In any]() *jsonschema.Schema {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(err) // our own types
	}
	number := func(name string, low, high int64, otherwise any) {
		if p := schema.Properties[name]; p != nil {
			p.Minimum, p.Maximum = new(float64(low)), new(float64(high))
			if otherwise != nil {
				p.Default, _ = json.Marshal(otherwise) // a number
			}
		}
	}
	word := func(name, otherwise string, words ...any) {
		if p := schema.Properties[name]; p != nil {
			if p.Enum = words; otherwise != "" {
				p.Default, _ = json.Marshal(otherwise) // a string
			}
		}
	}
	number("timeout_ms", 1, maxTimeout.Milliseconds(), defaultTimeout.Milliseconds())
	number("wait_ms", 0, 1<<31, defaultWait.Milliseconds())
	number("idle_ms", 1, maxWait.Milliseconds(), nil)
	number("max_output", minOutput, maxOutput, nil)
	number("cols", 1, 1000, nil)
	number("rows", 1, 500, nil)
	number("cursor", 0, 1<<53, nil)
	number("head", 1, maxOutput, nil)
	number("tail", 1, maxOutput, nil)
	number("context", 0, 100, nil)
	number("offset", 0, 1<<53, nil)
	number("limit", 1, maxRead, nil)
	word("op", "", "read", "write", "list", "stat")
	word("encoding", "", "text", "base64")
	word("until", "", "exit", "prompt", "match", "idle")
	word("stream", "", "stdout", "stderr", "terminal")
	word("level", "int", "int", "term", "kill")
	word("action", "", "list", "close", "reset", "screen")
	for _, p := range schema.Properties {
		if slices.Contains(p.Types, "null") { // some clients understand one type only
			p.Type, p.Types = p.Types[len(p.Types)-1], nil
		}
	}
	return schema
}

// milliseconds is an argument as a time.
func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// usage returns the error for a call that asks for what can't be.
func usage(hint, format string, args ...any) error {
	return &transport.Error{Code: "usage", Message: fmt.Sprintf(format, args...), Hint: hint}
}

// checkArguments refuses what would reach a host changed or not at all. A JSON
// decoder puts U+FFFD where the text is broken, without a word.
func checkArguments(raw json.RawMessage) error {
	const hint = "the tool file takes base64; a person can copy large files with gateway cp"
	switch {
	case len(raw) > maxArguments:
		return usage(hint, "the arguments have %d bytes: at most %d are possible", len(raw), maxArguments)
	case !utf8.Valid(raw):
		return usage(hint, "the arguments are not valid UTF-8")
	case phrase.HalfPair(raw):
		return usage(hint, "the arguments have half a surrogate pair: that is no character")
	}
	return nil
}

// withoutNulls leaves out the arguments that are null and need not be there. Clients whose
// models have to name every argument have no other word for none.
func withoutNulls(raw json.RawMessage, schema *jsonschema.Schema) json.RawMessage {
	var given map[string]json.RawMessage
	if schema == nil || !bytes.Contains(raw, []byte("null")) || json.Unmarshal(raw, &given) != nil {
		return raw
	}
	maps.DeleteFunc(given, func(name string, value json.RawMessage) bool {
		return string(value) == "null" && schema.Properties[name] != nil && !slices.Contains(schema.Required, name)
	})
	rest, err := json.Marshal(given)
	if err != nil {
		return raw
	}
	return rest
}
