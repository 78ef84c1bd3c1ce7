package transcript_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"gateway/internal/transcript"
)

func TestExcerpt(t *testing.T) {
	l, _ := create(t, transcript.Options{})
	add(t, l, stdout, "before|")
	from := add(t, l, stderr, "xx")
	for i := range 10 {
		add(t, l, stdout, fmt.Sprintf("out %d\n", i))
		add(t, l, stderr, "E")
	}
	to := l.End()
	add(t, l, stdout, "|after")
	v := l.View(from, to, stdout)
	for _, test := range []struct {
		head, tail       int
		wantHead, wantTl string
	}{
		{0, 0, "", ""},
		{3, 0, "out", ""},
		{0, 8, "", "8\nout 9\n"},
		{8, 4, "out 0\nou", "t 9\n"},
		{40, 20, "all", ""},
		{1000, 1000, "all", ""},
		{0, 60, "", "all"},
	} {
		e, err := v.Excerpt(test.head, test.tail)
		everything := "out 0\nout 1\nout 2\nout 3\nout 4\nout 5\nout 6\nout 7\nout 8\nout 9\n"
		for _, want := range []*string{&test.wantHead, &test.wantTl} {
			if *want == "all" {
				*want = everything
			}
		}
		omitted := int64(60 - len(test.wantHead) - len(test.wantTl))
		if string(transcript.Bytes(e.Head)) != test.wantHead || string(transcript.Bytes(e.Tail)) != test.wantTl || e.Total != 60 || e.Omitted != omitted || e.Dropped != 0 || err != nil {
			t.Errorf("Excerpt(%d, %d) = %+v, %v", test.head, test.tail, e, err)
		}
		middle, err := l.View(e.HeadEnd, e.TailStart, stdout).Excerpt(1000, 0)
		if got := string(transcript.Bytes(e.Head)) + string(transcript.Bytes(middle.Head)) + string(transcript.Bytes(e.Tail)); got != everything || err != nil {
			t.Errorf("Excerpt(%d, %d) and its middle make %q, %v", test.head, test.tail, got, err)
		}
	}
	if kept, lost, err := v.Count(); kept != 60 || lost != 0 || err != nil {
		t.Errorf("Count = %d, %d, %v, want 60", kept, lost, err)
	}
	if page, err := v.Read(0, 1000); show(page) == "" || page.Next != to || len(page.Chunks) != 10 || err != nil {
		t.Errorf("Read = %s, %v", show(page), err)
	}
}

// TestLarge: a log of many blocks and segments, read at random places.
func TestLarge(t *testing.T) {
	l, dir := create(t, transcript.Options{Segment: 300 << 10})
	var want [2][]byte
	for i := range 1000 {
		text := bytes.Repeat([]byte{byte(i), byte(i >> 8), '\n'}, i)
		stream := transcript.Stream(i % 97 / 96) // seldom stderr
		add(t, l, stream, string(text))
		want[stream] = append(want[stream], text...)
	}
	l.Close()
	opened, err := transcript.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range []*transcript.Log{l, opened} {
		for stream, want := range want {
			v := log.View(0, log.End(), transcript.Stream(stream))
			e, err := v.Excerpt(5000, 70000)
			middle, _ := log.View(e.HeadEnd, e.TailStart, transcript.Stream(stream)).Excerpt(4<<20, 0)
			if got := transcript.Bytes(slices.Concat(e.Head, middle.Head, e.Tail)); !bytes.Equal(got, want) || err != nil || e.Total != int64(len(want)) || e.Omitted != int64(len(transcript.Bytes(middle.Head))) {
				t.Errorf("stream %d: head, middle and tail have %d bytes, want %d; %v", stream, len(got), len(want), err)
			}
			for at, end := transcript.Cursor(12345), log.End(); at < end; at += 100_001 {
				a, _, err := log.View(0, at, transcript.Stream(stream)).Count()
				b, _, _ := log.View(at, end, transcript.Stream(stream)).Count()
				if a+b != int64(len(want)) || err != nil {
					t.Errorf("stream %d has %d bytes before %d and %d behind, want %d", stream, a, at, b, len(want))
				}
			}
		}
	}
}
