package transcript_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gateway/internal/transcript"
)

// lines writes what a search found on one line: a match has a colon, a line of
// its context a minus, a cut line a tilde.
func lines(f transcript.Found) string {
	var b strings.Builder
	for _, l := range f.Lines {
		mark := map[bool]string{true: ":", false: "-"}[l.Match]
		if l.Cut {
			mark += "~"
		}
		fmt.Fprintf(&b, "%d%s%s ", l.At, mark, l.Data)
	}
	return fmt.Sprintf("%s#%d >%d", b.String(), f.Matches, f.Next)
}

func TestGrep(t *testing.T) {
	l, _ := create(t, transcript.Options{})
	for _, chunk := range []struct {
		stream transcript.Stream
		text   string
	}{
		{stdout, "alpha\nbe"},                              // 0, 6
		{stderr, "warn: x\n"},                              // 8
		{stdout, "ta\r\n\nga"},                             // the line at 6 goes on; 20 is empty, 21
		{stdout, "mma\ndelta\nepsilon\n"},                  // 27, 33
		{stdout, "a long line with a needle in the hay\n"}, // 41
		{terminal, "password for alpha: "},                 // 78
	} {
		add(t, l, chunk.stream, chunk.text)
	}
	for _, test := range []struct {
		name, pattern string
		options       transcript.GrepOptions
		streams       []transcript.Stream
		want          string
	}{
		{"across chunks and streams", "^beta$", transcript.GrepOptions{}, nil, `6:beta #1 >98`},
		{"nothing", "zeta", transcript.GrepOptions{Context: 3}, nil, `#0 >98`},
		{"an empty line", "^$", transcript.GrepOptions{}, nil, `20: #1 >98`},
		{"an unfinished line", "alpha", transcript.GrepOptions{}, nil, `0:alpha 78:password for alpha:  #2 >98`},
		{"one stream", "a", transcript.GrepOptions{Bytes: 14}, []transcript.Stream{stdout}, `0:alpha 6:beta 21:gamma #5 >27`},
		{"context", "gamma", transcript.GrepOptions{Context: 1}, []transcript.Stream{stdout}, `20- 21:gamma 27-delta #1 >98`},
		{"contexts that meet", "gamma|epsilon", transcript.GrepOptions{Context: 2}, []transcript.Stream{stdout}, `6-beta 20- 21:gamma 27-delta 33:epsilon 41-a long line with a needle in the hay #2 >98`},
		{"the order of line ends", "warn|beta", transcript.GrepOptions{}, nil, `8:warn: x 6:beta #2 >98`},
		{"no room for the context", "gamma", transcript.GrepOptions{Context: 5, Bytes: 9}, []transcript.Stream{stdout}, `6-beta 20- 21:gamma #1 >27`},
		{"no room for a second match", "gamma|delta", transcript.GrepOptions{Bytes: 9}, []transcript.Stream{stdout}, `21:gamma #2 >27`},
		{"width", "needle", transcript.GrepOptions{Bytes: 12}, nil, `41:~ a needle in #1 >98`},
		{"width at the beginning", "long", transcript.GrepOptions{Bytes: 8}, nil, `41:~a long l #1 >98`},
		{"width at the end", "hay", transcript.GrepOptions{Bytes: 8}, nil, `41:~ the hay #1 >98`},
		{"a match longer than that", "long.*hay", transcript.GrepOptions{Bytes: 8}, nil, `41:~long lin #1 >98`},
	} {
		found, err := l.View(0, l.End(), test.streams...).Grep(t.Context(), regexp.MustCompile(test.pattern), test.options)
		if got := lines(found); got != test.want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", test.name, got, err, test.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.View(0, 10).Grep(ctx, regexp.MustCompile("x"), transcript.GrepOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Grep = %v, want %v", err, context.Canceled)
	}
}

// TestGrepLongLines: lines of any length need bounded memory, and what is in
// them is found.
func TestGrepLongLines(t *testing.T) {
	l, _ := create(t, transcript.Options{})
	const piece = 64 << 10
	add(t, l, stdout, strings.Repeat("x", piece)+"\n") // exactly one piece
	add(t, l, stdout, "short\n")
	add(t, l, stdout, strings.Repeat("y", 10*piece)+"needle")
	add(t, l, stdout, "\nlast\n")
	found, err := l.View(0, l.End()).Grep(t.Context(), regexp.MustCompile("needle|^$"), transcript.GrepOptions{Context: 1})
	if got, want := lines(found), fmt.Sprintf("%d-~%s %d:~needle %d-last #1 >%d", piece+7+9*piece, strings.Repeat("y", 1024), piece+7+10*piece, 11*piece+7+7, l.End()); got != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	found, err = l.View(0, l.End()).Grep(t.Context(), regexp.MustCompile("short|x"), transcript.GrepOptions{})
	if got, want := lines(found), fmt.Sprintf("0:~%s %d:short #2 >%d", strings.Repeat("x", 1024), piece+1, l.End()); got != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// TestGrepAfterDrop: a line whose beginning was dropped is searched as far as
// it is there.
func TestGrepAfterDrop(t *testing.T) {
	l, _ := create(t, transcript.Options{Limit: 300, Segment: 100})
	for range 4 {
		add(t, l, stdout, strings.Repeat("-", 60)+"needle\nxx")
	}
	found, err := l.View(0, l.End()).Grep(t.Context(), regexp.MustCompile("needle"), transcript.GrepOptions{})
	if got, want := lines(found), fmt.Sprintf("69:%[1]sneedle 136:xx%[1]sneedle 205:xx%[1]sneedle #3 >276", strings.Repeat("-", 60)); got != want || found.Dropped != 69 || err != nil {
		t.Errorf("got %s, dropped %d, %v, want %s", got, found.Dropped, err, want)
	}
}

// TestGrepModel compares with bytes.Split, page after page.
func TestGrepModel(t *testing.T) {
	pattern := regexp.MustCompile("a+b")
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.StringMatching(`[ab\n ]{0,300}`).Draw(t, "text"))
		l, err := transcript.Create(dir(t), transcript.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			l.Append(stdout, rest[:n])
			rest = rest[n:]
		}
		var want, got []string
		longest := 1
		for line := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
			longest = max(longest, len(line))
			if pattern.Match(line) {
				want = append(want, string(line))
			}
		}
		options := transcript.GrepOptions{
			Context: rapid.IntRange(0, 3).Draw(t, "context"),
			Bytes:   rapid.IntRange(longest, 500).Draw(t, "bytes"),
		}
		for v := l.View(0, l.End()); ; {
			found, err := v.Grep(t.Context(), pattern, options)
			size := 0
			for _, line := range found.Lines {
				size += len(line.Data)
			}
			if err != nil || found.Matches != len(want)-len(got) || size > options.Bytes {
				t.Fatalf("Grep = %s, %v, want %d matches", lines(found), err, len(want)-len(got))
			}
			for _, line := range found.Lines {
				if line.Match {
					got = append(got, string(line.Data))
				}
			}
			if found.Next == l.End() {
				break
			}
			v = v.From(found.Next)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}
