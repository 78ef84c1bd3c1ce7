package sshdtest

import (
	"os/exec"
	"slices"
	"testing"
	"time"
)

// aStart is what starting a program takes on a machine that has time, and a little more.
const aStart = 1500 * time.Microsecond

// maxSlow is by how much a machine may be slower than that. What takes longer hangs.
const maxSlow = 8

// Over reports whether something has taken longer than it may. The bound is that of a machine
// that has time; one that starts programs more slowly in this moment is given as much more,
// up to eight times. A bound of a test finds what hangs, and measures no machine.
func Over(t testing.TB, took, bound time.Duration) bool {
	t.Helper()
	return took > bound && took > Bound(t, bound)
}

// Bound returns how long something may take in this moment; see [Over].
func Bound(t testing.TB, bound time.Duration) time.Duration {
	t.Helper()
	starts := make([]time.Duration, 15)
	for i := range starts {
		begun := time.Now()
		if err := exec.Command("true").Run(); err != nil {
			t.Errorf("how fast programs start: %v", err)
		}
		starts[i] = time.Since(begun)
	}
	slices.Sort(starts)
	slow := min(maxSlow, max(1, float64(starts[len(starts)/2])/float64(aStart)))
	return time.Duration(float64(bound) * slow)
}

// Eventually waits for a condition, for as long as [Over] allows. It reports whether it holds.
func Eventually(t testing.TB, bound time.Duration, what string, condition func() bool) bool {
	t.Helper()
	for begun := time.Now(); !condition(); <-time.After(10 * time.Millisecond) {
		if Over(t, time.Since(begun), bound) {
			t.Errorf("not within %v: %s", bound, what)
			return false
		}
	}
	return true
}
