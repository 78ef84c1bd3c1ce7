package sshdtest_test

import (
	"testing"
	"time"

	"gateway/internal/sshdtest"
)

func TestOver(t *testing.T) {
	for _, test := range []struct {
		took time.Duration
		over bool
	}{
		{time.Second, false},
		{17 * time.Second, true}, // on the slowest machine that there may be, too
	} {
		if got := sshdtest.Over(t, test.took, 2*time.Second); got != test.over {
			t.Errorf("Over(%v, 2s) = %v, want %v", test.took, got, test.over)
		}
	}
	if got := sshdtest.Bound(t, time.Second); got < time.Second || got > 8*time.Second {
		t.Errorf("Bound(1s) = %v, want one to eight seconds", got)
	}
}
