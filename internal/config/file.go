package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"

	"gateway/hosts"
	"gateway/internal/document"
)

// maxFile is the largest configuration file, in bytes.
const maxFile = 1 << 20

// A File is one place where settings may be.
type File struct {
	Path string
	// Origin says why this file: "--config", "GATEWAY_CONFIG", "user", "system".
	Origin string
	// Named: a person asked for it, so it has to be there.
	Named bool
}

// Exists reports whether the file is there, or it can't be told.
func (f File) Exists() bool {
	_, err := os.Stat(f.Path)
	return !absent(err)
}

// absent reports whether a file is not there. ENOTDIR: /dev/null is the home of some
// accounts.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// Files lists the files that are read, the stronger one first. None of them is
// in the current directory unless it was asked for: a clone of somebody's
// repository must not be able to configure anything.
func (s Source) Files() []File {
	var files []File
	if named := s.named(); named.Path != "" {
		files = append(files, named)
	} else if dir := s.userDir(); dir != "" {
		files = append(files, File{Path: filepath.Join(dir, "gateway", "config.yaml"), Origin: "user"})
	}
	system := s.System
	if system == "" {
		system = "/etc/gateway/config.yaml"
	}
	return append(files, File{Path: system, Origin: "system"})
}

func (s Source) named() File {
	if s.Flags != nil {
		if f := s.Flags.Lookup("config"); f != nil && f.Changed {
			return File{Path: expand(f.Value.String(), "", s.home()), Origin: "--config", Named: true}
		}
	}
	name := Prefix + "CONFIG"
	return File{Path: expand(s.getenv(name), "", s.home()), Origin: name, Named: true}
}

// userDir returns where a user's configuration is. A relative path is invalid
// there by the XDG specification, and would mean the current directory.
func (s Source) userDir() string {
	if dir := s.getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if home := s.home(); filepath.IsAbs(home) {
		return filepath.Join(home, ".config")
	}
	return ""
}

func (s Source) home() string { return s.getenv("HOME") }

func (s Source) getenv(name string) string {
	for _, entry := range slices.Backward(s.Environ) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// values implements koanf.Provider for a file that has been read.
type values map[string]any

// Read implements koanf.Provider.
func (v values) Read() (map[string]any, error) { return v, nil }

// ReadBytes implements koanf.Provider.
func (v values) ReadBytes() ([]byte, error) { return nil, errors.ErrUnsupported }

// readFile reads and checks one file, and returns its values with their lines.
// koanf would report neither the line nor the key, so it gets what was checked.
func readFile(file File, home string) (values, map[string]int, error) {
	data, err := document.Read(file.Path, maxFile)
	if len(data) > maxFile {
		err = fmt.Errorf("larger than %d MiB", maxFile>>20)
	}
	switch {
	case absent(err) && !file.Named:
		return nil, nil, nil
	case err != nil:
		return nil, nil, unreadable(file, err)
	}
	root, wrong := document.Parse(CodeInvalid, file.Path, data, maxFile)
	switch {
	case wrong != nil:
		wrong.Column = 0 // as of all that is wrong with a setting
		return nil, nil, wrong
	case root == nil || root.ShortTag() == "!!null":
		return nil, nil, nil
	}
	var problems document.Problems
	wrongAt := func(n *yaml.Node, hint, format string, args ...any) {
		problems.Add(&Error{Code: CodeInvalid, File: file.Path, Line: n.Line, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	if root.Kind != yaml.MappingNode {
		wrongAt(root, "see config.example.yaml", "must be a mapping of keys to values")
		return nil, nil, problems.Err()
	}
	found, lines := make(values), make(map[string]int)
	for pair := range slices.Chunk(root.Content, 2) {
		name := pair[0].Value
		k, known := keys[name]
		switch {
		case !known:
			wrongAt(pair[0], hosts.DidYouMean(name, "", names), "unknown key %q", name)
			continue
		case lines[name] != 0:
			wrongAt(pair[0], "", "%s is already at line %d", name, lines[name])
			continue
		}
		value, at, err := k.read(pair[1], filepath.Dir(file.Path), home)
		if err != nil {
			wrongAt(at, "", "%s: %v", name, err)
		}
		found[name], lines[name] = value, pair[0].Line
	}
	return found, lines, problems.Err()
}

func unreadable(file File, err error) *Error {
	e := document.Unreadable(CodeInvalid, file.Path, err)
	if errors.Is(err, fs.ErrNotExist) {
		e.Message = "no such file"
		e.Hint = "it comes from " + file.Origin
	}
	return e
}
