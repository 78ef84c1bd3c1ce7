package lab

import (
	"time"
)

// Peak looks at the memory of processes until stop is called, which returns the
// most that was seen.
func Peak(pids func() []int) (stop func() int64) {
	end, most := make(chan struct{}), make(chan int64)
	go func() { // ends with stop
		var peak int64
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			peak = max(peak, Memory(pids()...))
			select {
			case <-tick.C:
			case <-end:
				most <- peak
				return
			}
		}
	}()
	return func() int64 {
		close(end)
		return <-most
	}
}
