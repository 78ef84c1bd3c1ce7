package transcript_test

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gateway/internal/transcript"
)

// A model is a log as plain bytes, and where each of its streams goes on.
type model struct {
	data []byte
	runs []run
}

type run struct {
	end    int
	stream transcript.Stream
}

// only returns the bytes of some streams between two cursors.
func (m model) only(from, to transcript.Cursor, streams []transcript.Stream) (b []byte) {
	var wanted [transcript.Streams]bool
	for _, stream := range streams {
		wanted[stream] = true
	}
	start := 0
	for _, r := range m.runs {
		if lo, hi := max(start, int(from)), min(r.end, int(to)); lo < hi && (len(streams) == 0 || wanted[r.stream]) {
			b = append(b, m.data[lo:hi]...)
		}
		start = r.end
	}
	return b
}

// dir makes a directory for one run of rapid.
func dir(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "transcript")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// TestModel compares a log with plain bytes, whatever is written and read.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir := dir(t)
		options := transcript.Options{Limit: 1 << 20}
		sizes := rapid.OneOf(rapid.IntRange(0, 60), rapid.IntRange(0, 3000), rapid.IntRange(65000, 200000))
		if rapid.Bool().Draw(t, "small") {
			options.Limit = rapid.Int64Range(128, 4000).Draw(t, "limit")
			options.Segment = rapid.Int64Range(0, 2000).Draw(t, "segment")
			sizes = rapid.IntRange(0, 300)
		}
		l, err := transcript.Create(dir, options)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		var m model
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				stream := transcript.Stream(rapid.IntRange(0, 3).Draw(t, "stream"))
				b := make([]byte, sizes.Draw(t, "n"))
				for i := range b {
					b[i] = byte((len(m.data) + i) * 7 >> 3)
				}
				m.data = append(m.data, b...)
				m.runs = append(m.runs, run{len(m.data), stream})
				if end, err := l.Append(stream, b); int(end) != len(m.data) || err != nil {
					t.Fatalf("Append = %d, %v, want %d", end, err, len(m.data))
				}
			},
			"rest": func(*rapid.T) { l.Rest() },
			"": func(t *rapid.T) {
				if size(t, dir) > options.Limit {
					t.Fatalf("the files have %d bytes, want at most %d", size(t, dir), options.Limit)
				}
				m.check(t, l)
			},
		})
		l.Close()
		start := l.Start()
		if l, err = transcript.Open(dir); err != nil || l.Damaged() != 0 {
			t.Fatalf("Open = %v, %d damaged", err, l.Damaged())
		}
		if l.Start() != start || int(l.End()) != len(m.data) {
			t.Fatalf("opened from %d to %d, want %d to %d", l.Start(), l.End(), start, len(m.data))
		}
		m.check(t, l)
	})
}

// check reads a log in random ways.
func (m model) check(t *rapid.T, l *transcript.Log) {
	start, end := l.Start(), l.End()
	streams := rapid.SliceOfNDistinct(rapid.Map(rapid.IntRange(0, 3), func(i int) transcript.Stream { return transcript.Stream(i) }), 0, 3, rapid.ID).Draw(t, "streams")
	cursor := rapid.OneOf(
		rapid.Just(transcript.Cursor(0)), rapid.Just(start), rapid.Just(end),
		rapid.Map(rapid.Int64Range(0, int64(end)+10), func(i int64) transcript.Cursor { return transcript.Cursor(i) }))
	from := cursor.Draw(t, "from")
	limit := rapid.OneOf(rapid.IntRange(1, 100), rapid.IntRange(1, 300000)).Draw(t, "limit")
	page, err := read(l, from, limit, streams...)
	if err != nil {
		t.Fatalf("Read = %v", err)
	}
	if want := max(start-from, 0); page.Dropped != int64(want) && page.Next != from {
		t.Fatalf("Read(%d) told of %d lost bytes, want %d", from, page.Dropped, want)
	}
	var got []byte
	for _, c := range page.Chunks {
		if want := m.only(c.At, c.End(), []transcript.Stream{c.Stream}); !bytes.Equal(want, c.Data) || len(c.Data) == 0 {
			t.Fatalf("a chunk of %d bytes at %d is wrong", len(c.Data), c.At)
		}
		got = append(got, c.Data...)
	}
	if want := m.only(max(from, start), page.Next, streams); !bytes.Equal(got, want) {
		t.Fatalf("Read(%d, %d, %v) has %d bytes before %d, want %d", from, limit, streams, len(got), page.Next, len(want))
	}
	if len(got) < limit && page.Next < end {
		t.Fatalf("Read(%d, %d, %v) stopped after %d bytes at %d of %d", from, limit, streams, len(got), page.Next, end)
	}

	to := max(from, cursor.Draw(t, "to"))
	v := l.View(from, to, streams...)
	to, from = min(to, end), min(from, end)
	want := m.only(max(from, start), max(to, start), streams)
	head, tail := rapid.IntRange(0, 5000).Draw(t, "head"), rapid.IntRange(0, 100000).Draw(t, "tail")
	e, err := v.Excerpt(head, tail)
	gotHead, gotTail := transcript.Bytes(e.Head), transcript.Bytes(e.Tail)
	if err != nil || e.Total != int64(len(want)) || e.Dropped != int64(max(min(start, to)-from, 0)) {
		t.Fatalf("Excerpt of %d to %d = total %d, lost %d, %v, want total %d", from, to, e.Total, e.Dropped, err, len(want))
	}
	wantHead := want[:min(head, len(want))]
	if head > 0 && head+tail >= len(want) {
		wantHead, tail = want, 0
	}
	wantTail := want[len(want)-min(tail, len(want)):]
	if !bytes.Equal(gotHead, wantHead) || !bytes.Equal(gotTail, wantTail) || e.Omitted != int64(len(want)-len(wantHead)-len(wantTail)) {
		t.Fatalf("Excerpt(%d, %d) of %d bytes: head %d, tail %d, omitted %d", head, tail, len(want), len(gotHead), len(gotTail), e.Omitted)
	}
	// The middle is where the excerpt says.
	if e.Omitted > 0 {
		middle, err := v.Read(e.HeadEnd, int(e.Omitted))
		if whole := slices.Concat(gotHead, transcript.Bytes(middle.Chunks), gotTail); err != nil || !bytes.Equal(whole, want) {
			t.Fatalf("head, middle and tail make %d bytes, want %d; %v", len(whole), len(want), err)
		}
	}
}
