package session

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// keeperShells may be the /bin/sh that a keeper is.
var keeperShells = []string{"dash", "bash", "busybox sh", "ksh93", "mksh", "yash", "zsh --emulate sh"}

// TestSignalsLeaveTheKeeperAsItIs: what a keeper holds for its life is in variables
// of the shell that also looks for whom to signal.
func TestSignalsLeaveTheKeeperAsItIs(t *testing.T) {
	const held = `o=o; e=e; a=a; b=b; d=d; z=z; w=w; h=h; s=s; `
	for _, sh := range keeperShells {
		t.Run(sh, func(t *testing.T) {
			in, out := talk(t, exec.Command("sh", "-c", "exec "+sh+` -c '`+held+`echo up; read -r x; eval "$x"; echo $o $e $a $b $d $z $w $h $s $j'`))
			shell := exec.Command("bash", "-c", "set -m; sleep 100 | sleep 100 & echo up; wait")
			talk(t, shell)
			begun := startTime(t, shell.Process.Pid)
			if _, err := io.WriteString(in, "j="+begun+"; "+signalLine("KILL", scope{run: "r", pid: shell.Process.Pid, id: "none", age: time.Minute})+"\n"); err != nil {
				t.Fatal(err)
			}
			if got, err := out.ReadString('\n'); got != "o e a b d z w h s "+begun+"\n" {
				t.Errorf("it holds %q, %v", got, err)
			}
			if err := shell.Wait(); err != nil {
				t.Errorf("the shell, whose job is to be gone: %v", err)
			}
		})
	}
}

// TestYounger: process numbers tell of two processes of one tick which one is younger than
// the keeper, also where they have begun again at 300 in between.
func TestYounger(t *testing.T) {
	for _, sh := range keeperShells {
		t.Run(sh, func(t *testing.T) {
			t0 := "t0=$((k0 - 9)); "
			for process, want := range map[string]bool{
				"$$ $((k0 + 1))":             true,
				"$$ $((k0 - 1))":             false,
				"$(($$ + 1)) $k0":            true,
				"$(($$ - 1)) $k0":            false,
				"$(($$ + 9000)) $k0":         true,
				"$(($$ - 9000)) $k0":         false,
				"$(($$ - 32000)) $k0":        true,
				"$(($$ + 32000)) $k0":        false,
				"$(($$ - 4000000)) $k0":      true,
				"$(($$ + 4000000)) $k0":      false,
				"$(($$ + 1)) $((k0 - 10))":   false,
				"$(($$ - 32000)) $((t0-1))":  false,
				"$(($$ - 1)) $((k0 + 1000))": true,
			} {
				out, err := exec.Command("sh", "-c", "exec "+sh+` -c '`+younger+"; "+t0+"younger "+process+` && echo yes || echo no'`).CombinedOutput()
				if got := string(out) == "yes\n"; got != want || !got && string(out) != "no\n" {
					t.Errorf("%s: %q, %v, want %v", process, out, err, want)
				}
			}
		})
	}
}

// startTime returns the tick in which a process has started; proc_pid_stat(5).
func startTime(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return fields[19]
}

// talk starts a session of its own that says up.
func talk(t *testing.T, cmd *exec.Cmd) (in io.WriteCloser, out *bufio.Reader) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	must(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	out = bufio.NewReader(stdout)
	if line, err := out.ReadString('\n'); line != "up\n" {
		t.Fatalf("it said %q, %v", line, err)
	}
	return in, out
}
