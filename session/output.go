package session

import "io"

// A Spool takes the whole of a stream that is longer than a Result keeps.
type Spool interface {
	io.WriteCloser
	// Name returns the path of the file, or the empty string when it turned out
	// that it does not hold the whole stream.
	Name() string
}
