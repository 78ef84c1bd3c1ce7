package ssh_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gossh "golang.org/x/crypto/ssh"

	"gateway/transport/ssh"
)

// BenchmarkKnownHosts is what one host of a fan-out takes to find its line in a file with
// a thousand others.
func BenchmarkKnownHosts(b *testing.B) {
	key := signerOf(1).PublicKey()
	hashed := func(name string) string {
		salt := make([]byte, sha1.Size)
		mac := hmac.New(sha1.New, salt)
		mac.Write([]byte(name))
		return "|1|" + base64.StdEncoding.EncodeToString(salt) + "|" + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	for name, spell := range map[string]func(string) string{"plain": func(name string) string { return name }, "hashed": hashed} {
		b.Run(name, func(b *testing.B) {
			var text strings.Builder
			for i := range 1000 {
				fmt.Fprintf(&text, "%s %s", spell(fmt.Sprintf("[10.0.0.%d]:2222", i)), gossh.MarshalAuthorizedKey(key))
			}
			file := filepath.Join(b.TempDir(), "known_hosts")
			must(b, os.WriteFile(file, []byte(text.String()), 0o600))
			h := &ssh.HostKeys{Name: "web77", Addr: "10.0.0.77", Port: 2222, Files: []string{file}}
			b.ReportAllocs()
			for b.Loop() {
				must(b, h.Callback(context.Background())("", nil, key))
			}
		})
	}
}
