package session

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSignalsLeaveTheKeeperAsItIs: what a keeper holds for its life is in variables
// of the shell that also looks for whom to signal.
func TestSignalsLeaveTheKeeperAsItIs(t *testing.T) {
	const held = `o=o; e=e; a=a; b=b; d=d; z=z; w=w; h=h; s=s; j=j; `
	for _, sh := range []string{"dash", "bash", "busybox sh", "ksh93", "mksh", "yash", "zsh --emulate sh"} {
		t.Run(sh, func(t *testing.T) {
			keeper, in, out := talking(t, "exec "+sh+` -c '`+held+`echo up; read -r x; eval "$x"; echo $o $e $a $b $d $z $w $h $s $j'`)
			shell, _, _ := talking(t, `exec bash -c 'set -m; sleep 100 | sleep 100 & echo up; wait'`)
			if _, err := io.WriteString(in, signalLine("KILL", scope{run: "r", pid: shell.Process.Pid, id: "none", age: time.Minute})+"\n"); err != nil {
				t.Fatal(err)
			}
			if got, err := out.ReadString('\n'); got != "o e a b d z w h s j\n" {
				t.Errorf("it holds %q, %v", got, err)
			}
			if err := shell.Wait(); err != nil {
				t.Errorf("the shell, whose job is to be gone: %v", err)
			}
			in.Close()
			keeper.Wait()
		})
	}
}

// talking starts a session of its own that says up.
func talking(t *testing.T, script string) (*exec.Cmd, io.WriteCloser, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
	})
	out := bufio.NewReader(stdout)
	if line, err := out.ReadString('\n'); strings.TrimSpace(line) != "up" {
		t.Fatalf("it said %q, %v", line, err)
	}
	return cmd, stdin, out
}
