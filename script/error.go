package script

import (
	"fmt"

	"gateway/internal/document"
)

// Error is what is wrong with a script. Its code is script.invalid.
type Error struct {
	File string
	// Line and Column say where; zero for an Error that stands for several, and
	// for the whole file.
	Line, Column int
	// Message is what is wrong, in lower case. Of several errors it has a line
	// each.
	Message string
	// Hint says what a person can do about it. It may be empty.
	Hint string
	// Err is the cause: that of reading the file, or the *Error values joined
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
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorCode returns the error code of the contract.
func (e *Error) ErrorCode() string { return "script.invalid" }

// ErrorHint returns the remedy, or the empty string.
func (e *Error) ErrorHint() string { return e.Hint }

// problems collects what is wrong with a script.
type problems struct{ document.Problems[*Error] }

func (p *problems) err() error {
	return p.Err(func(message string, all error) error { return &Error{Message: message, Err: all} })
}
