package phrase

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON is [json.Marshal] for what people may read, too: \u003e for every > is no way
// to show a command.
func JSON(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// HalfPair reports whether a string of a JSON text has half a surrogate pair,
// which is no character (RFC 8259, section 8.2). A decoder puts U+FFFD in its
// place, without a word. Backslashes are in strings only, or it is no JSON.
func HalfPair(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			return false
		}
		text = text[i:]
		switch r := unit(text); {
		case r < 0: // another escape, which may be that of a backslash
			text = text[2:]
		case !utf16.IsSurrogate(r):
			text = text[6:]
		case utf16.DecodeRune(r, unit(text[6:])) == utf8.RuneError: // no pair stands for that one
			return true
		default:
			text = text[12:]
		}
	}
}

// unit returns what the escape means that text begins with; -1 if it is none with
// four digits.
func unit(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}
