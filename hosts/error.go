package hosts

import (
	"errors"

	"gateway/internal/document"
)

// ErrUnknown: a name that is in no inventory. Every [Error] with the code
// inventory.unknown_host wraps it.
var ErrUnknown = errors.New("unknown host")

// The error codes of the contract that this package uses.
const (
	codeInventory = "inventory.invalid"
	codeUnknown   = "inventory.unknown_host"
	codeSelector  = "selector.invalid"
	codeEmpty     = "selector.empty"
)

// Error is what is wrong with an inventory, a name or a selector. It never
// contains the text of a secret, not even of one that stands where only a
// reference is allowed.
type Error = document.Error
