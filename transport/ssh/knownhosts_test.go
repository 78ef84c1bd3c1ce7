package ssh

import (
	"crypto/ed25519"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gossh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"gateway/internal/sshdtest"
)

// numberedKey returns the same ed25519 key for the same number.
func numberedKey(n byte) gossh.PublicKey {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = n
	key, err := gossh.NewPublicKey(ed25519.NewKeyFromSeed(seed).Public())
	if err != nil {
		panic(err)
	}
	return key
}

// keyText is a key as it stands in known_hosts.
func keyText(n byte) string {
	return strings.TrimSpace(string(gossh.MarshalAuthorizedKey(numberedKey(n))))
}

// skText is a key of a security key, made up.
func skText() string {
	blob := gossh.Marshal(struct {
		Type, Key, App string
	}{gossh.KeyAlgoSKED25519, strings.Repeat("k", 32), "ssh:"})
	key, err := gossh.ParsePublicKey(blob)
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(gossh.MarshalAuthorizedKey(key)))
}

func TestParseKnownHosts(t *testing.T) {
	k1, k2 := keyText(1), keyText(2)
	long := "web1," + strings.Repeat("x", maxKnownHostsLine) + " " + k1
	for _, tt := range []struct {
		name, text string
		want       []string // "line marker key number"
		warned     []int
	}{
		{name: "empty"},
		{name: "comments and blanks", text: "# web1 " + k1 + "\n\n  \t\n   # x\n"},
		{name: "plain", text: "web1 " + k1 + "\n", want: []string{"1 0 1"}},
		{name: "no last newline", text: "web1 " + k1, want: []string{"1 0 1"}},
		{name: "CRLF", text: "web1 " + k1 + "\r\nweb1 " + k2 + " a comment\r\n", want: []string{"1 0 1", "2 0 2"}},
		{name: "tabs and indent", text: " \tweb1\t " + strings.Replace(k1, " ", "\t\t", 1) + "\tcomment here\n", want: []string{"1 0 1"}},
		{name: "list", text: "a,web1,b " + k1 + "\nweb2,web11 " + k2 + "\n", want: []string{"1 0 1"}},
		{name: "upper case", text: "WEB1 " + k1 + "\n", want: []string{"1 0 1"}},
		{name: "negation wins wherever it stands", text: "web*,!web1 " + k1 + "\n!web1,web* " + k1 + "\n!web2,web* " + k2 + "\n", want: []string{"3 0 2"}},
		{name: "negation alone", text: "!web2 " + k1 + "\n"},
		{name: "hashed", text: knownhosts.HashHostname("web1") + " " + k1 + "\n" + knownhosts.HashHostname("web2") + " " + k2 + "\n", want: []string{"1 0 1"}},
		{name: "markers", text: "@cert-authority web* " + k1 + "\n@revoked\tweb1 " + k2 + "\n", want: []string{"1 1 1", "2 2 2"}},
		{
			name:   "bad lines hide nothing",
			text:   "@new web1 " + k1 + "\nweb1\nweb1 ssh-ed25519\nweb1 ssh-ed25519 %%%\nweb1 ssh-future AAAA\nweb1 ssh-rsa " + strings.Fields(k1)[1] + "\n|2|x|y " + k1 + "\n|1|x " + k1 + "\nweb1 " + k2 + "\n",
			want:   []string{"9 0 2"},
			warned: []int{1, 2, 3, 4, 5, 6, 7, 8},
		},
		{name: "bad key of another host is nobody's business", text: "web2 ssh-future AAAA\nweb1 " + k1, want: []string{"2 0 1"}},
		{name: "SSH 1", text: "web1 1024 35 1234567\nweb1 " + k1 + "\n", want: []string{"2 0 1"}, warned: []int{1}},
		{name: "two markers", text: "@revoked @cert-authority web1 " + k1 + "\nweb1 " + k2, want: []string{"2 0 2"}},
		{name: "security key", text: "web1 " + skText() + "\nweb1 " + k1, want: []string{"1 0 -", "2 0 1"}},
		{name: "huge line", text: long + "\nweb1 " + k2 + "\n", want: []string{"2 0 2"}, warned: []int{1}},
		{name: "huge last line", text: "web1 " + k2 + "\n" + long, want: []string{"1 0 2"}, warned: []int{2}},
		{name: "several keys", text: "web1 " + k1 + "\nweb1 " + k2 + "\n", want: []string{"1 0 1", "2 0 2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var warned []int
			entries, err := parseKnownHosts(strings.NewReader(tt.text), []string{"web1"}, func(line int, _ string) { warned = append(warned, line) })
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range entries {
				number := "-"
				for n := range byte(3) {
					if sameKey(e.key, numberedKey(n)) {
						number = strconv.Itoa(int(n))
					}
				}
				got = append(got, fmt.Sprintf("%d %d %s", e.line, e.marker, number))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("entries = %q, want %q", got, tt.want)
			}
			if !slices.Equal(warned, tt.warned) {
				t.Errorf("warned of lines %v, want %v", warned, tt.warned)
			}
		})
	}
}

// ssh-keygen -F must find the same lines for every name. It also shows lines
// whose key it cannot read, which are left out here.
func TestKnownHostsLikeSSHKeygen(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		sshdtest.Skip(t, "no ssh-keygen here: install the package openssh-client")
	}
	k1, k2 := keyText(1), keyText(2)
	names := []string{"web1", "web1.example.com", "10.0.0.7", "[10.0.0.7]:2222", "[web1]:2222", "[::1]:22022", "::1", "db-1"}
	files := map[string]string{
		"names":     "web1,10.0.0.7 " + k1 + "\n[10.0.0.7]:2222 " + k2 + "\n::1 " + k1 + "\n[::1]:22022 " + k1 + "\n",
		"wildcards": "*.example.com " + k1 + "\nweb? " + k2 + "\n* " + k1 + "\n10.0.* " + k2 + "\n[10.0.0.*]:2222 " + k1 + "\n[*]:2222 " + k1 + "\n",
		"negation":  "*,!web1 " + k1 + "\n!10.*,* " + k2 + "\n!web1 " + k1 + "\n!*:2222,[*]:* " + k1 + "\n",
		"hashed": knownhosts.HashHostname("web1") + " " + k1 + "\n" + knownhosts.HashHostname("[10.0.0.7]:2222") + " " + k2 + "\n" +
			knownhosts.HashHostname("::1") + " " + k1 + " comment\r\n",
		"markers":  "@cert-authority *.example.com " + k1 + "\n@revoked * " + k2 + "\n", // a tab behind the marker: ssh takes the line for a bad one
		"case":     "WEB1 " + k1 + "\nWeb1.Example.COM " + k2 + "\n",
		"blanks":   "\n# web1 " + k1 + "\n  web1   " + k1 + "  c\n\tdb-1\t" + k2 + "\r\n",
		"bad":      "web1\n@odd web1 " + k1 + "\nweb1 " + k1 + "\nweb1 ssh-future AAAA\n|1|bad|bad " + k1 + "\n,, " + k1 + "\nweb1, " + k2 + "\n",
		"security": "web1 " + skText() + "\n",
		"no end":   "db-1 " + k1 + "\nweb1 " + k2,
	}
	found := regexp.MustCompile(`(?m)^# Host .* found: line (\d+)`)
	for name, text := range files {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "known_hosts")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, host := range names {
				out, _ := exec.Command(keygen, "-F", host, "-f", file).Output() // 1: not found
				var want []int
				for _, m := range found.FindAllStringSubmatch(string(out), -1) {
					line, _ := strconv.Atoi(m[1])
					want = append(want, line)
				}
				entries, err := readKnownHosts(file, []string{host}, func(string, string) {})
				if err != nil {
					t.Fatal(err)
				}
				var got []int
				for _, e := range entries {
					got = append(got, e.line)
				}
				if !slices.Equal(got, want) {
					t.Errorf("lines for %s = %v, ssh-keygen -F has %v", host, got, want)
				}
			}
		})
	}
}

func FuzzKnownHosts(f *testing.F) {
	k1 := keyText(1)
	for _, seed := range []string{
		"", "web1 " + k1, "@revoked * " + k1, "@cert-authority *,!web1 " + k1 + "\r\n", "|1|x|y " + k1, knownhosts.HashHostname("web1") + " " + k1,
		"web1 ssh-rsa AAAA", "[web1]:22 1024 35 77", "@", "|", "!", "web1\t", "\x00\n\xff", "*?*?*?*,!!web1 " + k1, "# x", "web1 " + skText(),
		strings.Repeat("a", 5000), strings.Repeat("web1,", 2000) + " " + k1,
	} {
		f.Add([]byte(seed))
	}
	good := "\nweb1 " + keyText(9) + "\n"
	f.Fuzz(func(t *testing.T, data []byte) {
		text := string(data) + good + string(data)
		lines := strings.Count(string(data), "\n") + 2
		entries, err := parseKnownHosts(strings.NewReader(text), []string{"web1", "[web1]:2222"}, func(int, string) {})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.line == lines && e.marker == markNone && sameKey(e.key, numberedKey(9)) {
				return
			}
		}
		t.Errorf("the good line %d is hidden", lines)
	})
}
