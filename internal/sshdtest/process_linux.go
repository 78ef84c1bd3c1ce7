package sshdtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// dieWithUs has the kernel kill the server when the test process dies without
// its cleanups, as it does of a test timeout.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// descendants returns the processes below pid, and those of sessions on port.
// The latter carry the port in SSH_CONNECTION, which sshd and dropbear set;
// nohup and setsid do not take that away.
func descendants(pid, port int) []int {
	mark := fmt.Appendf(nil, " 127.0.0.1 %d\x00", port)
	parent := map[int]int{}
	marked := map[int]bool{}
	for _, dir := range procDirs() {
		p, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		lives := false
		readProc(dir+"/stat", func(stat []byte) {
			// proc_pid_stat(5): the name in parentheses may hold anything; state and ppid follow it.
			after := stat[bytes.LastIndexByte(stat, ')')+1:]
			fields := bytes.Fields(after[:min(len(after), len(" S 4194304 "))])
			if lives = len(fields) >= 2 && fields[0][0] != 'Z' && fields[0][0] != 'X'; lives {
				parent[p], _ = strconv.Atoi(string(fields[1]))
			}
		})
		if !lives {
			continue
		}
		readProc(dir+"/environ", func(env []byte) {
			if i := bytes.Index(env, []byte("SSH_CONNECTION=127.0.0.1 ")); i >= 0 {
				end := bytes.IndexByte(env[i:], 0)
				marked[p] = end >= 0 && bytes.HasSuffix(env[i:i+end+1], mark)
			}
		})
	}
	found := below(pid, parent)
	for p, yes := range marked {
		if yes && p != os.Getpid() {
			found = append(found, p)
		}
	}
	return found
}
