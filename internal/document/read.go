package document

import (
	"io"

	"gateway/internal/phrase"
	"gateway/internal/regular"
)

// Read reads a file, as [regular.Open] opens it, but no more than a byte beyond most:
// that tells one that is too large for [Parse] from one that just fits.
func Read(path string, most int) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(most)+1))
}

// Unreadable is the error of a file that [Read] could not read.
func Unreadable(code, path string, err error) *Error {
	return &Error{Code: code, File: path, Message: phrase.WithoutPath(err).Error(), Err: err}
}
