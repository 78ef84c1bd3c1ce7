package hosts

import (
	"errors"
	"strconv"

	"gateway/internal/document"
	"gateway/internal/phrase"
)

// ErrUnknown: a name that is in no inventory. Every [Error] with the code
// inventory.unknown_host wraps it.
var ErrUnknown = errors.New("unknown host")

// The error codes of the contract that this package uses.
const (
	codeInventory   = "inventory.invalid"
	codeUnknown     = "inventory.unknown_host"
	codeSelector    = "selector.invalid"
	codeEmpty       = "selector.empty"
	codeInterrupted = "cmd.interrupted"
)

// Error is what is wrong with an inventory, a name or a selector. It never
// contains the text of a secret, not even of one that stands where only a
// reference is allowed.
type Error = document.Error

// brief quotes what a person wrote for an error message, where it would not be seen
// as it is.
func brief(s string) string {
	s = phrase.Brief(s, 60)
	if quoted := strconv.Quote(s); s == "" || quoted != `"`+s+`"` {
		return quoted
	}
	return s
}
