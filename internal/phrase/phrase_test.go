package phrase_test

import (
	"strings"
	"testing"

	"gateway/internal/phrase"
)

func TestBriefAndEnd(t *testing.T) {
	for _, tt := range []struct {
		s          string
		most       int
		brief, end string
	}{
		{"", 3, "", ""},
		{"abc", 3, "abc", "abc"},
		{"abcd", 3, "ab…", "…cd"},
		{"äöü", 3, "äöü", "äöü"},
		{"äöüß", 3, "äö…", "…üß"},
		{"日本語です", 4, "日本語…", "…語です"},
		{"\xff\xfe\xfd", 3, "\xff\xfe\xfd", "\xff\xfe\xfd"},
		{"\xff\xfe\xfd\xfc", 3, "\xff\xfe…", "…\xfd\xfc"},
		{strings.Repeat("a", 1<<20), 2, "a…", "…a"},
	} {
		if got := phrase.Brief(tt.s, tt.most); got != tt.brief {
			t.Errorf("Brief(%.20q, %d) = %.20q, want %q", tt.s, tt.most, got, tt.brief)
		}
		if got := phrase.End(tt.s, tt.most); got != tt.end {
			t.Errorf("End(%.20q, %d) = %.20q, want %q", tt.s, tt.most, got, tt.end)
		}
	}
}

func TestEnds(t *testing.T) {
	for _, tt := range []struct {
		text       string
		head, tail int
		want       string
	}{
		{"abcdef", 2, 2, "ab|ef"},
		{"aöüb", 2, 2, "a|b"},
		{"aöüb", 1, 3, "a|üb"},
		{"a€b€c", 3, 3, "a|c"},
		{"a€b€c", 4, 4, "a€|€c"},
		{"😀😀", 1, 1, "|"},
		{"😀😀", 5, 2, "😀|"},
		{"x😀y", 2, 2, "x|y"}, // both cuts in one character
		{"x😀y", 4, 1, "x|y"},
		{"\xff\xfe\xfd\xfc", 1, 1, "\xff|\xfc"},
		{"a\xe2\x82b\x82\xacc", 2, 2, "a\xe2|\xacc"}, // no characters
		{"\xc3\xc3\xa4\xa4", 1, 1, "\xc3|\xa4"},
		{"\xed\xa0\x80\xed\xa0\x80", 2, 2, "\xed\xa0|\xa0\x80"}, // half a surrogate pair
		{"a\ufffdb", 2, 1, "a|b"},
		{"€", 1, 1, "|"},
		{"abä", 1, 1, "a|"},
	} {
		whole := []byte(tt.text)
		first, last := phrase.Ends(whole, whole, tt.head, tt.tail)
		if got := string(first) + "|" + string(last); got != tt.want {
			t.Errorf("Ends(%q, %d, %d) = %q, want %q", tt.text, tt.head, tt.tail, got, tt.want)
		}
		begin, end := whole[:min(tt.head+phrase.Margin, len(whole))], whole[max(0, len(whole)-tt.tail-phrase.Margin):]
		first, last = phrase.Ends(begin, end, tt.head, tt.tail)
		if got := string(first) + "|" + string(last); got != tt.want {
			t.Errorf("Ends(%q, %q, %d, %d) = %q, want %q", begin, end, tt.head, tt.tail, got, tt.want)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*", "abc", true},
		{"?", "", false},
		{"?", "a", true},
		{"a*", "abc", true},
		{"*c", "abc", true},
		{"a*c", "abc", true},
		{"a*b", "abc", false},
		{"*b*", "abc", true},
		{"a?c", "abc", true},
		{"a?", "abc", false},
		{"**", "x", true},
		{"*a*a*a", "aaa", true},
		{"*a*a*a*a", "aaa", false},
		{"192.168.*.?", "192.168.10.7", true},
		{"[::1]:*", "[::1]:2222", true},
		{"[ab]", "a", false},
		{strings.Repeat("*a", 60) + "b", strings.Repeat("a", 5000), false}, // exponential if done badly
	} {
		if got := phrase.Match(tt.pattern, tt.s); got != tt.want {
			t.Errorf("Match(%.20q, %.20q) = %v, want %v", tt.pattern, tt.s, got, tt.want)
		}
	}
}

func TestMatchList(t *testing.T) {
	for list, want := range map[string]bool{"": false, "a*": true, "b,a*": true, "!abc": false, "!b": false, "a*,!abc": false, "!abc,a*": false, "a*,!b": true} {
		if got := phrase.MatchList(strings.Split(list, ","), "abc"); got != want {
			t.Errorf("MatchList(%q) = %v, want %v", list, got, want)
		}
	}
}
