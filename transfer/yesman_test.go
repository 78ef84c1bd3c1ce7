package transfer

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"
)

// A yesMan is a server that says OK to what it has no other answer for, by the type of the
// request.
type yesMan struct {
	net.Conn
	answers map[byte]answerTo
}

// An answerTo is the type of an answer, and what it has behind its number.
type answerTo struct {
	kind byte
	body []byte
}

func words(n ...uint32) (b []byte) {
	for _, word := range n {
		b = binary.BigEndian.AppendUint32(b, word)
	}
	return b
}

var (
	handle  = answerTo{102, append(words(1), 'h')}
	status  = func(code uint32) answerTo { return answerTo{101, words(code, 0, 0)} }
	regular = answerTo{105, words(5, 0, Small+1, 0o100644)} // size and mode
)

func (y yesMan) Serve() error {
	for {
		var length [4]byte
		if _, err := io.ReadFull(y, length[:]); err != nil {
			return err
		}
		request := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(y, request); err != nil {
			return err
		}
		answer, ok := y.answers[request[0]]
		switch {
		case request[0] == 1: // it has no number
			answer.kind = 2
			request = append(request[:1], words(3)...)
			for _, extension := range []string{"statvfs@openssh.com", "2", "fsync@openssh.com", "1", "posix-rename@openssh.com", "1"} {
				answer.body = append(append(answer.body, words(uint32(len(extension)))...), extension...)
			}
		case !ok:
			answer = status(0)
		}
		packet := append(words(uint32(5+len(answer.body))), answer.kind)
		if _, err := y.Write(append(append(packet, request[1:5]...), answer.body...)); err != nil {
			return err
		}
	}
}

// TestYesMan: where a server says OK and something else is due, what was asked of it has
// failed, and nothing but that.
func TestYesMan(t *testing.T) {
	const isOpen, isRead, isLstat, isFstat, isChmod, isRemove, isRmdir, isStat = 3, 5, 7, 8, 10, 13, 15, 17
	for name, answers := range map[string]map[byte]answerTo{
		"to everything":             nil,
		"but opens":                 {isOpen: handle},
		"but looks at what is open": {isOpen: handle, isFstat: regular},
		"but looks":                 {isLstat: regular, isStat: regular},
		"but fails to open":         {isOpen: status(4)},
		"but fails to read":         {isOpen: handle, isFstat: regular, isLstat: regular, isRead: status(4)},
		"but fails to remove":       {isOpen: handle, isFstat: regular, isLstat: status(2), isRemove: status(4), isRmdir: status(4), isChmod: status(4)},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			r := remote(t, linkTo(t, yesMan{far, answers}, near, near))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			dir := t.TempDir()
			must(t, os.WriteFile(dir+"/f", make([]byte, step+1), 0o600))
			for what, do := range map[string]func() error{
				"Home":     func() error { _, err := r.Home(ctx); return err },
				"List":     func() error { return r.List(ctx, "/", func(Info) error { return nil }) },
				"Readlink": func() error { _, err := r.Readlink(ctx, "/f"); return err },
				"Sum":      func() error { _, err := r.Sum(ctx, "/f", 0, -1); return err },
				"ReadAt":   func() error { _, err := ReadAt(ctx, r, "/f", Info{}, 0, 1); return err },
				"Write":    func() error { return Write(ctx, r, "/f", []byte("x"), nil) },
				"to it": func() error {
					return onlyProblem(ctx, &Copy{From: &Local{}, To: r, Paths: []string{dir + "/f"}, Into: "/f", Resume: true})
				},
				"from it": func() error {
					return onlyProblem(ctx, &Copy{From: r, To: &Local{}, Paths: []string{"/f"}, Into: dir + "/copy"})
				},
			} {
				if err := do(); err == nil || ctx.Err() != nil || Lost(err) {
					t.Errorf("%s: %v, want that it failed", what, err)
				}
			}
			// With some of the answers these work, as far as anybody can know.
			_ = r.Mkdir(ctx, "/d", 0o700)
			if part, err := r.Create(ctx, Spec{Path: "/f", Perm: 0o600, Size: 2 * step, Old: "/.old", At: step}); err == nil {
				part.Abandon(false)
			}
			if err := r.Symlink(ctx, "f", "/link"); err != nil || ctx.Err() != nil {
				t.Errorf("to what OK is an answer: %v", err)
			}
			if found, err := os.ReadDir(dir); err != nil || len(found) != 1 {
				t.Errorf("%v, %v, want that nothing was copied", found, err)
			}
		})
	}
}

// onlyProblem is what is wrong with a copy of one file.
func onlyProblem(ctx context.Context, c *Copy) error {
	report := c.Run(ctx)
	if len(report.Problems) > 0 {
		return report.Problems[0].Err
	}
	return report.Err
}

// TestOK: an OK is let through to whom it is an answer, however the packets come.
func TestOK(t *testing.T) {
	const mkdir, lstat, ours, theirs = 14, 7, 8, 9
	packet := func(kind byte, body []byte) []byte {
		return append(append(words(uint32(1+len(body))), kind), body...)
	}
	ok := func(number uint32) []byte { return packet(101, words(number, 0, 0, 0)) }
	sent := slices.Concat(
		packet(2, words(3)),                           // VERSION, which has no number
		packet(103, append(words(10), ok(theirs)...)), // DATA that looks like a status
		packet(101, words(theirs)), packet(101, nil),  // too short
		ok(ours), ok(theirs), ok(ours), // once only
	)
	want := slices.Clone(sent)
	for i, last := 0, len(want); i < 2; i++ {
		want[last-i*len(ok(ours))-9] = badMessage
	}
	for size := 1; size <= len(sent); size++ {
		in := &incoming{from: chunks{bytes.NewReader(sent), size}}
		in.expect(packet(mkdir, words(ours, 0, 0)))
		in.expect(packet(lstat, words(theirs, 0, 0)))
		if got, err := io.ReadAll(in); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d at a time: %v, %v, want %v", size, got, err, want)
		}
	}
}

// chunks are what comes so much at a time.
type chunks struct {
	from io.Reader
	size int
}

func (c chunks) Read(b []byte) (int, error) { return c.from.Read(b[:min(len(b), c.size)]) }
