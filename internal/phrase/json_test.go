package phrase_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"gateway/internal/phrase"
)

func TestHalfPair(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       bool
	}{
		{"none", ``, false},
		{"text", `{"a":"ä�"}`, false},
		{"a character", `"\u00e4\u00E4"`, false},
		{"a replacement that is meant", `"\ufffd"`, false},
		{"a pair", `"\ud83d\ude00"`, false},
		{"two pairs", `"\uD83D\uDE00\ud83d\ude00"`, false},
		{"the first half", `"\ud83d"`, true},
		{"the first half, and text", `"\ud83dxude00 and on"`, true},
		{"the first half, and another escape", `"\ud83d\n\ude00"`, true},
		{"the second half", `"\udce9"`, true},
		{"the halves in the wrong order", `"\ude00\ud83d"`, true},
		{"half of it behind a pair", `"\ud83d\ude00\ude00"`, true},
		{"in a name", `{"\udce9":1}`, true},
		{"a backslash, and text", `"\\udce9"`, false},
		{"a backslash, and half a pair", `"\\\udce9"`, true},
		{"beside a backslash in front of a replacement", `"\\ufffd \ud83d"`, true},
		{"cut in an escape", `"\ud8`, false},
		{"cut behind a backslash", `"\`, false},
		{"digits that are none", `"\u+d83"`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := phrase.HalfPair([]byte(tt.text)); got != tt.want {
				t.Errorf("HalfPair(%s) = %v, want %v", tt.text, got, tt.want)
			}
		})
	}
}

// Where there is half a pair, and only there, the decoder makes a replacement.
func FuzzHalfPair(f *testing.F) {
	for _, seed := range []string{`"\ud83d\ude00"`, `"\udce9"`, `"\\udce9"`, `"\ud800\n\ud83d"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var decoded string
		if !utf8.ValidString(text) || strings.Contains(text, "\ufffd") || strings.Contains(strings.ToLower(text), "fffd") || json.Unmarshal([]byte(text), &decoded) != nil {
			return // it is no JSON, or there is one for another reason
		}
		if got, want := phrase.HalfPair([]byte(text)), strings.Contains(decoded, "\ufffd"); got != want {
			t.Errorf("HalfPair(%q) = %v, but it is decoded to %q", text, got, decoded)
		}
	})
}
