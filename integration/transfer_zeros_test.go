package integration

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"gateway/transfer"
)

// TestTransferInterruptedZeros: what is kept of a file of zeros is gone on with.
func TestTransferInterruptedZeros(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, m transfer.Machine) {
		path, there := write(t, t.TempDir()+"/zeros", "", 0o600), t.TempDir()
		must(t, os.Truncate(path, 96<<20))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		// Of what was written to a program, 2 MiB and more may be under way.
		c := transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: there, Watch: &moved{12 << 20, cancel}}
		r := c.Run(ctx)
		parts, err := filepath.Glob(there + "/.zeros.*.part")
		if err != nil || r.Kept != 1 || len(parts) != 1 {
			t.Fatalf("%+v, parts %q, %v", r, parts, err)
		}
		if info, err := os.Stat(parts[0]); err != nil || info.Size() < 8<<20 {
			t.Errorf("the part has %d bytes, %v", info.Size(), err)
		}
		c.Resume, c.Watch = true, nil
		if r := copyFiles(t, c); r.Resumed < 8<<20 {
			t.Errorf("%+v", r)
		}
		sameFiles(t, path, there+"/zeros")
	})
}
