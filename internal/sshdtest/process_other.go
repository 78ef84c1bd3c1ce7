//go:build !linux

package sshdtest

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
)

// dieWithUs does nothing here: a test timeout leaves the server behind.
func dieWithUs() *syscall.SysProcAttr { return nil }

// descendants returns the processes below pid. What has left them for init is
// not found here.
func descendants(pid, _ int) []int {
	out, _ := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	parent := map[int]int{}
	for line := range strings.Lines(string(out)) {
		var p, up int
		if n, _ := fmt.Sscan(line, &p, &up); n == 2 {
			parent[p] = up
		}
	}
	return below(pid, parent)
}
