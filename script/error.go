package script

import (
	"fmt"

	"gateway/internal/document"
	"gateway/transport"
)

// Error is what is wrong with a script. Its code is script.invalid.
type Error = document.Error

const codeInvalid = "script.invalid"

// wrong is what is wrong at a place of the file; the zero Place is all of it.
func (s *Script) wrong(at Place, hint, format string, args ...any) *Error {
	return &Error{Code: codeInvalid, File: s.File, Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// invalid is what turns out to be wrong with a script while it runs.
func invalid(hint, format string, args ...any) error {
	return &transport.Error{Code: codeInvalid, Message: "script: " + fmt.Sprintf(format, args...), Hint: hint}
}
