package daemon

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"gateway/internal/transcript"
)

// What a command may be ahead by is kept, however small the pieces in which it comes.
func TestLeadIsKept(t *testing.T) {
	const limit = 1 << 16
	log, err := transcript.Create(filepath.Join(t.TempDir(), "log"), transcript.Options{Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	for range limit / 16 { // twice as many as are kept
		if _, err := log.Append(0, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if kept := int64(log.End() - log.Start()); log.Start() > 0 && kept < leadOf(limit) {
			t.Fatalf("%d bytes are kept, and a command may be ahead by %d", kept, leadOf(limit))
		}
	}
	if log.Start() == 0 {
		t.Error("nothing was dropped")
	}
}

// An interrupt hurries a command for a while. One that goes on is waited for again.
func TestHurryPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, f := &pace{}, &follower{}
		p.join(f)
		defer p.leave(f)
		held := func() time.Duration {
			begun := time.Now()
			p.hold(t.Context(), 1)
			p.move(f) // it has not stalled
			return time.Since(begun)
		}
		for _, test := range []struct {
			when        string
			after, want time.Duration
		}{
			{"at first", 0, maxStall},
			{"interrupted", 0, endStall},
			{"a while after it", maxStall, maxStall},
		} {
			if test.want == endStall {
				p.hurry()
			}
			<-time.After(test.after)
			if got := held(); got != test.want {
				t.Errorf("%s: held up for %v, want %v", test.when, got, test.want)
			}
		}
	})
}
