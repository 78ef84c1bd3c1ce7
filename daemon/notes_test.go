package daemon

import (
	"fmt"
	"strings"
	"testing"

	"gateway/daemon/api"
)

// What happened last in a session is remembered, and as much of it as a session that
// lives for months has room for. A text goes with all that was noted of its command.
func TestNotesAreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		commands, text, asks, known int
	}{
		"few":            {3, 10, 1, 3},
		"many":           {1000, 10, 0, 104},
		"long ones":      {20, keptTexts / 4, 2, 4},
		"too long":       {3, 2 * keptTexts, 1, 1},
		"asks for ever":  {2, 10, 1000, 1},
		"long, and asks": {2, 2 * keptTexts, 1000, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var n notes
			var last *api.Command
			at := int64(0)
			for i := range test.commands {
				last = &api.Command{ID: fmt.Sprint(i), Text: strings.Repeat("x", test.text)}
				for range 2 + test.asks {
					n.add(note{at: at, command: last})
					at++
				}
				if n.command(last.ID) != last {
					t.Fatal("the one that runs is forgotten")
				}
			}
			known := map[*api.Command]bool{}
			for _, note := range n.last {
				known[note.command] = true
			}
			if len(known) != test.known || len(n.last) > 2*keptNotes || n.forgotten+len(n.last) != int(at) {
				t.Errorf("%d commands are known by %d notes behind %d, want %d", len(known), len(n.last), n.forgotten, test.known)
			}
			next, missed := n.next(0)
			if missed != n.forgotten || next == nil || next.at != int64(n.forgotten) {
				t.Errorf("from the beginning: %+v, %d missed", next, missed)
			}
			if next, missed := n.next(int(at)); next != nil || missed != 0 {
				t.Errorf("from the end: %+v, %d missed", next, missed)
			}
			if number := n.since(0, last); n.last[number-n.forgotten].command != last {
				t.Errorf("the last command from note %d", number)
			}
			if number := n.since(at, nil); number != int(at) {
				t.Errorf("from the end on: note %d of %d", number, at)
			}
		})
	}
}
