package transcript_test

import (
	"bytes"
	"slices"
	"testing"

	"gateway/internal/transcript"
)

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
			middle, _ := v.Read(e.HeadEnd, int(e.Omitted))
			if got := transcript.Bytes(slices.Concat(e.Head, middle.Chunks, e.Tail)); !bytes.Equal(got, want) || err != nil || e.Total != int64(len(want)) {
				t.Errorf("stream %d: head, middle and tail have %d bytes, want %d; %v", stream, len(got), len(want), err)
			}
			for at, end := transcript.Cursor(12345), log.End(); at < end; at += 100_001 {
				a, err := log.View(0, at, transcript.Stream(stream)).Count()
				b, _ := log.View(at, end, transcript.Stream(stream)).Count()
				if a+b != int64(len(want)) || err != nil {
					t.Errorf("stream %d has %d bytes before %d and %d behind, want %d", stream, a, at, b, len(want))
				}
			}
		}
	}
}
