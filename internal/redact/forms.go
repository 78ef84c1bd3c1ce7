package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"strconv"
	"strings"
)

// minLine is the length below which a line of a secret of several lines is no
// secret of its own: keys end in short ones.
const minLine = 8

// forms returns what a secret may look like.
func forms(secret string) []string {
	all := encodings(secret)
	if lines := strings.Split(secret, "\n"); len(lines) > 1 {
		for _, line := range lines {
			if line = strings.TrimSpace(line); len(line) >= minLine {
				all = append(all, encodings(line)...)
			}
		}
	}
	return all
}

func encodings(secret string) []string {
	all := []string{secret, html.EscapeString(secret), hex.EncodeToString([]byte(secret))}
	all = append(all, strings.ToUpper(all[2]))
	for _, quoted := range []string{url.QueryEscape(secret), url.PathEscape(secret), percent(secret)} {
		all = append(all, quoted, lowerHex(quoted))
	}
	all = append(all, quotings(secret)...)
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			if form := within(encoding, secret, shift); len(form) >= Min {
				all = append(all, form)
			}
		}
	}
	return all
}

// within returns the characters of a longer text's base64 that depend on the
// secret alone, where shift bytes of a group of three stand in front of it.
func within(encoding *base64.Encoding, secret string, shift int) string {
	encoded := encoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + secret))
	bits := 8 * (shift + len(secret))
	return encoded[(8*shift+5)/6 : bits/6]
}

// percent is the strictest URL quoting: a blank is no plus (RFC 3986 section
// 2.3).
func percent(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}

// lowerHex writes the hexadecimal digits of %XX in lower case.
func lowerHex(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			b.WriteString(strings.ToLower(s[i : i+3]))
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// quotings returns how shells and JSON write a text.
func quotings(secret string) []string {
	quoted, _ := json.Marshal(secret) // a string: it can't fail
	plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(quoted))
	all := []string{
		string(quoted[1 : len(quoted)-1]), plain[1 : len(plain)-1],
		strings.ReplaceAll(secret, "'", `'\''`), // by hand, and set -x of bash and dash
		strings.ReplaceAll(secret, "'", `'"'"'`),
		strings.ReplaceAll(secret, "'", "''"), // zsh with rcquotes, SQL, YAML
		backslashes(secret, "\"$\\`"),
		backslashes(secret, "\"$\\`!"),
	}
	// printf %q of bash escapes # and ~ in front only, zsh's (q) everywhere.
	const meta = "\t !\"$&'()*,;<>?[\\]^`{|}"
	inline := strings.NewReplacer("\\\t", `$'\t'`, "\n", `$'\n'`, "\r", `$'\r'`)
	for _, more := range []string{"", "#", "#~", "#=~", "#=~@%+:/-"} {
		quoted := backslashes(secret, meta+more)
		all = append(all, quoted, inline.Replace(quoted))
		if strings.IndexByte("#~=", secret[0]) >= 0 {
			all = append(all, `\`+secret[:1]+backslashes(secret[1:], meta+more))
		}
	}
	// $'…' of printf %q and set -x, for what has control characters in it.
	ansi := strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`, "\t", `\t`, "\r", `\r`, "\x1b", `\E`, "\a", `\a`, "\b", `\b`, "\f", `\f`, "\v", `\v`).Replace(secret)
	goes := strconv.Quote(secret) // in our own errors
	return append(all, ansi, goes[1:len(goes)-1])
}

// backslashes puts one before each of some characters.
func backslashes(s, before string) string {
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(before, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
