package transcript_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"gateway/internal/sshdtest"
	"gateway/internal/transcript"
)

// lines writes what a search found on one line: a match has a colon, a line of
// its context a minus, a line that is cut a tilde on each side where it goes on.
func lines(f transcript.Found) string {
	var b strings.Builder
	for _, l := range f.Lines {
		mark := map[bool]string{true: ":", false: "-"}[l.Match]
		cut := map[bool]string{true: "~"}
		fmt.Fprintf(&b, "%d%s%s%s%s ", l.At, mark, cut[l.Before], l.Data, cut[l.Behind])
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
		{"one stream", "a", transcript.GrepOptions{Bytes: 14}, []transcript.Stream{stdout}, `0:alpha 6:beta 21:gamma #3 >27`},
		{"context", "gamma", transcript.GrepOptions{Context: 1}, []transcript.Stream{stdout}, `20- 21:gamma 27-delta #1 >98`},
		{"contexts that meet", "gamma|epsilon", transcript.GrepOptions{Context: 2}, []transcript.Stream{stdout}, `6-beta 20- 21:gamma 27-delta 33:epsilon 41-a long line with a needle in the hay #2 >98`},
		{"the order of line ends", "warn|beta", transcript.GrepOptions{}, nil, `8:warn: x 6:beta #2 >98`},
		{"no room for the context", "gamma", transcript.GrepOptions{Context: 5, Bytes: 9}, []transcript.Stream{stdout}, `6-beta 20- 21:gamma #1 >27`},
		{"no room for a second match", "gamma|delta", transcript.GrepOptions{Bytes: 9}, []transcript.Stream{stdout}, `21:gamma #1 >27`},
		{"width", "needle", transcript.GrepOptions{Bytes: 12}, nil, `57:~ a needle in~ #1 >98`},
		{"width at the beginning", "long", transcript.GrepOptions{Bytes: 8}, nil, `41:a long l~ #1 >98`},
		{"width at the end", "hay", transcript.GrepOptions{Bytes: 8}, nil, `69:~ the hay #1 >98`},
		{"a match longer than that", "long.*hay", transcript.GrepOptions{Bytes: 8}, nil, `43:~long lin~ #1 >98`},
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

// TestGrepCutInPieces: an excerpt of a line stands where its own bytes do, however
// much of other streams came in between, and also where a search goes on.
func TestGrepCutInPieces(t *testing.T) {
	l, _ := create(t, transcript.Options{})
	add(t, l, stdout, "first\nthe line be") // 6
	add(t, l, stderr, "other\n")            // 17
	add(t, l, stdout, "gins here and ")     // 23
	add(t, l, stderr, "another\n")          // 37
	add(t, l, stdout, "ends there\n")       // 45
	for pattern, want := range map[string]string{"line": "8:~e line b~", "here": "26:~s here a~", "ends": "35:~d ends t~", "there": "47:~ds there"} {
		for _, since := range []transcript.Cursor{0, 20, 40} {
			found, err := l.View(0, l.End(), stdout).Grep(t.Context(), regexp.MustCompile(`\b`+pattern+`\b`), transcript.GrepOptions{Bytes: 8, Since: since})
			if got, want := lines(found), want+" #1 >56"; got != want || err != nil {
				t.Errorf("%s since %d: got %s, %v, want %s", pattern, since, got, err, want)
			}
		}
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
	if got, want := lines(found), fmt.Sprintf("%d-~%s~ %d:~needle %d-last #1 >%d", piece+7+9*piece, strings.Repeat("y", 1024), piece+7+10*piece, 11*piece+7+7, l.End()); got != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	found, err = l.View(0, l.End()).Grep(t.Context(), regexp.MustCompile("short|x"), transcript.GrepOptions{})
	if got, want := lines(found), fmt.Sprintf("0:%s~ %d:short #2 >%d", strings.Repeat("x", 1024), piece+1, l.End()); got != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// TestGrepCutsBetweenCharacters: what is shown of a line of text is text, and what
// is none is cut anywhere.
func TestGrepCutsBetweenCharacters(t *testing.T) {
	for name, line := range map[string]string{
		"two bytes":     strings.Repeat("é", 900) + "needle" + strings.Repeat("é", 900),
		"three bytes":   strings.Repeat("日", 700) + "needle" + strings.Repeat("日本", 400),
		"four bytes":    strings.Repeat("😀", 512) + "xneedle" + strings.Repeat("😀", 512),
		"at the end":    "x" + strings.Repeat("日", 700) + "needle",
		"no match":      "x" + strings.Repeat("日", 700),
		"longer pieces": strings.Repeat("日", 30000) + "needle" + strings.Repeat("日", 30000),
	} {
		for width := range 40 {
			l, _ := create(t, transcript.Options{})
			add(t, l, stdout, line+"\nneedle\n")
			found, err := l.View(0, l.End()).Grep(t.Context(), regexp.MustCompile("needle|.$"), transcript.GrepOptions{Bytes: 1024 - 64*(width%2) - width, Context: 1})
			if err != nil || len(found.Lines) == 0 {
				t.Fatalf("%s: %v, %v", name, found.Lines, err)
			}
			for _, got := range found.Lines {
				if at := string(got.Data); !utf8.ValidString(at) || !strings.HasPrefix((line + "\nneedle\n")[got.At:], at) {
					t.Errorf("%s: %d: %q… is not what stands there, or no text", name, got.At, at[:min(len(at), 20)])
				}
			}
		}
	}
	l, _ := create(t, transcript.Options{})
	add(t, l, stdout, strings.Repeat("\xe9\x80\xe9", 10)+"needle"+strings.Repeat("\x80", 10))
	found, err := l.View(0, l.End()).Grep(t.Context(), regexp.MustCompile("needle"), transcript.GrepOptions{Bytes: 12})
	if got, want := lines(found), "27:~\xe9\x80\xe9needle\x80\x80\x80~ #1 >46"; got != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
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

// pages searches until there is no more, and returns what it has found together.
func pages(t rapid.TB, v transcript.View, end transcript.Cursor, pattern string, options transcript.GrepOptions) (all transcript.Found, n int) {
	t.Helper()
	for expression := regexp.MustCompile(pattern); ; {
		found, err := v.Grep(context.Background(), expression, options)
		matches := 0
		for _, line := range found.Lines {
			if line.Match {
				matches++
			}
		}
		if err != nil || matches != found.Matches || found.Next <= options.Since && found.Next < end {
			t.Fatalf("Grep from %d = %s, %v", options.Since, lines(found), err)
		}
		n++
		all.Lines = append(all.Lines, found.Lines...)
		all.Matches += found.Matches
		all.Dropped += found.Dropped
		if all.Next = found.Next; found.Next == end {
			return all, n
		}
		options.Since = found.Next
	}
}

// grepped returns what grep says of a text, a line as in lines.
func grepped(t rapid.TB, text []byte, pattern string, around int) string {
	t.Helper()
	cmd := exec.Command("grep", "-a", "-b", "-E", "-C", strconv.Itoa(around), "-e", pattern)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdin = bytes.NewReader(text)
	out, err := cmd.Output()
	var status *exec.ExitError
	if err != nil && !(errors.As(err, &status) && status.ExitCode() == 1) {
		t.Fatalf("grep: %v", err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(out)) {
		if line != "--\n" { // between matches that are far apart
			b.WriteString(strings.TrimSuffix(line, "\n") + " ")
		}
	}
	return b.String()
}

// said is what the lines are, as grepped has them.
func said(f transcript.Found) string {
	text := lines(f)
	return text[:strings.LastIndex(text, "#")]
}

// TestGrepAsGrep compares with grep, however small the pages: no line is lost
// between them, and none is there twice.
func TestGrepAsGrep(t *testing.T) {
	if _, err := exec.LookPath("grep"); err != nil {
		sshdtest.Skip(t, "no grep to compare with: %v", err)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.StringMatching(`([abc\n\n]{0,9}|[ab]{0,3}\n){0,60}`).Draw(t, "text"))
		pattern := rapid.SampledFrom([]string{"a+b", "^$", "^a", "c$", ".", "bb|ca", "nothing"}).Draw(t, "pattern")
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
		longest := 1
		for line := range bytes.Lines(text) {
			longest = max(longest, len(line))
		}
		around := rapid.IntRange(0, 4).Draw(t, "context")
		room := longest * (2*around + 1) // for a match and what is around it
		options := transcript.GrepOptions{Context: around, Bytes: rapid.IntRange(room, 3*room).Draw(t, "bytes")}
		found, _ := pages(t, l.View(0, l.End()), l.End(), pattern, options)
		if got, want := said(found), grepped(t, text, pattern, around); got != want {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
	})
}

// TestGrepManyLines: pages have a thousand lines at most, which shows nowhere.
func TestGrepManyLines(t *testing.T) {
	for _, test := range []struct {
		lines, every, around int
	}{
		{3500, 1, 0}, {4000, 3, 1}, {4000, 3, 0}, {4000, 1, 2}, {5000, 7, 2}, {5000, 7, 3}, {5000, 7, 4}, {5000, 300, 100}, {5000, 150, 100},
	} {
		l, _ := create(t, transcript.Options{})
		var text []byte
		for i := 1; i <= test.lines; i++ {
			text = fmt.Appendf(text, "%d%s\n", i, map[bool]string{true: " x"}[i%test.every == 0])
		}
		add(t, l, stdout, string(text))
		found, _ := pages(t, l.View(0, l.End()), l.End(), "x$", transcript.GrepOptions{Context: test.around, Bytes: 1 << 20})
		got, want := said(found), grepped(t, text, "x$", test.around)
		if got != want || found.Matches != test.lines/test.every {
			t.Errorf("%+v: %d lines, %d match, want %d lines", test, len(found.Lines), found.Matches, strings.Count(want, "\n"))
		}
	}
}

// TestGrepStreams: pages of several streams, whose lines are in each other's
// middle, have together what one page has. And where the log goes on behind the
// end of a search, what is told again is only a line that has grown.
func TestGrepStreams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, err := transcript.Create(dir(t), transcript.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		longest := 1
		var line [transcript.Streams]int
		for _, text := range rapid.SliceOfN(rapid.StringMatching(`[ab\n]{1,6}`), 0, 60).Draw(t, "texts") {
			stream := rapid.SampledFrom([]transcript.Stream{stdout, stderr, terminal}).Draw(t, "stream")
			l.Append(stream, []byte(text))
			for _, c := range text {
				if line[stream]++; c == '\n' {
					line[stream] = 0
				}
				longest = max(longest, line[stream])
			}
		}
		around := rapid.IntRange(0, 3).Draw(t, "context")
		room := longest * (2*around + 1)
		pattern := rapid.SampledFrom([]string{"ab", "^$", "a$", "."}).Draw(t, "pattern")
		v := l.View(0, l.End())
		want, n := pages(t, v, l.End(), pattern, transcript.GrepOptions{Context: around})
		got, _ := pages(t, v, l.End(), pattern, transcript.GrepOptions{Context: around, Bytes: rapid.IntRange(room, 3*room).Draw(t, "bytes")})
		if n != 1 || lines(got) != lines(want) {
			t.Fatalf("got  %s\nwant %s in one page", lines(got), lines(want))
		}
		if again, _ := pages(t, v, l.End(), pattern, transcript.GrepOptions{Since: l.End()}); len(again.Lines) > 0 {
			t.Fatalf("told again: %s", lines(again))
		}
	})
}

// TestGrepGoesOn: a line that was unfinished where a search ended is found once
// more when it has grown, as a whole.
func TestGrepGoesOn(t *testing.T) {
	l, _ := create(t, transcript.Options{})
	search := func(since transcript.Cursor) string {
		found, _ := pages(t, l.View(0, l.End()), l.End(), "^pass", transcript.GrepOptions{Since: since})
		return lines(found)
	}
	add(t, l, terminal, "password: ")
	add(t, l, stdout, "pass")
	if got, want := search(0), "10:pass 0:password:  #2 >14"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	add(t, l, stdout, "word\npas")
	if got, want := search(14), "10:password #1 >22"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := search(22), "#0 >22"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	add(t, l, stdout, "s\n")
	if got, want := search(22), "19:pass #1 >24"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A watched context counts how often a search asks whether it may go on: once for
// each piece that it reads.
type watched struct {
	context.Context
	asked *int
}

func (w watched) Err() error {
	*w.asked++
	return w.Context.Err()
}

// TestGrepStops: many pages read little more than one.
func TestGrepStops(t *testing.T) {
	l, _ := create(t, transcript.Options{})
	const pieces = 2000
	for i := range pieces {
		add(t, l, transcript.Stream(i%2), strings.Repeat("x\n", 10)) // a record for each
	}
	asked := 0
	ctx := watched{t.Context(), &asked}
	for since := transcript.Cursor(0); since < l.End(); {
		found, err := l.View(0, l.End()).Grep(ctx, regexp.MustCompile("x"), transcript.GrepOptions{Since: since, Context: 3})
		if err != nil || len(found.Lines) == 0 {
			t.Fatalf("Grep = %s, %v", lines(found), err)
		}
		since = found.Next
	}
	if asked > pieces*11/10 {
		t.Errorf("%d pieces read of %d", asked, pieces)
	}
}
