package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"unicode"

	"github.com/pkg/sftp"

	"gateway/internal/phrase"
	"gateway/transport"
)

// The codes of this package's errors.
const (
	codeNotFound     = "file.not_found"
	codePermission   = "file.permission"
	codeNoSpace      = "file.no_space"
	codeReadOnly     = "file.read_only"
	codeIsDirectory  = "file.is_directory"
	codeNotDirectory = "file.not_directory"
	codeExists       = "file.exists"
	codeSpecial      = "file.special"
	codeChanged      = "file.changed"
	codeMismatch     = "file.mismatch"
	codeUnsafe       = "file.unsafe"
	codeFailed       = "file.failed"
)

// kinds are the causes that have a code of their own.
var kinds = []struct {
	cause      error
	code, text string
}{
	{fs.ErrNotExist, codeNotFound, "no such file or directory"},
	{fs.ErrPermission, codePermission, "permission denied"},
	{syscall.ENOSPC, codeNoSpace, "no space left on the device"},
	{syscall.EDQUOT, codeNoSpace, "the quota is used up"},
	{syscall.EROFS, codeReadOnly, "the file system is read-only"},
	{syscall.EISDIR, codeIsDirectory, "it is a directory"},
	{syscall.ENOTDIR, codeNotDirectory, "a part of the path is no directory"},
	{fs.ErrExist, codeExists, "it exists"},
}

// problem is the error of doing something with a file of a machine. What has a
// code, and what became of the link or the context, goes through as it is.
func problem(machine, doing, path string, err error) error {
	var known interface{ ErrorCode() string }
	if err == nil || errors.As(err, &known) || errors.Is(err, transport.ErrLost) || errors.Is(err, transport.ErrClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, errGone) {
		return &transport.Error{Code: "link.lost", Message: fmt.Sprintf("transfer: %s: link lost: %v", machine, err), Err: err}
	}
	e := &transport.Error{Code: codeFailed, Err: err}
	text := told(phrase.WithoutPath(err))
	for _, kind := range kinds {
		if errors.Is(err, kind.cause) {
			e.Code, text = kind.code, kind.text
			break
		}
	}
	e.Message = fmt.Sprintf("transfer: %s %s: %s", doing, Show(machine, path), text)
	return e
}

// maxTold bounds what a server says in a message, in characters.
const maxTold = 300

// told is the text of an error. What a server says may be as long as a packet.
func told(err error) string {
	if _, ok := errors.AsType[*sftp.StatusError](err); ok {
		return fmt.Sprintf("%.*s", maxTold, err)
	}
	return err.Error()
}

// refuse is the error of something that is not done.
func refuse(code, hint, format string, args ...any) error {
	return &transport.Error{Code: code, Message: "transfer: " + fmt.Sprintf(format, args...), Hint: hint}
}

// Show writes a machine and a path of it for people.
func Show(machine, path string) string {
	if machine == "" {
		return printable(path)
	}
	return machine + ":" + printable(path)
}

// printable quotes a path that has bytes that are no text, or characters that
// control a terminal or the direction of what is written.
func printable(path string) string {
	odd := func(r rune) bool { return r == unicode.ReplacementChar || phrase.IsControl(r) }
	if strings.ContainsFunc(path, odd) {
		return fmt.Sprintf("%q", path)
	}
	return path
}

const hintLies = "the machine is not to be trusted, or its disk is damaged"

// checkName refuses what a machine must not call an entry of a directory: it
// could lead out of where the copy belongs.
func checkName(machine, dir, name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return refuse(codeUnsafe, hintLies, "%s has an entry called %q", Show(machine, dir), name)
	}
	return nil
}

// once calls each once for a name in a machine's directory. What is replaced while it is
// listed may come again, as from a tmpfs. Of two kinds, such as a symlink and a directory,
// one could lead out of where the copy of the other belongs.
func once(machine, dir string, each func(Info) error) func(Info) error {
	seen := make(map[string]fs.FileMode)
	return func(info Info) error {
		if err := checkName(machine, dir, info.Name); err != nil {
			return err
		}
		kind, again := seen[info.Name]
		if again && kind == info.Mode.Type() {
			return nil
		}
		if again {
			return refuse(codeUnsafe, "", "%s has two entries called %q", Show(machine, dir), info.Name)
		}
		seen[info.Name] = info.Mode.Type()
		return each(info)
	}
}

// Join puts an entry's name behind a directory.
func Join(dir, name string) string {
	switch {
	case dir == "" || dir == ".":
		if strings.HasPrefix(name, "~") {
			return "./" + name
		}
		return name
	case strings.HasSuffix(dir, "/"):
		return dir + name
	}
	return dir + "/" + name
}

// split returns the directory and the last element of a path without slashes at
// its end.
func split(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return ".", path
	}
	if i == 0 {
		return "/", path[1:]
	}
	return path[:i], path[i+1:]
}
