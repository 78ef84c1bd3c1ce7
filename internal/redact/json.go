package redact

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A jsonStyle is what an encoder writes as \uXXXX beside control characters,
// quotes and backslashes. What is not UTF-8 is written as such.
type jsonStyle struct {
	also  string // characters
	ascii bool   // all that is not ASCII
	slash bool   // "/" becomes "\/"
	upper bool   // hexadecimal digits in upper case
}

const (
	separators = "\u2028\u2029" // ends of lines in JavaScript
	forHTML    = "<>&"
	del        = "\x7f"
)

var jsonStyles = []jsonStyle{
	{},                                       // JavaScript, Python with ensure_ascii=False, Rust
	{upper: true},                            // Jackson
	{also: del},                              // jq
	{also: separators},                       // Go without EscapeHTML
	{also: separators + forHTML},             // Go, Ruby on Rails
	{also: separators + forHTML + "'="},      // Gson
	{ascii: true},                            // Perl
	{ascii: true, upper: true},               // Jackson with ESCAPE_NON_ASCII
	{ascii: true, also: del},                 // Python, jq -a
	{ascii: true, also: del + forHTML + "'"}, // Flask
	{ascii: true, slash: true},               // PHP
	{slash: true},                            // PHP with JSON_UNESCAPED_UNICODE
	{ascii: true, upper: true, also: del + forHTML + "'\"+`"}, // .NET
}

// jsons returns the secret as it is within a string of JSON.
func jsons(secret string) []string {
	all := make([]string, 0, len(jsonStyles))
	for i := range jsonStyles {
		all = append(all, jsonStyles[i].quote(secret))
	}
	return all
}

// commonJSON returns what the most common encoders write.
func commonJSON(text string) []string {
	var all []string
	for _, style := range []jsonStyle{{}, {also: separators + forHTML}, {ascii: true, also: del}} {
		all = append(all, style.quote(text))
	}
	return all
}

func (j *jsonStyle) quote(s string) string {
	digits := `\u%04x`
	if j.upper {
		digits = `\u%04X`
	}
	return rewrite(s, func(char, _ string) string {
		r, _ := utf8.DecodeRuneInString(char)
		switch {
		case r == utf8.RuneError && len(char) == 1:
			return invalidJSON(char, j.ascii, digits)
		case strings.Contains(j.also, char), j.ascii && r >= utf8.RuneSelf:
			var b strings.Builder
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, digits, unit)
			}
			return b.String()
		case char == "/" && j.slash, char == `"`, char == `\`:
			return `\` + char
		case r < ' ':
			if short := strings.IndexByte("\b\t\n\f\r", char[0]); short >= 0 {
				return `\` + "btnfr"[short:short+1]
			}
			return fmt.Sprintf(digits, r)
		}
		return char
	})
}

// invalidJSON returns what becomes of a byte that is no character: Python has it
// as half a surrogate pair, others write that something was there.
func invalidJSON(char string, ascii bool, digits string) string {
	if ascii {
		return fmt.Sprintf(digits, 0xdc00+int(char[0]))
	}
	return `\ufffd`
}

// rewrite puts what escape returns in the place of each character, of which it
// is told the rest of the text, too. A byte that is no part of a character is
// one of its own.
func rewrite(s string, escape func(char, rest string) string) string {
	var b strings.Builder
	for s != "" {
		_, size := utf8.DecodeRuneInString(s)
		b.WriteString(escape(s[:size], s[size:]))
		s = s[size:]
	}
	return b.String()
}
