package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
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

// Clients give up at 60 s: no call waits as long, whatever it asks for and has done before.
func TestWaitIsBounded(t *testing.T) {
	const limit = 55 * time.Second
	for ms, noted := range map[int]bool{1000: false, 55_000: false, 55_001: true, 3_600_000: true} {
		c := &call{begun: time.Now().Add(-10 * time.Second)}
		if longest, bound := c.longest(ms), c.bound(ms); longest > limit || bound > limit-10*time.Second || len(c.notes) > 0 != noted {
			t.Errorf("wait_ms %d: %v, %v from 10 s on, notes %q", ms, longest, bound, c.notes)
		}
	}
}
