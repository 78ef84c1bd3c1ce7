package lab

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// Memory is what processes and their descendants hold, in bytes: the sum of the
// proportional set sizes (proc_pid_smaps(5)), so that what they share counts once. A
// pid of 0 is this process, without its descendants.
func Memory(pids ...int) int64 {
	var sum int64
	for _, pid := range pids {
		if pid == 0 {
			sum += held("self")
			continue
		}
		for _, p := range append(below(pid), pid) {
			sum += held(strconv.Itoa(p))
		}
	}
	return sum
}

// below returns the descendants of a process, as the kernel lists them.
func below(pid int) []int {
	var found []int
	lists, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children") // the pattern is well-formed
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread is over
		}
		for _, word := range bytes.Fields(text) {
			if child, err := strconv.Atoi(string(word)); err == nil {
				found = append(append(found, child), below(child)...)
			}
		}
	}
	return found
}

func held(pid string) int64 {
	text, err := os.ReadFile("/proc/" + pid + "/smaps_rollup")
	if err != nil {
		return 0 // the process is over
	}
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) > 1 && string(f[0]) == "Pss:" {
			kib, _ := strconv.ParseInt(string(f[1]), 10, 64)
			return kib << 10
		}
	}
	return 0
}
