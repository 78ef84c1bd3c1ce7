package transfer

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"testing"
	"time"

	"github.com/pkg/sftp"
)

// lent reads all by blocks, of which each is given back while the next one is read, and
// returns it with the length of the longest.
func lent(t *testing.T, from lender, most int64) (all []byte, longest int) {
	t.Helper()
	freed := make(chan []byte, queued)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b := range freed {
			from.free(b)
		}
	}()
	defer func() { close(freed); <-done }()
	for {
		b, err := from.lend(most - int64(len(all)))
		all, longest = append(all, b...), max(longest, len(b))
		freed <- b
		if errors.Is(err, io.EOF) || int64(len(all)) == most {
			return all, longest
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestLend: what a file has comes in its order and block by block, and no more of it than
// the file had.
func TestLend(t *testing.T) {
	content := make([]byte, 5<<20+1)
	for i := range content {
		content[i] = byte(i >> 10)
	}
	path := t.TempDir() + "/file"
	must(t, os.WriteFile(path, content, 0o600))
	far := over(t, sftp.InMemHandler())
	far.link.block = block // as with a server that tells its limits
	part, err := far.Create(t.Context(), Spec{Path: "/file", Perm: 0o644, Size: int64(len(content))})
	if err == nil {
		_, err = part.Write(content)
	}
	if err == nil {
		_, err = part.Finish(t.Context(), Times{Modified: time.Now()})
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() (Content, error){
		"here":  func() (Content, error) { return new(Local).Open(t.Context(), path, Info{}, 0) },
		"there": func() (Content, error) { return far.Open(t.Context(), part.Path(), Info{Size: int64(len(content))}, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, most := range []int64{math.MaxInt64, 3 * block, block + 1, 1} {
				c, err := open()
				if err != nil {
					t.Fatal(err)
				}
				from, lends := c.(lender)
				if lends != (name == "there") {
					t.Errorf("it lends: %v", lends)
				}
				if !lends {
					own := newBlocks(c, &largeBuffers)
					defer own.close()
					from = own
				}
				want := content[:min(most, int64(len(content)))]
				if got, longest := lent(t, from, most); !bytes.Equal(got, want) || longest > block {
					t.Errorf("of %d bytes come %d in blocks of up to %d, the same: %v", len(want), len(got), longest, bytes.Equal(got, want))
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
