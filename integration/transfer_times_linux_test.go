package integration

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/transfer"
)

// The access time is not that of the comparison.
func TestTransferKeepsTimes(t *testing.T) {
	onAll(t, func(t *testing.T, m transfer.Machine) {
		for _, size := range []int{5, 100 << 10} {
			there := t.TempDir()
			path := write(t, t.TempDir()+"/f", strings.Repeat("x", size), 0o600)
			accessed, modified := time.Unix(1_500_000_000, 0), time.Unix(1_400_000_000, 0)
			if err := os.Chtimes(path, accessed, modified); err != nil {
				t.Fatal(err)
			}
			run(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: there, Preserve: true})
			info, err := os.Stat(there + "/f")
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Sys().(*syscall.Stat_t).Atim.Sec; got != accessed.Unix() && got != modified.Unix() || !info.ModTime().Equal(modified) {
				t.Errorf("%d bytes: accessed %d, modified %v", size, got, info.ModTime())
			}
		}
	})
}
