package main

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Where a signal comes while the source is still being reached, no host was tried, which
// is told also of one host.
func TestCopyEndedBeforeItsSourceIsReached(t *testing.T) {
	for _, test := range []struct{ to, flag, want string }{
		{"here[1-2]:", "-ojsonl", `"counts":{"skipped":2}`},
		{"here[1-2]:", "-otext", "\n  gateway was told to stop (interrupt)\n  here1  skipped, cmd.interrupted\n"},
		{"", "-otext", "hole ! gateway: cmd.interrupted: gateway was told to stop (interrupt)\n"},
	} {
		hole, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer hole.Close()
		home := t.TempDir()
		write(t, filepath.Join(home, ".config/gateway/config.yaml"), "ssh_config: off\nno_daemon: true\n")
		write(t, filepath.Join(home, ".config/gateway/hosts.yaml"), fmt.Sprintf("hosts:\n  hole: {addr: 127.0.0.1, port: %d}\n  \"here[1-2]\": {transport: local}\n", hole.Addr().(*net.TCPAddr).Port))
		cmd := exec.Command("gateway", "cp", "hole:x", test.to+home, test.flag)
		cmd.Env = environ(home)
		out := &strings.Builder{}
		cmd.Stdout, cmd.Stderr = out, out
		must(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		_ = hole.(*net.TCPListener).SetDeadline(time.Now().Add(20 * time.Second))
		conn, err := hole.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		go func() { _, _ = io.Copy(io.Discard, conn) }() // ends with the connection
		send(t, cmd, syscall.SIGINT)
		_ = cmd.Wait()
		if status := cmd.ProcessState.ExitCode(); status != 130 || !strings.Contains(out.String(), test.want) {
			t.Errorf("status %d, %s, want 130 and %s", status, out, test.want)
		}
		if status, out, errs := call(t, home, "hosts", "list", "run:last/failed"); status != 2 {
			t.Errorf("failed are %s, %s, want none", out, errs)
		}
	}
}

// TestLimitMemory: what a copy needs all the time does not have its memory collected all
// the time, and what it needed is collected again.
func TestLimitMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	const least, much = 256 << 20, 400 << 20
	names := make([]byte, much) // of a directory, say; nothing is written to it
	for _, want := range []int64{2 * much, least} {
		runtime.GC()
		limitMemory(least)
		if got := debug.SetMemoryLimit(-1); got < want || got > want+least {
			t.Errorf("the limit is %d MiB, want %d", got>>20, want>>20)
		}
		runtime.KeepAlive(names)
		names = nil
	}
}
