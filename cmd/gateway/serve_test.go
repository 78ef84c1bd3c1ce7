package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"gateway/daemon/client"
	"gateway/internal/socket"
)

// activate is a command of the scripts: activate SOCKET COMMAND... opens the
// socket, starts the command with it as systemd does, and says hello. The
// caller is connected before the command starts.
func activate() {
	path, err := filepath.Abs(os.Args[1])
	if err == nil {
		err = activated(path, os.Args[2:])
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func activated(path string, args []string) error {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	listener.SetUnlinkOnClose(false)
	file, err := listener.File()
	if err != nil {
		return err
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	daemon := exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"`, "sh"}, args...)...)
	daemon.ExtraFiles = []*os.File{file} // as descriptor 3
	daemon.Stderr = os.Stderr
	if err := daemon.Start(); err != nil {
		return err
	}
	file.Close()
	listener.Close() // or the caller would wait for ever if the daemon ends
	c := client.New(func(context.Context) (net.Conn, error) { return conn, nil }, "")
	hello, err := c.Hello(context.Background())
	c.Release()
	fmt.Printf("%+v, %v\n", hello, err)
	return daemon.Wait()
}

// endDaemons ends what a script has left, which it should not.
func endDaemons(t *testing.T, env *testscript.Env) {
	usual, err := socket.Path("", env.Getenv)
	if err != nil {
		t.Error(err)
	}
	for _, path := range []string{usual, filepath.Join(env.WorkDir, "mine", "s")} {
		switch _, err := client.Stop(context.Background(), path, true); {
		case err == nil:
			t.Errorf("a daemon was left at %s", path)
		case !socket.Absent(err):
			t.Errorf("a daemon is left: %v", err)
		}
	}
}
