package config

import (
	"fmt"
)

// Error is what is wrong with a setting. Its code is config.invalid.
type Error struct {
	// File and Line say where; zero for the environment.
	File string
	Line int
	// Message is what is wrong, in lower case.
	Message string
	// Hint says what a person can do about it. It may be empty.
	Hint string
	// Err is the cause, if the system or the YAML parser said something.
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
func (e *Error) ErrorCode() string { return "config.invalid" }

// ErrorHint returns the remedy, or the empty string.
func (e *Error) ErrorHint() string { return e.Hint }
