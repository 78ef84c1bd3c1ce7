package transfer

import (
	"context"
	"crypto/sha256"
	"net"
	"os"
	"testing"

	"github.com/pkg/sftp"

	"gateway/transport"
	"gateway/transport/local"
)

// TestSumElsewhere: a relative path begins where the server says, though programs
// begin in another directory that has one of the name.
func TestSumElsewhere(t *testing.T) {
	served, home := t.TempDir(), t.TempDir()
	for dir, text := range map[string]string{served: "right", home: "wrong"} {
		if err := os.WriteFile(dir+"/f", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	near, far := net.Pipe()
	s, err := sftp.NewServer(far, sftp.WithServerWorkingDirectory(served))
	if err != nil {
		t.Fatal(err)
	}
	here := local.New(local.Config{})
	t.Cleanup(func() { here.Close() })
	r := &Remote{name: "web1", link: linkTo(t, s, near, near), hasher: newHasher(func(ctx context.Context, command string) (*transport.Pipe, error) {
		return here.Pipe(ctx, "cd "+quote(home)+"; "+command)
	})}
	t.Cleanup(r.hasher.close)
	if sum, err := r.Sum(t.Context(), "f", 0, -1); err != nil || sum != sha256.Sum256([]byte("right")) {
		t.Errorf("%x, %v, want the hash of what is served", sum, err)
	}
}
