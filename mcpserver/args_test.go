package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCheckArguments(t *testing.T) {
	for _, c := range []struct {
		name, in string
		refused  bool
	}{
		{"text", `{"command":"echo ä"}`, false},
		{"escapes", `{"command":"echo \u00e4\ud83d\ude00"}`, false},
		{"a replacement that is meant", `{"command":"\ufffd �"}`, false},
		{"half a pair", `{"command":"\ud83d"}`, true},
		{"the other half", `{"command":"\ude00"}`, true},
		{"half a pair beside one that is meant", `{"command":"\uFFFD\ud83d"}`, true},
		{"half a pair beside a backslash in front of a replacement", `{"command":"\\ufffd \ud83d"}`, true},
		{"no UTF-8", "{\"command\":\"\xff\"}", true},
		{"too long", `{"command":"` + strings.Repeat("x", maxArguments) + `"}`, true},
		{"no JSON", `{"\u`, false}, // others say so
		{"none", ``, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := checkArguments(json.RawMessage(c.in)); (err != nil) != c.refused {
				t.Errorf("checkArguments(%.80q) = %v", c.in, err)
			}
		})
	}
}
