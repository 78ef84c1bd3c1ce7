package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"gateway/internal/redact"
)

func TestString(t *testing.T) {
	for _, test := range []struct {
		name, text, want string
		secrets          []string
	}{
		{"none", "text", "text", nil},
		{"too short", "a yes", "a yes", []string{"yes"}},
		{"alone", "hunter2", "********", []string{"hunter2"}},
		{"twice", "hunter2 and hunter2\n", "******** and ********\n", []string{"hunter2"}},
		{"one behind the other", "hunter2hunter2.", "********.", []string{"hunter2"}},
		{"the beginning only", "hunter", "hunter", []string{"hunter2"}},
		{"the beginning twice", "hunterhunter2", "hunter********", []string{"hunter2"}},
		{"a longer one", "secret secret123 secret12", "******** ******** ********12", []string{"secret", "secret123"}},
		{"one in another", "xsecretx xsecret", "******** x********", []string{"xsecretx", "secret"}},
		{"one over another's end", "abcdefgh!", "********!", []string{"abcdef", "defgh"}},
		{"newline at the end", "pass: hunter2.", "pass: ********.", []string{"hunter2\n"}},
		{"lines", "x first line\ny", "x ********\ny", []string{"first line\nsecond"}},
		{"blanks around it", "[hunter2] [\thunter2 ]", "[********] [********]", []string{"\thunter2 "}},
		{"itself in itself", "abababab", "********", []string{"abab"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			set := redact.New(test.secrets...)
			if got := set.String(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			for size := 1; size <= len(test.text); size++ {
				if got := inPieces(set, test.text, size); got != test.want {
					t.Errorf("in pieces of %d: %q, want %q", size, got, test.want)
				}
			}
		})
	}
	var zero redact.Set
	if zero.String("x") != "x" || (*redact.Set)(nil).String("x") != "x" {
		t.Error("no set changes a text")
	}
}

func inPieces(set *redact.Set, text string, size int) string {
	var out strings.Builder
	stream := set.Stream()
	for len(text) > 0 {
		n := min(size, len(text))
		out.Write(stream.Next([]byte(text[:n])))
		text = text[n:]
	}
	out.Write(stream.Rest())
	return out.String()
}

// awkward are secrets with all that quoting is about.
var awkward = []string{"c0rrect horse'\"$", "p@ss/w+rd=&?#", `back\slash "quote"`, "a<b>c&d'e", "tab\there", "ünïcödé~!", "four", "sp ace%20"}

func TestEncodings(t *testing.T) {
	for _, secret := range awkward {
		set := redact.New(secret)
		quoted, _ := json.Marshal(secret)
		forms := map[string]string{
			"URL query": url.QueryEscape(secret), "URL path": url.PathEscape(secret),
			"hex": hex.EncodeToString([]byte(secret)), "HTML": html.EscapeString(secret), "JSON": string(quoted),
			"single quotes": "'" + strings.ReplaceAll(secret, "'", `'\''`) + "'",
			"base64":        base64.StdEncoding.EncodeToString([]byte(secret)),
			"base64url":     base64.RawURLEncoding.EncodeToString([]byte(secret)),
		}
		for _, end := range []string{secret, secret + "\n"} {
			for _, begin := range []string{"", "x", "xy", "xyz"} {
				for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
					if got := set.String(encoding.EncodeToString([]byte(begin + end))); !strings.HasSuffix(got, redact.Mask) {
						t.Errorf("base64 of %q: %q stays of the end", begin+end, got)
					}
				}
			}
		}
		for name, form := range forms {
			if got := set.String("<" + form + ">"); !strings.Contains(got, redact.Mask) || strings.Contains(got, secret) || len(got) > len(redact.Mask)+10 {
				t.Errorf("%s of %q: %q stays %q", name, secret, form, got)
			}
		}
		for _, around := range []string{"user:", "us:", "u:", ""} {
			whole := base64.StdEncoding.EncodeToString([]byte(around + secret + around))
			if got := set.String(whole); !strings.Contains(got, redact.Mask) {
				t.Errorf("base64 of %q: %q stays", around+secret, got)
			}
		}
	}
}

// Programs break what is longer than a line of theirs.
func TestWrapped(t *testing.T) {
	secret := strings.Repeat("a long t0ken/", 20)
	for _, end := range []string{"", "\n"} {
		for _, test := range []struct {
			program, text string
			columns       int
		}{
			{"base64", base64.StdEncoding.EncodeToString([]byte(secret + end)), 76},
			{"openssl base64", base64.StdEncoding.EncodeToString([]byte(secret + end)), 64},
			{"xxd -p", hex.EncodeToString([]byte(secret + end)), 60},
		} {
			lines := regexp.MustCompile(fmt.Sprintf(".{%d}", test.columns)).ReplaceAllString(test.text, "$0\n")
			if got := redact.New(secret).String(lines); len(got) > len(redact.Mask)+len("0a") {
				t.Errorf("%s: %q stays", test.program, got)
			}
		}
	}
}

// What programs were seen to write of one secret. None of its letters may stay.
func TestForms(t *testing.T) {
	const secret = "alpha\x01bravo/é😀\"charlie'<delta>&echo!*()~;,:@+$= \x7ffoxtrot\\\ngolf"
	words := []string{"alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf"}
	for _, test := range []struct{ program, text string }{
		{"Python json.dumps", `"alpha\u0001bravo/\u00e9\ud83d\ude00\"charlie'<delta>&echo!*()~;,:@+$= \u007ffoxtrot\\\ngolf"`},
		{"Python json.dumps, ensure_ascii=False", `"alpha\u0001bravo/é😀\"charlie'<delta>&echo!*()~;,:@+$= ` + "\x7f" + `foxtrot\\\ngolf"`},
		{"Python urllib.parse.quote", `alpha%01bravo/%C3%A9%F0%9F%98%80%22charlie%27%3Cdelta%3E%26echo%21%2A%28%29~%3B%2C%3A%40%2B%24%3D%20%7Ffoxtrot%5C%0Agolf`},
		{"Python urllib.parse.quote_plus", `alpha%01bravo%2F%C3%A9%F0%9F%98%80%22charlie%27%3Cdelta%3E%26echo%21%2A%28%29~%3B%2C%3A%40%2B%24%3D+%7Ffoxtrot%5C%0Agolf`},
		{"Python html.escape", "alpha\x01bravo/é😀&quot;charlie&#x27;&lt;delta&gt;&amp;echo!*()~;,:@+$= \x7ffoxtrot\\\ngolf"},
		{"Python html.escape, quote=False", "alpha\x01bravo/é😀\"charlie'&lt;delta&gt;&amp;echo!*()~;,:@+$= \x7ffoxtrot\\\ngolf"},
		{"PHP htmlspecialchars", "alpha\x01bravo/é😀&quot;charlie&#039;&lt;delta&gt;&amp;echo!*()~;,:@+$= \x7ffoxtrot\\\ngolf"},
		{"lodash.escape", "alpha\x01bravo/é😀&quot;charlie&#39;&lt;delta&gt;&amp;echo!*()~;,:@+$= \x7ffoxtrot\\\ngolf"},
		{"XML", "alpha\x01bravo/é😀&quot;charlie&apos;&lt;delta&gt;&amp;echo!*()~;,:@+$= \x7ffoxtrot\\\ngolf"},
		{"PHP json_encode", `"alpha\u0001bravo\/\u00e9\ud83d\ude00\"charlie'<delta>&echo!*()~;,:@+$= ` + "\x7f" + `foxtrot\\\ngolf"`},
		{".NET System.Text.Json", `"alpha\u0001bravo/\u00E9\uD83D\uDE00\u0022charlie\u0027\u003Cdelta\u003E\u0026echo!*()~;,:@\u002B$= \u007Ffoxtrot\\\ngolf"`},
		{"Jackson, ESCAPE_NON_ASCII", `"alpha\u0001bravo/\u00E9\uD83D\uDE00\"charlie'<delta>&echo!*()~;,:@+$= ` + "\x7f" + `foxtrot\\\ngolf"`},
		{"Gson", `"alpha\u0001bravo/é😀\"charlie\u0027\u003cdelta\u003e\u0026echo!*()~;,:@+$\u003d ` + "\x7f" + `foxtrot\\\ngolf"`},
		{"Perl JSON::PP, ascii", `"alpha\u0001bravo/\u00e9\ud83d\ude00\"charlie'<delta>&echo!*()~;,:@+$= ` + "\x7f" + `foxtrot\\\ngolf"`},
		{"jq", `"alpha\u0001bravo/é😀\"charlie'<delta>&echo!*()~;,:@+$= \u007ffoxtrot\\\ngolf"`},
		{"Go json", `"alpha\u0001bravo/é😀\"charlie'\u003cdelta\u003e\u0026echo!*()~;,:@+$= ` + "\x7f" + `foxtrot\\\ngolf"`},
		{"JavaScript encodeURIComponent", `alpha%01bravo%2F%C3%A9%F0%9F%98%80%22charlie'%3Cdelta%3E%26echo!*()~%3B%2C%3A%40%2B%24%3D%20%7Ffoxtrot%5C%0Agolf`},
		{"JavaScript encodeURI", `alpha%01bravo/%C3%A9%F0%9F%98%80%22charlie'%3Cdelta%3E&echo!*()~;,:@+$=%20%7Ffoxtrot%5C%0Agolf`},
		{"JavaScript URLSearchParams", `alpha%01bravo%2F%C3%A9%F0%9F%98%80%22charlie%27%3Cdelta%3E%26echo%21*%28%29%7E%3B%2C%3A%40%2B%24%3D+%7Ffoxtrot%5C%0Agolf`},
		{"JSON of JSON", `"{\"p\":\"alpha\\u0001bravo/é😀\\\"charlie'<delta>&echo!*()~;,:@+$= ` + "\x7f" + `foxtrot\\\\\\ngolf\"}"`},
		{"JSON of bash's set -x", `"+ login $'alpha\\001bravo/\u00e9\ud83d\ude00\"charlie\\'<delta>&echo!*()~;,:@+$= \\177foxtrot\\\\\\ngolf'"`},
		{"JSON of single quotes", `"curl -u 'alpha\u0001bravo/é😀\"charlie'\\''<delta>&echo!*()~;,:@+$= ` + "\x7f" + `foxtrot\\\ngolf'"`},
		{"JSON in single quotes", `curl -d '{"p":"alpha\u0001bravo/\u00e9\ud83d\ude00\"charlie'\''<delta>&echo!*()~;,:@+$= \u007ffoxtrot\\\ngolf"}'`},
		{"JSON in an attribute", `{&quot;p&quot;:&quot;alpha\u0001bravo/é😀\&quot;charlie&#39;&lt;delta&gt;&amp;echo!*()~;,:@+$= ` + "\x7f" + `foxtrot\\\ngolf&quot;}`},
	} {
		got := redact.New(secret).String(test.text)
		for _, word := range words {
			if strings.Contains(got, word) {
				t.Errorf("%s: %s stays in %q", test.program, word, got)
			}
		}
	}
	inner, _ := json.Marshal(map[string]string{"password": secret})
	for _, shift := range []string{"", "x", "xy"} {
		got := redact.New(secret).String(base64.StdEncoding.EncodeToString(append([]byte(shift), inner...)))
		if len(got) > 40 {
			t.Errorf("base64 of JSON: %q stays", got)
		}
	}
}

// traces is what shells say of a variable, in every way they have.
var traces = map[string]string{
	"bash": `printf '%q\n' "$1"; echo "${1@Q}" "${1@A}"; x=$1; declare -p x; export x; export -p; set; alias q="$1"; alias q; x=("$1"); declare -p x
		PS4="x "; set -x; : "$1"; [[ x = "$1" ]]; [ "$1" = "" ]; x=$1`,
	"dash": `x=$1; export x; export -p; set; alias q="$1"; alias q; PS4="x "; set -x; : "$1"; x=$1`,
	"zsh": `print -r -- ${(q)1} ${(qq)1} ${(qqq)1} ${(qqqq)1} ${(q-)1} ${(q+)1}; printf '%q\n' "$1"; x=$1; typeset -p x; export x; export -p; set; alias q="$1"; alias q
		PS4="x "; set -x; : "$1"; [[ x = "$1" ]]; x=$1`,
	"ksh93":   `printf '%q\n' "$1"; x=$1; typeset -p x; export x; export -p; set; alias q="$1"; alias q; PS4="x "; set -x; : "$1"; [[ x = "$1" ]]; x=$1`,
	"mksh":    `printf '%q\n' "$1"; x=$1; typeset -p x; export x; export -p; set; alias q="$1"; alias q; PS4="x "; set -x; : "$1"; [[ x = "$1" ]]; x=$1`,
	"yash":    `x=$1; typeset -p x; export x; export -p; set; alias q="$1"; alias q; PS4="x "; set -x; : "$1"; x=$1`,
	"busybox": `x=$1; export x; export -p; set; alias q="$1"; alias q; PS4="x "; set -x; : "$1"; x=$1`,
}

// Shells know best how they quote.
func TestShells(t *testing.T) {
	secrets := append([]string{
		"alpha \x01bravo\x1b[1m\x7fcharlie", "alphaé 'bravo\x01€charlie", "alpha😀bravo\u0085charlie\u00a0x\"", "alpha\xff\x9fbravo\x80charlie ",
		"#alpha=~bravo:~charlie!#^x", "alpha\tbravo'\ncharlie$`", "=alpha\x02" + "2bravo\a\b\f\v\rcharlie", "\x01alpha'\x01\x02'bravo!\x01",
		"alpha'\"$bravo\\`!charlie*?", "alpha<b>'bravo&d'charlie", "alpha(){}[]'bravo;|'charlie,.:@%+-/x", "alpha\xe9'bravo\xe9acharlie",
	}, awkward...)
	for shell, script := range traces {
		if _, err := exec.LookPath(shell); err != nil {
			continue // the others say enough
		}
		for _, locale := range []string{"C", "C.UTF-8"} {
			for _, secret := range secrets {
				args := []string{"-c", script, "shell", secret}
				if shell == "busybox" {
					args = append([]string{"sh"}, args...)
				}
				cmd := exec.Command(shell, args...)
				cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=" + locale}
				// Some can't take some secrets, and say so.
				out, _ := cmd.CombinedOutput()
				got := redact.New(secret).String(string(out))
				if !strings.Contains(got, redact.Mask) {
					t.Errorf("%s, %s: nothing is masked in %q", shell, locale, out)
				}
				for _, word := range []string{"alpha", "bravo", "charlie", secret} {
					for _, written := range []string{word, backslashed(word)} {
						if at := strings.Index(got, written); at >= 0 {
							t.Errorf("%s, %s: of %q stays %q", shell, locale, secret, got[max(0, at-60):min(len(got), at+60)])
							break
						}
					}
				}
			}
		}
	}
}

func backslashed(word string) string {
	var b strings.Builder
	for i := range len(word) {
		b.WriteString(`\` + word[i:i+1])
	}
	return b.String()
}

// Lines are secrets from the length on from which whole secrets are.
func TestLines(t *testing.T) {
	set := redact.New("first line\n  four\t\r\nabc\nseven77\n")
	if got, want := set.String("four abc seven77 Zm91cg=="), "******** abc ******** ********"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := redact.Lines("alone"); got != nil {
		t.Errorf("Lines of one line: %q, want none", got)
	}
}

// A secret of the largest size has every form, and they take little memory.
func TestLongSecret(t *testing.T) {
	var b strings.Builder
	random := rand.New(rand.NewPCG(1, 2))
	for b.Len() < 60<<10 {
		b.WriteByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'\"\\ $<&/\x01"[random.IntN(61)])
	}
	secret := b.String()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	set := redact.New(secret)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 80<<20 {
		t.Errorf("%d MiB for a secret of 60 KiB, want 80 at most", kept>>20)
	}
	quoted, _ := json.Marshal(secret)
	for _, text := range []string{secret, string(quoted[1 : len(quoted)-1]), url.QueryEscape(secret), strings.ReplaceAll(secret, "'", `'\''`)} {
		if got := set.String(text); got != redact.Mask {
			t.Errorf("%.40q… stays as %.80q", text, got)
		}
	}
}

func TestAdd(t *testing.T) {
	set := redact.New()
	stream := set.Stream()
	got := string(stream.Next([]byte("one hunter2 ")))
	set.Add("hunter2")
	got += string(stream.Next([]byte("two hunter2 hun")))
	set.Add("hunter3")
	got += string(stream.Next([]byte("ter3 three")))
	got += string(stream.Rest())
	if want := "one hunter2 two ******** ******** three"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHoldsBackNoMoreThanASecret(t *testing.T) {
	secret := strings.Repeat("ab", 50)
	stream := redact.New(secret).Stream()
	text := strings.Repeat("ab", 49)
	if got := stream.Next([]byte(text)); len(got) != 0 {
		t.Errorf("handed out %q", got)
	}
	if got := string(stream.Next([]byte("-"))); got != text+"-" {
		t.Errorf("got %q, want all of it", got)
	}
	if got := string(stream.Next([]byte("xyz\n"))); got != "xyz\n" {
		t.Errorf("got %q at once, want xyz", got)
	}
}

// reference masks what naive search finds.
func reference(text []byte, secrets []string) []byte {
	hidden := make([]bool, len(text))
	for _, secret := range secrets {
		for i := 0; i+len(secret) <= len(text); i++ {
			if string(text[i:i+len(secret)]) == secret {
				for j := range len(secret) {
					hidden[i+j] = true
				}
			}
		}
	}
	var out []byte
	for i, c := range text {
		switch {
		case !hidden[i]:
			out = append(out, c)
		case i == 0 || !hidden[i-1]:
			out = append(out, redact.Mask...)
		}
	}
	return out
}

// Any pieces give the same, and that is what naive search finds. Letters of the
// secrets are no base64 of each other here.
func FuzzStream(f *testing.F) {
	f.Add([]byte("xx-.-.-.-xx"), "-.-.", ".-.-x", uint64(1))
	f.Fuzz(func(t *testing.T, text []byte, a, b string, seed uint64) {
		only := func(s string) string {
			return strings.Map(func(r rune) rune { return rune("-._~"[uint32(r)%4]) }, s)
		}
		a, b = only(a), only(b)
		if len(a) < redact.Min || len(b) < redact.Min {
			return
		}
		for i := range text {
			text[i] = "-._~\n"[text[i]%5]
		}
		set := redact.New(a, b)
		random := rand.New(rand.NewPCG(seed, 0))
		var got bytes.Buffer
		stream := set.Stream()
		for rest := text; len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			got.Write(stream.Next(rest[:n]))
			rest = rest[n:]
		}
		got.Write(stream.Rest())
		if want := reference(text, []string{a, b}); !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%q without %q, %q: got %q, want %q", text, a, b, got.Bytes(), want)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	line := []byte("Nov 21 16:18:01 web1 app[1234]: GET /index.html?x=1 200 13ms \"Mozilla/5.0\" aGVsbG8gd29ybGQ=\n")
	text := bytes.Repeat(line, 32<<10/len(line))
	stream := redact.New("hunter2hunter2", "c0rrect horse'\"$", "ghp_abcdefghijklmnopqrstuvwxyz0123456789").Stream()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		stream.Next(text)
	}
}
