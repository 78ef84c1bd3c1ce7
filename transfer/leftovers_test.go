package transfer_test

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"gateway/transfer"
)

// noHasher is a machine that runs no program that hashes, and counts what is read of a
// file to be hashed elsewhere.
type noHasher struct {
	*transfer.Local
	read *atomic.Int64
}

func (noHasher) Hashes(context.Context) bool { return false }

func (m noHasher) Sum(ctx context.Context, path string, from, to int64) (transfer.Sum, error) {
	if strings.HasSuffix(path, ".part") {
		m.read.Add(to - from)
	}
	return m.Local.Sum(ctx, path, from, to)
}

// TestPartIsReadBackOnce: what is there of a file is compared without being read again and
// again, where all of it has to come here.
func TestPartIsReadBackOnce(t *testing.T) {
	const size, there, segment = 110 << 20, 101 << 20, 32 << 20
	from := tree(t, map[string]string{"f": ""})
	must(t, os.Truncate(from+"/f", size))
	for _, test := range []struct{ wrong, used, read int64 }{
		{-1, there, there},
		{100<<20 + 1, 100 << 20, there + segment},
		{70 << 20, 70 << 20, there + segment},
		{0, 0, 2 * segment},
	} {
		into := t.TempDir()
		part := into + "/.f.gateway-ABCDEFGHIJ.part"
		must(t, os.WriteFile(part, nil, 0o600))
		must(t, os.Truncate(part, there))
		if test.wrong >= 0 {
			f, err := os.OpenFile(part, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte("x"), test.wrong); err != nil {
				t.Error(err)
			}
			f.Close()
		}
		var read atomic.Int64
		report := (&transfer.Copy{
			From: &transfer.Local{}, To: noHasher{&transfer.Local{}, &read}, Paths: []string{from + "/f"}, Into: into, Resume: true,
		}).Run(t.Context())
		if !report.OK() || report.Resumed != test.used || read.Load() > test.read {
			t.Errorf("wrong at %d: %d MiB used of it, want %d, and %d MiB read, want no more than %d: %+v",
				test.wrong, report.Resumed>>20, test.used>>20, read.Load()>>20, test.read>>20, report)
		}
	}
}
