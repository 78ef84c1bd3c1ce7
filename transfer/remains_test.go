package transfer

import (
	"strings"
	"testing"

	"github.com/pkg/sftp"
)

// TestPartRemains: a part that can neither get its name nor be removed, as in a directory to
// which one may only add, is named.
func TestPartRemains(t *testing.T) {
	for name, do := range placings(t) {
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
