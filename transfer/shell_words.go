package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
)

// said are the words of programs, in the C locale, for what they met.
var said = []struct {
	text  string
	cause error
}{
	{"No such file", fs.ErrNotExist},
	{"irectory nonexistent", fs.ErrNotExist}, // dash
	{"ermission denied", fs.ErrPermission},
	{"not permitted", fs.ErrPermission},
	{"No space left", syscall.ENOSPC},
	{"uota exceeded", syscall.EDQUOT},
	{"Read-only file system", syscall.EROFS},
	{"s a directory", syscall.EISDIR},
	{"ot a directory", syscall.ENOTDIR},
	{"ile exists", fs.ErrExist},
	{"name too long", syscall.ENAMETOOLONG},
	{"ile too large", syscall.EFBIG},
	{"levels of symbolic links", syscall.ELOOP},
	{"ymbolic link loop", syscall.ELOOP}, // musl
}

// spoken is the error that a program's words stand for: those at the end of a line,
// behind the names of files, which may be words, too.
func spoken(words string) error {
	for line := range strings.Lines(words) {
		end := line[strings.LastIndex(line, ": ")+1:]
		for _, s := range said {
			if strings.Contains(end, s.text) {
				return s.cause
			}
		}
	}
	return unknownWords(strings.ToValidUTF8(strings.TrimSpace(words), "?"))
}

// unknownWords are those of a program that stand for nothing that we know. They
// are quoted: a line of theirs must not look like one of ours.
type unknownWords string

func (w unknownWords) Error() string { return fmt.Sprintf("%.200q", string(w)) }

// explain looks whether the disk is full where a program's words don't say so:
// dash calls it an I/O error.
func (s *Shell) explain(ctx context.Context, path string, err error) error {
	if _, ok := errors.AsType[unknownWords](err); !ok {
		return err
	}
	dir, _ := split(path)
	out, failed := s.run(ctx, "df -P -k "+word(dir)+" 2>/dev/null | tail -n 1")
	if columns := strings.Fields(string(out)); failed == nil && len(columns) > 3 {
		if free, failed := strconv.ParseInt(columns[3], 10, 64); failed == nil && free < Small/1024 {
			return syscall.ENOSPC
		}
	}
	return err
}
