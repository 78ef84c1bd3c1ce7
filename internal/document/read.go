package document

import (
	"context"

	"gateway/internal/phrase"
	"gateway/internal/regular"
)

// Read reads a file, as [regular.Read] does, but no more than a byte beyond most:
// that tells one that is too large for [Parse] from one that just fits.
func Read(path string, most int) ([]byte, error) {
	return regular.Read(context.Background(), path, int64(most)+1)
}

// Unreadable is the error of a file that [Read] could not read.
func Unreadable(code, path string, err error) *Error {
	return &Error{Code: code, File: path, Message: phrase.WithoutPath(err).Error(), Err: err}
}
