package sshdtest

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// faults are what shells do of their own at an interrupt, and nothing but their end helps
// against: how it looks in /proc, at nearly every look.
var faults = map[string]func(pid string) bool{
	// bash 5.2: an interrupt that comes while wait_for installs its handler, before that
	// has noted the one before it, is raised again by the handler, for ever (jobs.c). The
	// interrupt is pending then. One in some thousand deadlines of a tight loop meets it.
	"bash": func(pid string) bool {
		status, _ := os.ReadFile("/proc/" + pid + "/status")
		_, after, _ := strings.Cut(string(status), "\nShdPnd:\t")
		mask, _, _ := strings.Cut(after, "\n")
		signals, _ := strconv.ParseUint(mask, 16, 64)
		return signals&(1<<(syscall.SIGINT-1)) != 0
	},
	// busybox ash 1.35 with glibc 2.36: its handler leaves a builtin with a longjmp, also
	// out of stdio, between the taking of a stream's lock and the noting of who has it.
	// Then evalbltin waits for that lock in clearerr(stdout), with interrupts held off (ash.c).
	"busybox ash": func(pid string) bool {
		where, _ := os.ReadFile("/proc/" + pid + "/wchan")
		return strings.HasPrefix(string(where), "futex_")
	},
}

// WatchFault watches a shell for a fault of its own that costs its session at an
// interrupt. The returned function, to be called once, ends the watch and reports whether
// it was seen for a second or more.
func WatchFault(shell, pid string) (seen func() bool) {
	shows := faults[shell]
	if shows == nil {
		return func() bool { return false }
	}
	stop, saw := make(chan struct{}), make(chan bool)
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for looks := 0; ; {
			select {
			case <-tick.C:
			case <-stop:
				saw <- looks >= 20
				return
			}
			if shows(pid) {
				looks++
			}
		}
	}()
	return func() bool { close(stop); return <-saw }
}
