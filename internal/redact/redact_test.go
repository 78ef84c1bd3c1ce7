package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"math/rand/v2"
	"net/url"
	"os/exec"
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

// Shells know best how they quote.
func TestShells(t *testing.T) {
	for _, shell := range []struct{ program, script string }{
		{"bash", `printf '%q\n' "$1"; set -x; : "$1"`},
		{"dash", `set -x; : "$1"`},
		{"bash", `x=$1; declare -p x; export -p; set`},
		{"zsh", `print -r -- ${(q)1}; print -r -- ${(qq)1}; print -r -- ${(qqq)1}; set -x; : "$1"`},
	} {
		if _, err := exec.LookPath(shell.program); err != nil {
			continue // the others say enough
		}
		for _, secret := range awkward {
			if strings.ContainsAny(secret, "ü") {
				continue // $'\303\274' depends on the locale
			}
			cmd := exec.Command(shell.program, "-c", shell.script, shell.program, secret)
			cmd.Env = []string{"PATH=/usr/bin:/bin"}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatal(err)
			}
			got := redact.New(secret).String(string(out))
			for line := range strings.Lines(string(out)) {
				if quoted := strings.TrimSpace(line); strings.Contains(got, quoted) && len(secret) > 4 && quoted != ":" && strings.Contains(quoted, secret[:3]) {
					t.Errorf("%s: %q stays in %q", shell.program, secret, line)
				}
			}
			if !strings.Contains(got, redact.Mask) {
				t.Errorf("%s: nothing is masked in %q", shell.program, out)
			}
		}
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
