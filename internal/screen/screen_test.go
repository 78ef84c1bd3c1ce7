package screen_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"gateway/internal/screen"
	"gateway/internal/sshdtest"
)

// render returns what a terminal shows that got raw, all of it at once.
func render(raw []byte, rows, cols int) screen.Snapshot {
	s := screen.New(rows, cols)
	_, _ = s.Write(raw)
	return s.Snapshot()
}

// show renders on 4 rows of 10 columns and writes the result as one string:
// rows between bars, and the cursor.
func show(raw string) string { return brief(render([]byte(raw), 4, 10)) }

func brief(s screen.Snapshot) string {
	rows := slices.Clone(s.Rows)
	for len(rows) > 0 && rows[len(rows)-1] == "" {
		rows = rows[:len(rows)-1]
	}
	return fmt.Sprintf("%s @%d,%d", strings.Join(rows, "|"), s.CursorRow, s.CursorCol)
}

func TestSequences(t *testing.T) {
	const full = "1\r\n2\r\n3\r\n4" // a row each
	for _, test := range []struct{ name, raw, want string }{
		{"nothing", "", " @0,0"},
		{"text", "hello", "hello @0,5"},
		{"lines", "a\r\nb\nc", "a|b| c @2,2"},
		{"scroll", full + "\r\n5", "2|3|4|5 @3,1"},
		{"backspace", "abc\b\bX", "aXc @0,2"},
		{"trailing blanks", "a   ", "a @0,4"},
		{"leading blanks", "  a", "  a @0,3"},

		{"up and left", "\r\n\nab\x1b[2A\x1b[Dx", " x||ab @0,2"},
		{"down and right", "\x1b[2B\x1b[3Cx", "||   x @2,4"},
		{"movement stops at the edges", "\x1b[99C\x1b[99Bx\x1b[99A\x1b[99Dy", "y|||         x @0,1"},
		{"next and previous line", "\x1b[2Ea\x1b[Fb", "|b|a @1,1"},
		{"position", "\x1b[3;5Hx\x1b[Hy\x1b[2fz", "y|z|    x @1,1"},
		{"position beyond", "\x1b[99;99Hx", "|||         x @3,9"},
		{"column and row", "\x1b[4Gx\x1b[3dy\x1b[2`z", "   x|| z  y @2,2"},
		{"relative", "\x1b[2ax\x1b[1ey", "  x|   y @1,4"},
		{"0 is 1", "\x1b[0;0Hx\x1b[0By", "x| y @1,2"},
		{"index", "a\x1bDb\x1bEc\x1bMd", "a| d|c @1,2"},
		{"index gone wrong way", "\x1b[H\x1bMx", "x @0,1"},
		{"reverse index scrolls", full + "\x1b[H\x1bM", "|1|2|3 @0,0"},
		{"save and restore", "ab\x1b7\x1b[4Hx\x1b8c", "abc|||x @0,3"},
		{"save and restore, SCO", "ab\x1b[s\x1b[4Hx\x1b[uc", "abc|||x @0,3"},
		{"restore without save", "ab\x1b8c", "cb @0,1"},

		{"erase to the end of the line", "abcdef\x1b[3G\x1b[K", "ab @0,2"},
		{"erase to the start of the line", "abcdef\x1b[3G\x1b[1K", "   def @0,2"},
		{"erase the line", "abcdef\x1b[3G\x1b[2K", " @0,2"},
		{"erase below", full + "\x1b[2H\x1b[J", "1 @1,0"},
		{"erase above", full + "\x1b[3H\x1b[1J", "|||4 @2,0"},
		{"erase all", full + "\x1b[2J", " @3,1"},
		{"erase the scrollback", full + "\x1b[3J", "1|2|3|4 @3,1"},
		{"erase characters", "abcdef\x1b[2G\x1b[2X", "a  def @0,1"},
		{"insert characters", "abcdef\x1b[2G\x1b[2@X", "aX bcdef @0,2"},
		{"insert pushes out", "0123456789\x1b[H\x1b[3@", "   0123456 @0,0"},
		{"delete characters", "abcdef\x1b[2G\x1b[2P", "adef @0,1"},
		{"insert mode", "abc\x1b[H\x1b[4hXY\x1b[4lZ", "XYZbc @0,3"},
		{"insert lines", full + "\x1b[2;2H\x1b[2L", "1|||2 @1,0"},
		{"delete lines", full + "\x1b[2;2H\x1b[2M", "1|4 @1,0"},
		{"repeat", "ab\x1b[3bc", "abbbbc @0,6"},
		{"repeat stays on the line", "a\x1b[65535b\r\nb", "aaaaaaaaaa|b @1,1"},

		{"scroll up", full + "\x1b[2S", "3|4 @3,1"},
		{"scroll down", full + "\x1b[T", "|1|2|3 @3,1"},
		{"scroll region", full + "\x1b[2;3r\x1b[3H\nx", "1|3|x|4 @2,1"},
		{"scroll region, upwards", full + "\x1b[2;3r\x1b[2H\x1bMx", "1|x|2|4 @1,1"},
		{"scroll region homes", full + "\x1b[2;3rx", "x|2|3|4 @0,1"},
		{"below the region nothing scrolls", full + "\x1b[1;2r\x1b[4H\n\nx", "1|2|3|x @3,1"},
		{"region beyond the screen", full + "\x1b[2;99r\x1b[4H\nx", "1|3|4|x @3,1"},
		{"impossible region", full + "\x1b[3;2r\nx", "2|3|4| x @3,2"},
		{"lines outside the region", full + "\x1b[2;3r\x1b[4H\x1b[M", "1|2|3|4 @3,0"},
		{"origin", full + "\x1b[2;3r\x1b[?6h\x1b[Hx\x1b[9Hy\x1b[?6l\x1b[Hz", "z|x|y|4 @0,1"},

		{"wrap", "0123456789a", "0123456789|a @1,1"},
		{"the wrap waits", "0123456789\r\nb", "0123456789|b @1,1"},
		{"cursor while it waits", "0123456789", "0123456789 @0,9"},
		{"moving forgets it", "0123456789\x1b[Da", "01234567a9 @0,9"},
		{"colours do not", "0123456789\x1b[1;31ma", "0123456789|a @1,1"},
		{"wrap scrolls", "\x1b[4H0123456789a", "||0123456789|a @3,1"},
		{"no wrap", "\x1b[?7l0123456789ab\x1b[?7h", "012345678b @0,9"},

		{"tab", "a\tb", "a       b @0,9"},
		{"tab at the margin", "\t\t\tx", "         x @0,9"},
		{"own tab stops", "\x1b[3g\x1b[4G\x1bH\ra\tb\x1b[Zc", "a  c @0,4"},
		{"clear one", "\x1b[9G\x1b[g\r\tx", "         x @0,9"},
		{"tabs by count", "\x1b[9Ix\x1b[9Zy", "y        x @0,1"},

		{"wide", "漢字x", "漢字x @0,5"},
		{"wide at the margin", "012345678漢", "012345678|漢 @1,2"},
		{"wide may not wrap", "\x1b[?7l012345678漢", "012345678 @0,9"},
		{"half overwritten", "漢字\x1b[2Gx", " x字 @0,2"},
		{"other half overwritten", "漢字\rx", "x 字 @0,1"},
		{"half erased", "漢字\x1b[2G\x1b[K", " @0,1"},
		{"half deleted", "漢字\x1b[2G\x1b[P", " 字 @0,1"},
		{"half pushed out", "01234567漢\x1b[H\x1b[@", " 01234567 @0,0"},
		{"combining", "e\u0301x", "e\u0301x @0,2"},
		{"combining with wide", "か\u3099x", "か\u3099x @0,3"},
		{"combining at the margin", "012345678e\u0301x", "012345678e\u0301|x @1,1"},
		{"combining with nothing", "\u0301x", "x @0,1"},
		{"a pile of marks", "e\u0301\u0302\u0303\u0304\u0305x", "e\u0301\u0302\u0303x @0,2"},
		{"emoji of several", "👩\u200d🚀", "👩\u200d🚀 @0,4"},
		{"hangul of several", "\u1112\u1161\u11abx", "\u1112\u1161\u11abx @0,3"},
		{"the invisible is not shown", "a\u200b\u202eb\U000e0061\ufeffc", "abc @0,3"},
		{"soft hyphen", "a\u00adb", "a-b @0,3"},

		{"line drawing", "\x1b(0lqkx\x1b(Blqk", "┌─┐│lqk @0,7"},
		{"line drawing by shift", "\x1b)0a\x0eq\x0fq", "a─q @0,3"},
		{"british", "\x1b(A#\x1b(B#", "£# @0,2"},
		{"UTF-8 selected", "\x1b%Gä", "ä @0,1"},

		{"soft reset", "\x1b[4h\x1b[2;3r\x1b[?6habc\x1b[!p\x1b[Hx", "x|abc @0,1"},
		{"hard reset", full + "\x1b[2;3r\x1b(0\x1bcq", "q @0,1"},

		{"device queries", "a\x1b[c\x1b[>c\x1b[=c\x1b[6n\x1b[?6n\x1b[5n\x1b[?25$p\x1b]11;?\a\x1bP+q544e\x1b\\\x1b[18t\x1bZ\x05b", "ab @0,2"},
		{"colours", "\x1b[38;5;123ma\x1b[38:2::1:2:3mb\x1b[mc", "abc @0,3"},
		{"hyperlink", "\x1b]8;;http://x/\x1b\\link\x1b]8;;\x1b\\", "link @0,4"},
		{"strings", "a\x1bPq#0\x1b\\b\x1b_x\x1b\\c\x1b^y\x1b\\d\x1bXz\x1b\\e\x1bktitle\x1b\\f", "abcdef @0,6"},
		{"a string that is cut short", "a\x1b]0;title\x1b[3Cb", "a   b @0,5"},
		{"control in a sequence", "a\x1b[3\r;1Hb", "a||b @2,1"},
		{"sequence in a sequence", "a\x1b[3\x1b[2Cb", "a  b @0,4"},
		{"sequence cancelled", "a\x1b[3\x18b\x1b]0;x\x1ac", "abc @0,3"},
		{"unknown sequences", "a\x1b[?1;2;3z\x1b[>4;2m\x1b[<u\x1b[ q\x1b[2 q\x1b[1\"q\x1b#8\x1b F\x1b=\x1b>\x1b[?9999hb", "ab @0,2"},
		{"parameters where none belong", "a\x1b[1 1Ab\x1b[1?Ac", "abc @0,3"},
		{"huge parameters", "a\x1b[99999999999999999999Cb" + "\x1b[" + strings.Repeat("1;", 100) + "Hc", "c        b @0,1"},
		{"unfinished sequence", "a\x1b[3;", "a @0,1"},
		{"unfinished character", "a\xe6\xbc", "a @0,1"},
		{"broken character", "a\xe6\xbcb\xffc\xc0\xafd", "a\ufffdb\ufffdc\ufffd\ufffdd @0,8"},
		{"character cut by a sequence", "a\xe6\x1b[Cb", "a\ufffd b @0,4"},
		{"8-bit controls", "a\u009b3Cb\x9bc", "a3Cb\ufffdc @0,6"},
		{"NUL and DEL", "a\x00\x7fb", "ab @0,2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := show(test.raw); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			s := screen.New(4, 10) // one byte at a time
			for _, b := range []byte(test.raw) {
				_, _ = s.Write([]byte{b})
			}
			if got := brief(s.Snapshot()); got != test.want {
				t.Errorf("byte by byte: got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAlternateScreen(t *testing.T) {
	const before = "shell$ vi\r\n"
	for _, mode := range []string{"47", "1047", "1049"} {
		on, off := "\x1b[?"+mode+"h", "\x1b[?"+mode+"l"
		s := render([]byte(before+on+"\x1b[2J\x1b[Hedit"), 4, 10)
		if got := brief(s); got != "edit @0,4" || !s.Alternate {
			t.Errorf("mode %s set: got %q, alternate %t", mode, got, s.Alternate)
		}
		want := "shell$ vi @0,4"
		if mode == "1049" {
			want = "shell$ vi @1,0" // it brings the cursor back too
		}
		s = render([]byte(before+on+"\x1b[2J\x1b[Hedit"+off), 4, 10)
		if got := brief(s); got != want || s.Alternate {
			t.Errorf("mode %s reset: got %q, alternate %t, want %q", mode, got, s.Alternate, want)
		}
		s = render([]byte(on+"old"+off+on), 4, 10)
		if got := strings.Join(s.Rows, ""); got != "" {
			t.Errorf("mode %s set again shows %q", mode, got)
		}
	}
}

func TestModes(t *testing.T) {
	s := render(nil, 2, 10)
	if !s.CursorVisible || s.ApplicationCursor || s.BracketedPaste || s.Alternate {
		t.Errorf("at the start: %+v", s)
	}
	s = render([]byte("\x1b[?1;25;2004h\x1b[?25l"), 2, 10)
	if s.CursorVisible || !s.ApplicationCursor || !s.BracketedPaste {
		t.Errorf("set: %+v", s)
	}
	s = render([]byte("\x1b[?1;2004h\x1b[?25l\x1b[?1;2004l\x1b[?25h"), 2, 10)
	if !s.CursorVisible || s.ApplicationCursor || s.BracketedPaste {
		t.Errorf("reset: %+v", s)
	}
}

func TestTitle(t *testing.T) {
	for raw, want := range map[string]string{
		"\x1b]0;a b\a":                                      "a b",
		"\x1b]2;ä; ö\x1b\\":                                 "ä; ö",
		"\x1b]1;icon\a":                                     "",
		"\x1b]2;a\a\x1b]2;\a":                               "",
		"\x1b]2;a\x1b[31m\xff\a":                            "a",
		"\x1b]2;\xff\u202ea\u009b\a":                        "\ufffda",
		"\x1b]2;a\a\x1b[22;0t\x1b]2;b\a":                    "b",
		"\x1b]2;a\a\x1b[22;2t\x1b]2;b\a\x1b[23t":            "a",
		"\x1b]2;a\a\x1b[23;0t\x1b]52;c;eA==\a":              "a",
		"\x1b]2;a\a\x1bc":                                   "a",
		"\x1b]2;" + strings.Repeat("x", 1<<20) + "\a\x1b]2": "",
	} {
		if got := render([]byte(raw), 2, 10).Title; got != want {
			t.Errorf("%.40q: got %q, want %q", raw, got, want)
		}
	}
}

func TestResize(t *testing.T) {
	for _, test := range []struct {
		name, raw  string
		rows, cols int
		then, want string
	}{
		{"same", "a\r\nb", 4, 10, "c", "a|bc @1,2"},
		{"narrower cuts", "0123456789\r\nb", 4, 5, "c", "01234|bc @1,2"},
		{"narrower cuts wide in two", "0123漢", 4, 5, "\rx", "x123 @0,1"},
		{"wider", "a", 4, 20, "\r\t\tb", "a               b @0,17"},
		{"lower, room below", "a\r\nb", 2, 10, "c", "a|bc @1,2"},
		{"lower, the cursor's line stays", "1\r\n2\r\n3\r\n4", 2, 10, "x", "3|4x @1,2"},
		{"higher", "1\r\n2\r\n3\r\n4\r\n5", 6, 10, "x", "2|3|4|5x @3,2"},
		{"the region is the screen again", "\x1b[2;3r1\r\n2\r\n3", 3, 10, "\r\n4", "2|3|4 @2,1"},
		{"the other screen", "1\r\n2\r\n3\r\n4\x1b[?1049h", 2, 10, "\x1b[?1049lx", "3|4x @1,2"},
		{"nothing is something", "ab", 0, -1, "c", "c @0,0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := screen.New(4, 10)
			_, _ = s.Write([]byte(test.raw))
			s.Resize(test.rows, test.cols)
			_, _ = s.Write([]byte(test.then))
			if got := brief(s.Snapshot()); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestSizes(t *testing.T) {
	for _, size := range [][4]int{{0, 0, 1, 1}, {-5, 3, 1, 3}, {1 << 30, 1 << 30, screen.MaxRows, screen.MaxCols}} {
		s := render([]byte("漢x\x1b[9;9H\t\x1b[Zy\x1b[5L\x1b[5@\x1b[5P\x1b[r\x1bM"), size[0], size[1])
		if len(s.Rows) != size[2] || s.CursorRow >= size[2] || s.CursorCol >= size[3] {
			t.Errorf("%v: %d rows, cursor %d,%d", size, len(s.Rows), s.CursorRow, s.CursorCol)
		}
	}
}

// hostile are inputs that cost the most a byte.
var hostile = map[string]string{
	"newlines":       "\n",
	"scroll":         "\x1b[9S",
	"reverse":        "\x1bM",
	"repeat":         "a\x1b[65535b\r",
	"insert mode":    "\x1b[4h\x1b[999Gx\r" + strings.Repeat("a", 500) + "\r" + strings.Repeat("a", 500) + "\r",
	"insert":         "\x1b[999Gx\r\x1b[@",
	"insert lines":   "\x1b[L",
	"erase":          "\x1b[J",
	"fill and erase": "\x1b[999Gx\x1b[2K",
	"tabs":           "\x1b[3g\t\r",
	"reset":          "\x1bc",
	"screens":        "\x1b[?1049h\x1b[?1049l",
	"marks":          "e\u0301",
	"wide":           "漢",
	"binary":         "\xff",
	"titles":         "\x1b]2;\x1b\\",
	"text":           "the quick brown fox jumps over the lazy dog ",
	"colours":        "\x1b[38;5;123mx\x1b[m",
}

// limit is far above what 32 KiB take, so that a slow machine and the race
// detector pass, and far below what a cost that grows with the screen would be.
const limit = 10 * time.Second

func TestHostile(t *testing.T) {
	for name, unit := range hostile {
		raw := []byte(strings.Repeat(unit, 1<<15/len(unit)))
		before := sshdtest.ProcessorTime(t)
		render(raw, screen.MaxRows, screen.MaxCols)
		if took := sshdtest.ProcessorTime(t) - before; took > limit {
			t.Errorf("%s: %v for 32 KiB, want at most %v", name, took, limit)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	for _, size := range [][2]int{{24, 80}, {screen.MaxRows, screen.MaxCols}} {
		for name, unit := range hostile {
			raw := []byte(strings.Repeat(unit, 1<<20/len(unit)))
			b.Run(fmt.Sprintf("%dx%d/%s", size[0], size[1], name), func(b *testing.B) {
				b.SetBytes(int64(len(raw)))
				b.ReportAllocs()
				for b.Loop() {
					render(raw, size[0], size[1])
				}
			})
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, unit := range hostile {
		f.Add([]byte(unit), 4, 10, 1)
	}
	f.Add([]byte("\x1b[?1049h\x1b[2;3r\x1b[?6h漢字\x1b[4h\x1b[1;9Hx\x1b[2P\x1b[@\x1b[X\x1bM\x1b7\x1b8\x1b[?1049l"), 3, 9, 5)
	f.Add([]byte("\x1b]2;title\a\x1b[22;2t\x1b[23;2t\x1b(0qqq\x0e\x1b[!p\x1bc"), 1, 1, 2)
	f.Add([]byte("0123456789漢e\u0301\u0302\t\x1b[Z\x1b[3g\x1bH\b\b\x1b[5b"), 2, 3, 7)
	f.Fuzz(func(t *testing.T, raw []byte, rows, cols, cut int) {
		rows, cols = min(rows, 60), min(cols, 200) // so that more is tried in the time
		whole := render(raw, rows, cols)
		check(t, whole, rows, cols)

		s := screen.New(rows, cols)
		for part := range slices.Chunk(raw, max(1, min(cut, 100))) {
			if n, err := s.Write(part); n != len(part) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
		}
		pieces := s.Snapshot()
		if fmt.Sprint(pieces) != fmt.Sprint(whole) {
			t.Errorf("in pieces of %d: got %+v, want %+v", cut, pieces, whole)
		}
		s.Resize(cols, min(rows, 200))
		_, _ = s.Write(raw)
		check(t, s.Snapshot(), cols, min(rows, 200))
	})
}

// check wants a snapshot that could be shown.
func check(t *testing.T, s screen.Snapshot, rows, cols int) {
	t.Helper()
	rows, cols = max(1, min(rows, screen.MaxRows)), max(1, min(cols, screen.MaxCols))
	if len(s.Rows) != rows {
		t.Errorf("%d rows, want %d", len(s.Rows), rows)
	}
	if s.CursorRow < 0 || s.CursorRow >= rows || s.CursorCol < 0 || s.CursorCol >= cols {
		t.Errorf("cursor at %d,%d of %d×%d", s.CursorRow, s.CursorCol, rows, cols)
	}
	for y, row := range append(s.Rows, s.Title) {
		if !utf8.ValidString(row) || strings.ContainsFunc(row, unicode.IsControl) || y < rows && strings.HasSuffix(row, " ") {
			t.Errorf("row %d is %q", y, row)
		}
		width := 0
		for _, r := range row {
			width += columns(r)
		}
		if y < rows && width > cols {
			t.Errorf("row %d has %d columns, want at most %d: %q", y, width, cols, row)
		}
	}
}

// columns counts as Unicode does, where the screen counts as glibc does; the
// difference is the vowels and finals of Hangul.
func columns(r rune) int {
	if r >= 0x1160 && r <= 0x11ff || r >= 0xd7b0 && r <= 0xd7ff {
		return 0
	}
	return runewidth.RuneWidth(r)
}
