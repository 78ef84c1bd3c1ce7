package phrase_test

import (
	"strings"
	"testing"

	"gateway/internal/phrase"
)

func TestBrief(t *testing.T) {
	for _, tt := range []struct {
		s    string
		most int
		want string
	}{
		{"", 3, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"äöü", 3, "äöü"},
		{"äöüß", 3, "äö…"},
		{"日本語です", 4, "日本語…"},
		{"\xff\xfe\xfd", 3, "\xff\xfe\xfd"},
		{"\xff\xfe\xfd\xfc", 3, "\xff\xfe…"},
		{strings.Repeat("a", 1<<20), 2, "a…"},
	} {
		if got := phrase.Brief(tt.s, tt.most); got != tt.want {
			t.Errorf("Brief(%.20q, %d) = %.20q, want %q", tt.s, tt.most, got, tt.want)
		}
	}
}

func TestEnd(t *testing.T) {
	for _, tt := range []struct {
		s    string
		most int
		want string
	}{
		{"", 3, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "…cd"},
		{"äöü", 3, "äöü"},
		{"äöüß", 3, "…üß"},
		{"\xff\xfe\xfd", 3, "\xff\xfe\xfd"},
		{"\xff\xfe\xfd\xfc", 3, "…\xfd\xfc"},
		{strings.Repeat("a", 1<<20), 2, "…a"},
	} {
		if got := phrase.End(tt.s, tt.most); got != tt.want {
			t.Errorf("End(%.20q, %d) = %.20q, want %q", tt.s, tt.most, got, tt.want)
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
