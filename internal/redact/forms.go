package redact

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"net/url"
	"strings"

	"gateway/internal/phrase"
)

// maxTwice is the length in bytes up to which a secret is also looked for as it
// is after two encodings. These are so many that longer ones would cost too
// much memory.
const maxTwice = 4 << 10

// Lines returns the lines of a secret which are secrets of their own, without the
// blanks around them: those of [Min] bytes and more. A secret that is one such line
// has none.
func Lines(secret string) []string {
	var lines []string
	for line := range strings.SplitSeq(secret, "\n") {
		if line = strings.TrimSpace(line); len(line) >= Min && line != secret {
			lines = append(lines, line)
		}
	}
	return lines
}

// forms returns what a secret may look like.
func forms(secret string) []string {
	all := encodings(secret)
	for _, line := range Lines(secret) {
		all = append(all, encodings(line)...)
	}
	if len(secret) <= maxTwice {
		for _, text := range append(Lines(secret), secret) {
			all = append(all, twice(text)...)
		}
	}
	return all
}

func encodings(secret string) []string {
	digits := hex.EncodeToString([]byte(secret))
	all := []string{secret, digits, strings.ToUpper(digits), wrapped(digits, 60)} // xxd -p
	all = append(all, urls(secret)...)
	all = append(all, htmls(secret)...)
	all = append(all, jsons(secret)...)
	all = append(all, shells(secret)...)
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		all = append(all, base64s(encoding, secret)...)
	}
	for _, text := range []string{secret, secret + "\n"} {
		encoded := base64.StdEncoding.EncodeToString([]byte(text))
		all = append(all, wrapped(encoded, 76), wrapped(encoded, 64)) // base64 of GNU and of Python; openssl
	}
	return all
}

// wrapped breaks what an encoder has made of a secret alone into lines.
func wrapped(encoded string, columns int) string {
	var lines []string
	for ; len(encoded) > columns; encoded = encoded[columns:] {
		lines = append(lines, encoded[:columns])
	}
	return strings.Join(append(lines, encoded), "\n")
}

// twice returns what becomes of a secret in JSON that stands in JSON, in HTML,
// in base64 or in a shell's trace, and of a shell's quoting in JSON.
func twice(secret string) []string {
	var all []string
	for _, text := range phrase.Unique(jsons(secret)) { // most secrets look the same in most encodings
		all = append(all, commonJSON(text)...)
		all = append(all, commonShell(text)...)
		all = append(all, base64s(base64.RawStdEncoding, text)...)
		all = append(all, htmls(text)...)
	}
	for _, text := range phrase.Unique(commonShell(secret)) {
		all = append(all, commonJSON(text)...)
	}
	return all
}

// base64s returns the secret as it is in a longer text's base64, of which
// nothing but the place in a group of three is known, and as it is at the end of
// one, alone or with a newline: the last character is the secret's, too, then.
func base64s(encoding *base64.Encoding, secret string) []string {
	padded := encoding.WithPadding(base64.StdPadding)
	var all []string
	for shift := range 3 {
		if form := within(encoding, secret, shift); len(form) >= Min {
			all = append(all, form)
			for _, end := range []string{secret, secret + "\n"} {
				all = append(all, ending(encoding, end, shift), ending(padded, end, shift))
			}
		}
	}
	return all
}

// within returns the characters of a longer text's base64 that depend on the
// secret alone, where shift bytes of a group of three stand in front of it.
func within(encoding *base64.Encoding, secret string, shift int) string {
	bits := 8 * (shift + len(secret))
	return ending(encoding, secret, shift)[:bits/6-(8*shift+5)/6]
}

// ending is within for a secret that ends the text.
func ending(encoding *base64.Encoding, secret string, shift int) string {
	encoded := encoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + secret))
	return encoded[(8*shift+5)/6:]
}

// urls returns the percent-encodings. What they leave alone differs.
func urls(secret string) []string {
	strict := strings.ReplaceAll(url.QueryEscape(secret), "+", "%20") // RFC 3986 section 2.3
	form := url.QueryEscape(secret)
	all := []string{
		strict, form, url.PathEscape(secret),
		url.UserPassword("", secret).String()[1:],
		keeps(strict, "/"),                               // Python's urllib.parse.quote
		keeps(strict, "!'()*"),                           // encodeURIComponent of JavaScript
		keeps(strict, ";/?:@&=+$,#!'()*"),                // its encodeURI
		keeps(strict, ";/?:@&=+$,#!'()*[]%"),             // Python's requests
		strings.ReplaceAll(keeps(form, "*"), "~", "%7E"), // forms of browsers and of Java
		strings.ReplaceAll(form, "~", "%7E"),             // PHP's urlencode
	}
	for _, text := range all {
		all = append(all, lowerHex(text))
	}
	return all
}

// keeps undoes the percent-encoding of some characters.
func keeps(encoded, characters string) string {
	var pairs []string
	for i := range len(characters) {
		pairs = append(pairs, "%"+strings.ToUpper(hex.EncodeToString([]byte{characters[i]})), characters[i:i+1])
	}
	return strings.NewReplacer(pairs...).Replace(encoded)
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

// htmls returns the secret as it is in HTML and XML, where quotes may stay and
// have several names.
func htmls(secret string) []string {
	escaped := html.EscapeString(secret)
	var all []string
	for _, double := range []string{`"`, "&#34;", "&quot;", "&#x22;"} {
		for _, single := range []string{"'", "&#39;", "&#x27;", "&#039;", "&apos;"} {
			all = append(all, strings.NewReplacer("&#34;", double, "&#39;", single).Replace(escaped))
		}
	}
	return all
}
