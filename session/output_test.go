package session_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"gateway/session"
)

func TestMergedStreamsKeepTheirOrder(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		r := runCommand(t, s, session.Command{Text: "for i in 1 2 3; do echo o$i; echo e$i >&2; done", Merge: true})
		want(t, r, 0, "o1\ne1\no2\ne2\no3\ne3\n", "")
		if r.Streams != session.Merged {
			t.Errorf("streams = %s, want %s", r.Streams, session.Merged)
		}
	})
}

func TestOutputIsBoundedAndCounted(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		spools := map[session.Stream]*memorySpool{}
		var streamed int64
		var mu sync.Mutex
		r := runCommand(t, s, session.Command{
			Text:  "seq 1 200000; seq 1 10 >&2",
			Limit: 1000,
			Spool: func(from session.Stream) session.Spool {
				spools[from] = &memorySpool{name: from.String()}
				return spools[from]
			},
			Output: func(_ session.Stream, b []byte) { mu.Lock(); streamed += int64(len(b)); mu.Unlock() },
		})
		var all bytes.Buffer
		for i := 1; i <= 200000; i++ {
			fmt.Fprintln(&all, i)
		}
		whole := all.String()
		if got, want := string(r.Stdout), whole[:500]+whole[len(whole)-500:]; got != want {
			t.Errorf("kept %q, want %q", got, want)
		}
		if r.StdoutBytes != int64(len(whole)) || !r.Truncated || r.Spool != "stdout" || r.StderrBytes != 21 || streamed != r.StdoutBytes+21 {
			t.Errorf("got %d and %d bytes, truncated %v, spool %q, %d streamed", r.StdoutBytes, r.StderrBytes, r.Truncated, r.Spool, streamed)
		}
		if len(spools) != 1 || spools[session.Stdout].String() != whole || !spools[session.Stdout].closed {
			t.Errorf("the spool does not hold the whole of stdout, alone and closed")
		}
	})
}

// What is dropped goes from character to character, of what is UTF-8.
func TestOutputIsCutBetweenCharacters(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		kept := func(text string, limit int, want string) {
			t.Helper()
			r := runCommand(t, s, session.Command{Text: "cat", Stdin: strings.NewReader(text), Limit: limit})
			if string(r.Stdout) != want || r.StdoutBytes != int64(len(text)) || r.Truncated != (len(text) > limit) {
				t.Errorf("%q, limit %d: kept %q of %d bytes, truncated %v, want %q", text, limit, r.Stdout, r.StdoutBytes, r.Truncated, want)
			}
		}
		kept("aöüb", 6, "aöüb")
		kept("aöüb", 5, "aöb")
		kept("aöüb", 4, "ab")
		kept("a😀b", 5, "ab")
		kept("a"+strings.Repeat("ö", 10)+"b", 8, "aööb")
		kept("a"+strings.Repeat("ö", 1000)+"b", 1000, "a"+strings.Repeat("ö", 498)+"b")
		kept(strings.Repeat("\xa9", 2000), 1000, strings.Repeat("\xa9", 1000))
		kept("abc\xe2\x82d\x82\xacefg", 8, "abc\xe2\xacefg")
	})
}

type memorySpool struct {
	bytes.Buffer
	name   string
	closed bool
}

func (m *memorySpool) Close() error { m.closed = true; return nil }

func (m *memorySpool) Name() string { return m.name }

func TestStartedComesBeforeOutput(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		var order []string
		var mu sync.Mutex
		note := func(what string) { mu.Lock(); order = append(order, what); mu.Unlock() }
		r := runCommand(t, s, session.Command{
			Text: "read a; echo got $a", TTY: true, Echo: true,
			Started: func() { note("started"); s.Write([]byte("early\n")) },
			Output:  func(session.Stream, []byte) { note("output") },
		})
		if !strings.HasSuffix(string(r.Stdout), "got early\r\n") || order[0] != "started" {
			t.Errorf("got %q, order %q", r.Stdout, order)
		}
	})
}
