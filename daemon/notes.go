package daemon

import (
	"slices"

	"gateway/daemon/api"
)

// A note is something that happened at a place of the transcript, for those who
// follow it.
type note struct {
	at      int64
	event   api.Event
	command *api.Command // as it is now; its result holds no streams. nil: the session's
}

// notes are what has happened in a session, and so its last commands. Its lock guards
// them.
type notes struct {
	last      []note
	forgotten int // how many there were before these
}

// What is kept of a session in memory; the record has it all.
const (
	keptNotes = 128
	keptTexts = 1 << 20 // bytes of the commands
)

// add forgets the oldest notes: sessions may live for months, and texts have megabytes.
// A text stays in all notes of its command.
func (n *notes) add(added note) {
	n.last = append(n.last, added)
	forget, texts := 0, 0
	if len(n.last) > 2*keptNotes {
		forget = keptNotes
	}
	var newer *api.Command
	for i, note := range slices.Backward(n.last) {
		c := note.command
		if c == nil || c == newer {
			continue
		}
		if texts += len(c.Text); texts > keptTexts && newer != nil {
			forget = max(forget, i+1)
			break
		}
		newer = c
	}
	if forget > 0 {
		n.last, n.forgotten = slices.Clone(n.last[forget:]), n.forgotten+forget
	}
}

// since returns the number of the first note from a cursor on, of a command if there
// is one, counted from the session's beginning.
func (n *notes) since(at int64, c *api.Command) int {
	number := n.forgotten
	for _, note := range n.last {
		if note.at >= at && (c == nil || note.command == c) {
			break
		}
		number++
	}
	return number
}

// next returns the note of a number, or the first one that is left, and how many are
// missed in front of that; nil: it is to come.
func (n *notes) next(number int) (next *note, missed int) {
	missed = max(0, n.forgotten-number)
	if i := number + missed - n.forgotten; i < len(n.last) {
		next = &n.last[i] // never changed
	}
	return next, missed
}

// command finds one of the last commands; nil if it is none of them.
func (n *notes) command(id string) *api.Command {
	for _, note := range n.last {
		if c := note.command; c != nil && c.ID == id {
			return c
		}
	}
	return nil
}
