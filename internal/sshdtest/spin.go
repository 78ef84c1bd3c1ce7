package sshdtest

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// WatchSpin watches a shell for a fault of bash 5.2, which nothing but its end helps
// against: an interrupt that comes while wait_for installs its handler, before that has
// noted the one before it, is raised again by the handler, for ever (jobs.c). One in some
// thousand deadlines of a tight loop meets it. The interrupt is pending then nearly
// whenever one looks. The returned function, to be called once, ends the watch and
// reports whether it was seen.
func WatchSpin(pid string) (seen func() bool) {
	stop, spun := make(chan struct{}), make(chan bool)
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for pending := 0; ; {
			select {
			case <-tick.C:
			case <-stop:
				spun <- pending >= 20 // of some sixty
				return
			}
			status, _ := os.ReadFile("/proc/" + pid + "/status")
			_, after, _ := strings.Cut(string(status), "\nShdPnd:\t")
			mask, _, _ := strings.Cut(after, "\n")
			if signals, _ := strconv.ParseUint(mask, 16, 64); signals&(1<<(syscall.SIGINT-1)) != 0 {
				pending++
			}
		}
	}()
	return func() bool { close(stop); return <-spun }
}
