package main

import (
	"io"
	"os"
)

// An overflow keeps bytes behind each other: the first in memory, and those for
// which there is no room in a file without a name, which ends with the process.
type overflow struct {
	room int    // how many bytes stay in memory
	name string // what the file is for

	head []byte
	file *os.File // what is behind head; nil: nothing was yet
	size int64
}

// add puts b behind what is there. After an error a part of it may be.
func (o *overflow) add(b []byte) error {
	if room := o.room - len(o.head); o.size == int64(len(o.head)) && room > 0 {
		n := min(room, len(b))
		o.head, b = append(o.head, b[:n]...), b[n:]
		o.size += int64(n)
	}
	if len(b) == 0 {
		return nil
	}
	if o.file == nil {
		file, err := os.CreateTemp("", "gateway-"+o.name+"-*") // 0600
		if err != nil {
			return err
		}
		os.Remove(file.Name())
		o.file = file
	}
	n, err := o.file.WriteAt(b, o.size-int64(len(o.head)))
	o.size += int64(n)
	return err
}

// ReadAt implements [io.ReaderAt].
func (o *overflow) ReadAt(p []byte, at int64) (n int, err error) {
	if at < int64(len(o.head)) {
		n = copy(p, o.head[at:])
	}
	switch {
	case n == len(p):
		return n, nil
	case o.file == nil:
		return n, io.EOF
	}
	rest, err := o.file.ReadAt(p[n:], at+int64(n)-int64(len(o.head)))
	return n + rest, err
}

// empty gives room and disk free.
func (o *overflow) empty() {
	o.head, o.size = nil, 0
	if o.file != nil {
		_ = o.file.Truncate(0) // what is there will be written over
	}
}
