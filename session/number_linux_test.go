package session_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// TestNumberOfAnother: where a link is lost and nothing is left of its session, the number of that may
// be another one's, which a keeper that comes late does not hang up.
func TestNumberOfAnother(t *testing.T) {
	t.Parallel()
	// A namespace has numbers of its own, and tells the next one.
	space := exec.Command("unshare", "-mpf", "--mount-proc", "--kill-child", "sh", "-c", "echo 100 >/proc/sys/kernel/ns_last_pid && script -qec : /dev/null && echo up && exec cat")
	stdin, err := space.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := space.StdoutPipe()
	if err == nil {
		err = space.Start()
	}
	if err != nil {
		sshdtest.Skip(t, "no unshare(1)")
	}
	t.Cleanup(func() { stdin.Close(); _ = space.Wait() })
	if line, _ := bufio.NewReader(stdout).ReadString('\n'); line != "up\n" {
		sshdtest.Skip(t, "no namespaces here: they take root, unshare(1) and script(1)")
	}
	first, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", space.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	inside := func(command string) string {
		return "exec nsenter -t " + strings.TrimSpace(string(first)) + " -m -p sh -c " + session.Quote(command)
	}
	do := func(command string) string {
		t.Helper()
		out, err := exec.Command("sh", "-c", inside(command)).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v %s", command, err, out)
		}
		return strings.TrimSpace(string(out))
	}

	runtime := t.TempDir()
	tr := local.New(local.Config{Env: []string{"HOME=/", "XDG_RUNTIME_DIR=" + runtime, "SSH_TTY=/dev/pts/another"}})
	var link io.Closer
	s := openOn(t, altered{
		Transport: tr, onPipe: inside, onTerminal: func(command string) string { return inside(recording(command)) },
		pipe: func(_ string, p *transport.Pipe) { link = p.Stdin },
	}, session.Config{})
	number := strings.TrimSpace(string(run(t, s, "echo $$").Stdout))
	eventually(t, "the keeper knows the shell", func() bool {
		frames, _ := filepath.Glob(filepath.Join(runtime, ".gw-*/f"))
		return len(frames) == 1
	})
	do("kill -STOP $(cat " + runtime + "/.gw-*/p)")
	link.Close()
	do("kill -KILL " + number + "; while [ -e /proc/" + number + " ]; do sleep 0.01; done")
	do("echo $((" + number + " - 1)) >/proc/sys/kernel/ns_last_pid; setsid sleep 300 >/dev/null 2>&1 & [ $! = " + number + " ]")
	do("kill -CONT $(cat " + runtime + "/.gw-*/p)")
	s.Close()
	eventually(t, "only the first process lives, and that one, and who looks", func() bool {
		return len(strings.Fields(do("grep -L '^State:.Z' /proc/[0-9]*/status 2>/dev/null || :"))) <= 4
	})
	if left, _ := filepath.Glob(filepath.Join(runtime, ".gw-*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	do("grep '^State:.S' /proc/" + number + "/status")
}
