package document

import "fmt"

// An Error is what is wrong with a file, or with what a person named.
type Error struct {
	// Code is one of the contract's error codes.
	Code string
	// File, Line and Column say where. Each may be zero: for a name or a variable,
	// for a file as a whole, for an Error that stands for several.
	File         string
	Line, Column int
	// Message is what is wrong, in lower case. Of several errors it has a line
	// each.
	Message string
	// Hint says what a person can do about it. It may be empty.
	Hint string
	// Err is the cause: what the system or the YAML parser said, or the *Error
	// values joined where this one stands for several.
	Err error
}

// Error implements error: the place, if there is one, and the message.
func (e *Error) Error() string {
	switch {
	case e.File == "":
		return e.Message
	case e.Line == 0:
		return e.File + ": " + e.Message
	case e.Column == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorCode returns the error code of the contract.
func (e *Error) ErrorCode() string { return e.Code }

// ErrorHint returns the remedy, or the empty string.
func (e *Error) ErrorHint() string { return e.Hint }
