package integration

import (
	"encoding/json"
	"regexp"
	"testing"
)

// An agent that does as the tools say sees what a program draws. A program on a
// dumb terminal draws it anywhere, or refuses to run.
func TestAgentScreen(t *testing.T) {
	a := localAgent(t, newHouse(t))
	tools, err := a.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	a.do("session_open", args{"host": "localhost", "name": "work"})
	for _, tool := range tools.Tools {
		if tool.Name != "run" && tool.Name != "exec" {
			continue
		}
		schema, err := json.Marshal(tool.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		term := regexp.MustCompile(`env TERM=([a-z0-9-]+)`).FindSubmatch(schema)
		if term == nil {
			t.Fatalf("%s does not say how to run what draws on the screen: %s", tool.Name, schema)
		}
		command := args{"command": `tput clear && tput cup 4 9 && printf "more? " && read -r x`, "tty": true, "env": args{"TERM": string(term[1])}}
		if tool.Name == "run" {
			command["session"] = "work"
		} else {
			command["host"] = "localhost"
		}
		s := a.do(tool.Name, command)
		if s.Verdict != "waiting_input" {
			t.Fatalf("%s: %s", tool.Name, s.text)
		}
		if got := a.do("sessions", args{"action": "screen", "session": s.Session}).Screen; got != "\n\n\n\n         more?" {
			t.Errorf("%s: the screen is %q", tool.Name, got)
		}
		a.do("send", args{"id": s.ID, "keys": []string{"enter"}})
	}
}
