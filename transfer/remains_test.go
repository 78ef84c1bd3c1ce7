package transfer

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/pkg/sftp"
)

// TestPartRemains: a part that can neither get its name nor be removed, as in a directory to
// which one may only add, is named.
func TestPartRemains(t *testing.T) {
	from := t.TempDir()
	if err := os.WriteFile(from+"/f", []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func(context.Context, *Remote) error{
		"write": func(ctx context.Context, r *Remote) error { return Write(ctx, r, "/f", []byte("new"), nil) },
		"copy": func(ctx context.Context, r *Remote) error {
			return onlyProblem(ctx, &Copy{From: &Local{}, To: r, Paths: []string{from + "/f"}, Into: "/f"})
		},
	} {
		for _, keeps := range []bool{true, false} {
			memory := sftp.InMemHandler()
			memory.FileCmd = &grudging{FileCmder: memory.FileCmd, refused: []int{1}, keeps: keeps, why: sftp.ErrSSHFxPermissionDenied}
			err := do(t.Context(), over(t, memory))
			if err == nil || strings.Contains(err.Error(), "web1:/.f.gateway-") != keeps {
				t.Errorf("%s, keeps %v: %v", name, keeps, err)
			}
		}
	}
}
