package transfer

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/pkg/sftp"

	"gateway/gateway"
)

// What a machine says stays within a line, and within bounds.
func TestWordsAreQuoted(t *testing.T) {
	for _, words := range []string{
		"stat: odd\n::error file=a::forged\r\n", "\x1b[2J\x07", "\xff\xfe\u2028\u202e", strings.Repeat("\n", 10_000) + "x", strings.Repeat("long ", 10_000), "",
	} {
		text := problem("web1", "look at", "/f", spoken(words)).Error()
		if strings.ContainsAny(text, "\n\r\x1b\x07\u2028\u202e") || !utf8.ValidString(text) || len(text) > 1000 || !strings.HasSuffix(text, `"`) {
			t.Errorf("%.100q gives %q", words, text)
		}
	}
}

// What a file is called is not what has happened to it.
func TestWordsBehindNames(t *testing.T) {
	for words, want := range map[string]error{
		"stat: cannot stat './No such file/x': Permission denied\n":                         fs.ErrPermission,
		"sh: 1: cannot create No space left: Permission denied":                             fs.ErrPermission,
		"mv: can't rename 'a': No such file or directory":                                   fs.ErrNotExist,
		"sh: 1: cannot create a/b: Directory nonexistent":                                   fs.ErrNotExist,
		"sh: cannot open a [Permission denied]":                                             fs.ErrPermission,
		"dd: error writing 'x': No space left on device\n0+1 records in\n0+0 records out\n": syscall.ENOSPC,
		"mv: cannot move 'No space left' to 'b': Directory not empty":                       nil,
		"sh: 1: cannot create a/b: File name too long":                                      syscall.ENAMETOOLONG,
		"sh: can't create a/b: Filename too long":                                           syscall.ENAMETOOLONG,
		"cat: write error: File too large":                                                  syscall.EFBIG,
	} {
		err := spoken(words)
		if _, unknown := err.(unknownWords); unknown != (want == nil) || want != nil && !errors.Is(err, want) {
			t.Errorf("%q is %v, want %v", words, err, want)
		}
	}
}

// A server that is killed is told in the same words whatever notices it first: what comes
// from it, or what goes there.
func TestServerHasEnded(t *testing.T) {
	for _, cause := range []error{io.EOF, io.ErrClosedPipe} {
		var in incoming
		in.ended(cause)
		err := problem("web1", "write", "/f", in.explain(sftp.ErrSSHFxConnectionLost))
		if gateway.Code(err) != "link.lost" || !strings.Contains(err.Error(), "the server has ended the connection") {
			t.Errorf("%v: %v", cause, err)
		}
	}
}

// talker is a server that has much to say.
type talker string

func (t talker) Filelist(*sftp.Request) (sftp.ListerAt, error) { return nil, errors.New(string(t)) }

func TestStatusIsCut(t *testing.T) {
	handlers := sftp.InMemHandler()
	handlers.FileList = talker("no " + strings.Repeat("such luck ", 10_000))
	_, err := over(t, handlers).Stat(t.Context(), "/f", true)
	if err == nil || !strings.Contains(err.Error(), `"no such luck`) || len(err.Error()) > 1000 {
		t.Errorf("%.2000v", err)
	}
}
