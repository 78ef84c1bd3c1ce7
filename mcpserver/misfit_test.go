package mcpserver_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What is wrong with a call is said in the words of the tool.
func TestMisfit(t *testing.T) {
	const (
		exec = "exec takes host, command, cwd, env, stdin, tty, timeout_ms, wait_ms, max_output"
		late = "the command is ended this long after its start; the session of run survives"
	)
	agent := agentOn(t, http.NewServeMux())
	for _, c := range []struct{ name, tool, arguments, message, hint string }{
		{"not an object", "exec", `"web1"`, "the arguments of exec are not a JSON object", exec},
		{"none", "exec", ``, "exec needs host", exec},
		{"none but null", "exec", `null`, "exec needs host", exec},
		{"one is missing", "exec", `{"host":"web1"}`, "exec needs command", exec},
		{"unknown", "exec", `{"host":"web1","comand":"id"}`, `exec has no argument "comand"`, "did you mean command? " + exec},
		{"too small", "exec", `{"host":"web1","command":"id","timeout_ms":0}`, "timeout_ms is 0: use a whole number from 1 to 86400000", late},
		{"too large", "exec", `{"host":"web1","command":"id","timeout_ms":1e12}`, "timeout_ms is 1000000000000: use a whole number from 1 to 86400000", late},
		{"not a whole number", "exec", `{"host":"web1","command":"id","timeout_ms":1.5}`, "timeout_ms is 1.5: use a whole number from 1 to 86400000", late},
		{"not a number", "exec", `{"host":"web1","command":"id","timeout_ms":"10s"}`, `timeout_ms is "10s": use a whole number from 1 to 86400000`, late},
		{"null", "exec", `{"host":null,"command":"id"}`, "host is null: use a string", "a host's name; see hosts"},
		{"not a truth", "exec", `{"host":"web1","command":"id","tty":"yes"}`, `tty is "yes": use true or false`, "run it on a terminal: for programs that ask on standard input and REPLs. What draws on the whole screen, as editors, htop and menus do, needs env TERM=xterm-256color beside it: TERM is dumb otherwise. stderr then comes with stdout"},
		{"variables that are numbers", "exec", `{"host":"web1","command":"id","env":{"A":1}}`, `env is {"A":1}: use an object whose values are strings`, "environment variables for this command only"},
		{"not a list", "send", `{"id":"s-1.1","keys":"enter"}`, `keys is "enter": use a list of strings`, "keys to press, instead of text: enter, tab, esc, up, pgdn, f5, ctrl-c, alt-x, single characters"},
		{"none of the words", "interrupt", `{"id":"s-1.1","level":"hup"}`, `level is "hup": use int, term or kill`, "int: what ctrl-c does. term, kill: signals to all that the command has started; kill also leaves a loop of the shell's own"},
		{"null for what may be left out", "wait", `{"session":null,"id":"s-1.1","until":"match","match":null,"idle_ms":null,"wait_ms":null}`, "until=match needs match, a regular expression", ""},
		{"null for what is unknown", "exec", `{"host":"web1","command":"id","comand":null}`, `exec has no argument "comand"`, "did you mean command? " + exec},
		{"null for a variable", "exec", `{"host":"web1","command":"id","cwd":null,"env":{"A":null}}`, `env is {"A":null}: use an object whose values are strings`, "environment variables for this command only"},
		{"match without a pattern", "wait", `{"id":"s-1.1","until":"match"}`, "until=match needs match, a regular expression", ""},
		{"a pattern without match", "wait", `{"id":"s-1.1","until":"exit","match":"x"}`, "match goes with until=match", ""},
		{"idle without a time", "wait", `{"id":"s-1.1","until":"idle"}`, "until=idle needs idle_ms", ""},
		{"a time without idle", "wait", `{"id":"s-1.1","until":"exit","idle_ms":5}`, "idle_ms goes with until=idle", ""},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, agent, c.tool, c.arguments, "usage", c.message, c.hint) })
	}
}

// A hint names what an agent has: not the command line, and no other host.
func TestSelectHint(t *testing.T) {
	agent := agentOn(t, http.NewServeMux())
	const all = "hosts without select lists those that can be used"
	for _, c := range []struct{ selector, code, message, hint string }{
		{"nope*", "selector.empty", "pattern nope* matches no host", all},
		{"elsewhere", "inventory.unknown_host", "unknown host elsewhere", all},
		{"web2", "inventory.unknown_host", "unknown host web2", "did you mean web1?"},
		{"hidden2", "inventory.unknown_host", "unknown host hidden2", all},
		{"@hidden1", "selector.invalid", "no group @hidden1", all},
		{"tag:hiden", "selector.empty", "tag:hiden matches no host", all},
	} {
		refused(t, agent, "hosts", `{"select":"`+c.selector+`"}`, c.code, c.message, c.hint)
	}
}

// refused wants a call to end with an error.
func refused(t *testing.T, agent *mcp.ClientSession, tool, arguments, code, message, hint string) {
	t.Helper()
	var sent any
	if arguments != "" {
		sent = json.RawMessage(arguments)
	}
	text, failed := answered(t, agent, tool, sent)
	var said struct {
		Error struct{ Code, Message, Hint string }
	}
	if err := json.Unmarshal([]byte(text), &said); err != nil || !failed || said.Error.Code != code || said.Error.Message != message || said.Error.Hint != hint {
		t.Errorf("%s %s = %s, want %s: %q, hint %q", tool, arguments, text, code, message, hint)
	}
}
