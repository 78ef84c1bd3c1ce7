package transfer

import (
	"net"
	"os"
	"testing"

	"github.com/pkg/sftp"

	"gateway/gateway"
)

// TestPartBecomesASymlink: who may put files into a directory may swap what was found of an
// earlier copy for a symlink, and what that leads to is not written to.
func TestPartBecomesASymlink(t *testing.T) {
	near, far := net.Pipe()
	server, err := sftp.NewServer(far)
	if err != nil {
		t.Fatal(err)
	}
	shell := shellHere(t, "stat")
	shell.feeds = make(chan struct{}, 1)
	for name, m := range map[string]Machine{"local": &Local{}, "sftp": remote(t, linkTo(t, server, near, near)), "shell": shell} {
		t.Run(name, func(t *testing.T) {
			dir, secret := t.TempDir(), t.TempDir()+"/secret"
			must(t, os.WriteFile(secret, []byte("secret"), 0o644))
			old := partPath(dir + "/f")
			must(t, os.Symlink(secret, old))
			part, err := m.Create(t.Context(), Spec{Path: dir + "/f", Perm: 0o600, Size: 2 * step, Old: old})
			if gateway.Code(err) != codeUnsafe {
				t.Errorf("%v, want %s", err, codeUnsafe)
			}
			if part != nil {
				part.Abandon(false)
			}
			if b, err := os.ReadFile(secret); string(b) != "secret" {
				t.Errorf("it has %q, %v", b, err)
			}
			if info, err := os.Stat(secret); err != nil || info.Mode() != 0o644 {
				t.Errorf("%v, %v", info, err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || dir+"/"+left[0].Name() != old {
				t.Errorf("%v, %v, want what was there", left, err)
			}
		})
	}
}
