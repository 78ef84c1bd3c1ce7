package document

import (
	"errors"
	"io"
	"io/fs"

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
	e := &Error{Code: code, File: path, Message: err.Error(), Err: err}
	// PathError repeats the path, which is in front already.
	if pathErr := new(fs.PathError); errors.As(err, &pathErr) {
		e.Message = pathErr.Err.Error()
	}
	return e
}
