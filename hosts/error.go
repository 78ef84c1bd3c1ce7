package hosts

import (
	"errors"
	"fmt"

	"gateway/internal/document"
)

// ErrUnknown: a name that is in no inventory. Every [Error] with the code
// inventory.unknown_host matches it with errors.Is.
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
type Error struct {
	// Code is one of the contract's error codes.
	Code string
	// File and Line say where; both are zero for a name or a selector, and for
	// an Error that stands for several.
	File string
	Line int
	// Message is what is wrong, in lower case. Of several errors it has a line
	// each.
	Message string
	// Hint says what a person can do about it. It may be empty.
	Hint string
	// Err is the cause: that of reading a file, or the *Error values joined
	// where this one stands for several.
	Err error
}

// Error implements error: the place, if there is one, and the message.
func (e *Error) Error() string {
	switch {
	case e.File == "":
		return e.Message
	case e.Line == 0:
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorCode returns the error code of the contract.
func (e *Error) ErrorCode() string { return e.Code }

// ErrorHint returns the remedy, or the empty string.
func (e *Error) ErrorHint() string { return e.Hint }

// Is reports whether target is [ErrUnknown] and this is an unknown host.
func (e *Error) Is(target error) bool {
	return target == ErrUnknown && e.Code == codeUnknown
}

// problems collects what is wrong with an inventory.
type problems struct{ document.Problems[*Error] }

func (p *problems) err() error {
	return p.Err(func(message string, all error) error {
		return &Error{Code: codeInventory, Message: message, Err: all}
	})
}
