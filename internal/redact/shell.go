package redact

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gateway/internal/phrase"
)

// shells returns how shells write a text: in printf %q, in set -x, and where
// they list variables. It is what bash 5.2, zsh 5.9, ksh93u+m, mksh R59 and
// printf of coreutils 9.1 were seen to do.
func shells(secret string) []string {
	all := commonShell(secret)
	all = append(
		all,
		strings.ReplaceAll(secret, "'", "''"), // zsh with rcquotes, SQL, YAML
		backslashes(secret, "\"$\\`!"),
		rewrite(secret, everywhere), // set -x of bash: [[ x = "$secret" ]]
		bytewise(secret, func(c byte) string { return everywhere(string([]byte{c}), "") }),
	)
	inline := strings.NewReplacer("\\\t", `$'\t'`, "\n", `$'\n'`, "\r", `$'\r'`)
	printed := strings.IndexFunc(secret, func(r rune) bool { return r < ' ' || r >= 0x7f }) < 0
	seen := map[string]bool{}
	for _, meta := range metas {
		for _, more := range []string{"", "#", "~", "#~", "#=~", "#=~@%+:/-"} {
			before := occurring("\t "+meta+more, secret)
			if seen[before] {
				continue
			}
			seen[before] = true
			for _, quoted := range phrase.Unique([]string{backslashes(secret, before), inFront(secret, before), behind(secret, before)}) {
				if all = append(all, quoted); !printed {
					all = append(all, inline.Replace(quoted), unprintable(quoted, false), unprintable(quoted, true))
				}
			}
		}
	}
	if !printed || strings.ContainsAny(secret, `\'!`) {
		for i := range dollars {
			all = append(all, dollars[i].quote(secret))
		}
	}
	const special = "\t\n !\"$&()*;<>?[\\]`{|}"
	all = append(all, sparing(secret, special), sparing(secret, special+"#~=^"), sparing(secret, special+"#~=^\x01\x7f\r"))
	for _, form := range []string{segments(secret, isOther), segments(secret, isHigh)} {
		// Of a text with single quotes, too, it leaves out the first $.
		all = append(all, form, strings.TrimPrefix(form, "'$'"))
	}
	goes := strconv.Quote(secret) // in our own errors
	return append(all, goes[1:len(goes)-1])
}

// metas are what gets a backslash anywhere in a word. # and ~ depend on what
// stands around them, and ! on whether the shell has a history.
var metas = []string{
	"!\"$&'()*,;<>?[\\]^`{|}", // printf %q of bash
	"\"$&'()*;<>?[\\]^`{|}",   // (q) of zsh
	"!\"$&'()*;<>?[\\]^`{|}",
	"$()*<>?[\\]^|",    // patterns in zsh's set -x
	"$&()*;<>?[\\]`|}", // and in ksh93's
}

// commonShell returns what is seen most: quotes by hand, set -x and printf %q of
// bash and dash.
func commonShell(secret string) []string {
	return []string{
		strings.ReplaceAll(secret, "'", `'\''`),
		strings.ReplaceAll(secret, "'", `'"'"'`),
		backslashes(secret, "\"$\\`"),
		backslashes(secret, "\t !\"$&'()*,;<>?[\\]^`{|}"),
		dollars[0].quote(secret), dollars[1].quote(secret),
	}
}

// occurring returns those of some characters that a text has.
func occurring(characters, text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(text, r) {
			return r
		}
		return -1
	}, characters)
}

// backslashes puts one before each of some characters.
func backslashes(s, before string) string {
	return bytewise(s, func(c byte) string {
		if strings.IndexByte(before, c) >= 0 {
			return `\` + string([]byte{c})
		}
		return string([]byte{c})
	})
}

// inFront also puts one before a first character that means something in front
// of a word only.
func inFront(s, before string) string {
	if strings.IndexByte("#~=", s[0]) >= 0 {
		return `\` + s[:1] + backslashes(s[1:], before)
	}
	return backslashes(s, before)
}

// behind also puts one before a ~ that would mean a home directory, as bash does.
func behind(s, before string) string {
	return strings.NewReplacer("=~", `=\~`, ":~", `:\~`).Replace(inFront(s, before))
}

// everywhere puts one before every character but those that bash marks with
// others of its own.
func everywhere(char, _ string) string {
	if char == "\x01" || char == "\x7f" {
		return char
	}
	return `\` + char
}

// sparing puts in quotes only what needs them between two single quotes, as yash
// and zsh's (q-) do.
func sparing(s, special string) string {
	parts := strings.Split(s, "'")
	for i, part := range parts {
		if !strings.ContainsAny(part, special) {
			continue
		}
		if i > 0 {
			part = "'" + part
		}
		if i < len(parts)-1 {
			part += "'"
		}
		parts[i] = part
	}
	return strings.Join(parts, `\'`)
}

func bytewise(s string, escape func(c byte) string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteString(escape(s[i]))
	}
	return b.String()
}

// A dollar is how a shell writes a text in $'…'.
type dollar struct {
	short   string                           // what has a letter: pairs of character and letter
	quote1  string                           // a single quote
	bang    bool                             // a backslash before !
	control func(c byte, rest string) string // a byte of what is not printed
	high    func(char string) bool           // which characters, not of ASCII, are not printed
	wide    func(r rune) string              // how those of UTF-8 are written; nil: byte by byte
}

const letters = "\aa\bb\ff\vv\nn\tt\rr"

var dollars = []dollar{
	{letters + "\x1bE", `\'`, false, octal, isOther, nil},   // bash
	{letters + "\x1bE", `\'`, false, octal, isHigh, nil},    // in the C locale
	{letters + "\x1bE", `\'`, false, octal, isNothing, nil}, // where it prints a character that we don't know
	{letters, `\'`, true, octal, isOther, nil},              // zsh's (qqqq)
	{letters, `\'`, true, octal, isHigh, nil},
	{letters, `\'`, false, octal, isOther, nil},
	{letters, `\'`, false, octal, isHigh, nil},
	{"\nn\tt", `\'`, false, caret, isOther, metaWide}, // zsh's set -x and typeset
	{"\nn\tt", `\'`, false, caret, isHigh, nil},
	{"\aa\bb\ff\nn\tt\rr\x1bE", `\'`, false, hexadecimal, isSpecial, brackets}, // ksh93
	{"\aa\bb\ff\nn\tt\rr\x1bE", `\'`, false, hexadecimal, isHigh, nil},
	{letters + "\x1bE", `\047`, false, octal, isBeyond, fourDigits}, // mksh
	{letters + "\x1bE", `\047`, false, octalC1, isHigh, nil},
}

func (d *dollar) quote(s string) string {
	return rewrite(s, func(char, rest string) string {
		c := char[0]
		switch {
		case c == '\\':
			return `\\`
		case c == '\'':
			return d.quote1
		case c == '!' && d.bang:
			return `\!`
		case c >= utf8.RuneSelf:
			if !d.high(char) {
				return char
			}
		case c >= ' ' && c != 0x7f:
			return char
		}
		if at := strings.IndexByte(d.short, c); at >= 0 && at%2 == 0 {
			return `\` + d.short[at+1:at+2]
		}
		if r, size := utf8.DecodeRuneInString(char); d.wide != nil && size > 1 && r <= 0xffff {
			return d.wide(r)
		}
		var b strings.Builder
		for i := range len(char) {
			b.WriteString(d.control(char[i], char[i+1:]+rest))
		}
		return b.String()
	})
}

func octal(c byte, _ string) string { return fmt.Sprintf(`\%03o`, c) }

// octalC1 is mksh's in the C locale, byte by byte.
func octalC1(c byte, _ string) string {
	if c >= 0xa0 {
		return string([]byte{c})
	}
	return octal(c, "")
}

// caret is zsh's: control and meta.
func caret(c byte, _ string) string {
	text := ""
	if c >= utf8.RuneSelf {
		text, c = `\M-`, c&^utf8.RuneSelf
	}
	switch {
	case c == 0x7f:
		return text + `\C-?`
	case c < ' ':
		return text + `\C-` + string([]byte{c + '@'})
	}
	return text + string([]byte{c})
}

// hexadecimal is ksh93's, which keeps the digits apart from what follows.
func hexadecimal(c byte, rest string) string {
	if rest != "" && strings.IndexByte("0123456789abcdefABCDEF", rest[0]) >= 0 {
		return fmt.Sprintf(`\x[%02x]`, c)
	}
	return fmt.Sprintf(`\x%02x`, c)
}

func brackets(r rune) string { return fmt.Sprintf(`\u[%x]`, r) }

func fourDigits(r rune) string { return fmt.Sprintf(`\u%04x`, r) }

// metaWide is zsh's, which takes the first 256 characters for bytes.
func metaWide(r rune) string {
	if r <= 0xff {
		return caret(byte(r), "")
	}
	return fourDigits(r)
}

// Which characters beyond ASCII a shell does not print depends on the locale.
func isHigh(string) bool    { return true }
func isNothing(string) bool { return false }

// isOther is for UTF-8.
func isOther(char string) bool {
	r, size := utf8.DecodeRuneInString(char)
	return r == utf8.RuneError && size == 1 || !unicode.IsGraphic(r)
}

// isSpecial is ksh93's, which prints no blanks but one.
func isSpecial(char string) bool {
	r, _ := utf8.DecodeRuneInString(char)
	return isOther(char) || !unicode.IsPrint(r)
}

// isBeyond is mksh's: it knows characters of 16 bits.
func isBeyond(char string) bool { return isOther(char) || len(char) > 3 }

// unprintable is for zsh's (q), which writes each byte that is not printed in
// $'…' of its own.
func unprintable(quoted string, c bool) string {
	quoted = strings.ReplaceAll(quoted, "\\\t", "\t")
	return rewrite(quoted, func(char, _ string) string {
		if c := char[0]; c >= ' ' && c < 0x7f {
			return char
		}
		if char[0] >= utf8.RuneSelf && !c && !isOther(char) {
			return char
		}
		if !c && len(char) > 1 {
			return "$'" + bytewise(char, func(c byte) string { return octal(c, "") }) + "'"
		}
		return bytewise(char, func(c byte) string {
			if at := strings.IndexByte(letters, c); at >= 0 && at%2 == 0 {
				return `$'\` + letters[at+1:at+2] + `'`
			}
			return "$'" + octal(c, "") + "'"
		})
	})
}

// segments is what printf %q and ls of coreutils write: quotes, which end where
// $'…' begins.
func segments(s string, high func(char string) bool) string {
	dollar := false
	return rewrite(s, func(char, _ string) string {
		c := char[0]
		other := c < ' ' || c == 0x7f || c >= utf8.RuneSelf && high(char)
		text := ""
		switch {
		case other && !dollar:
			text = `'$'`
		case !other && dollar && c != '\'':
			text = `''`
		}
		dollar = other
		switch {
		case c == '\'':
			return `'\''`
		case !other:
			return text + char
		}
		if at := strings.IndexByte(letters, c); at >= 0 && at%2 == 0 {
			return text + `\` + letters[at+1:at+2]
		}
		return text + bytewise(char, func(c byte) string { return octal(c, "") })
	})
}
