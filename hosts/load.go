package hosts

import (
	"errors"
	"io/fs"

	"gateway/internal/document"
)

// maxFile is the largest inventory file, in bytes.
const maxFile = 8 << 20

// localhost is the name of this machine in every inventory.
const localhost = "localhost"

// Load reads the inventory files, in which each host and group is defined
// once. Groups may name hosts and groups of the other files; the defaults of a
// file are for its own hosts. Without paths it is [New].
//
// The error is an *[Error] with the code inventory.invalid, which also wraps
// what the system said about a file that could not be read.
func Load(paths ...string) (*Inventory, error) {
	b := newBuilder()
	for _, path := range paths {
		data, err := readFile(path)
		if err != nil {
			b.problems.Add(err)
			continue
		}
		b.file(path, data)
	}
	return b.inventory()
}

// Parse reads one inventory from memory. Name stands for the file in messages,
// and relative paths start at its directory.
func Parse(name string, data []byte) (*Inventory, error) {
	b := newBuilder()
	b.file(name, data)
	return b.inventory()
}

// New returns the inventory that has nothing but localhost.
func New() *Inventory {
	inv, err := newBuilder().inventory()
	if err != nil {
		panic(err) // nothing went in
	}
	return inv
}

func readFile(path string) ([]byte, *Error) {
	data, err := document.Read(path, maxFile)
	if err == nil {
		return data, nil
	}
	e := document.Unreadable(codeInventory, path, err)
	if errors.Is(err, fs.ErrNotExist) {
		e.Message = "no such file"
	}
	return nil, e
}
