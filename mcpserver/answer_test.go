package mcpserver

import "testing"

// What only a person can do is a person's. An agent's own commands have a terminal, too,
// which is another one.
func TestAdvice(t *testing.T) {
	const person = "ask a person: "
	for hint, want := range map[string]string{
		"then run: gateway hosts trust web1":                 person + "then run: gateway hosts trust web1",
		"add it, or run it on this host alone at a terminal": person + "add it, or run it on this host alone at a terminal",
		"ask a person to run gateway session answer s-1":     "ask a person to run gateway session answer s-1",
		"type to a command with a terminal":                  "type to a command with a terminal",
		"":                                                   "",
	} {
		if got := advice(hint); got != want {
			t.Errorf("%q becomes %q, want %q", hint, got, want)
		}
	}
}
