package daemon_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/transport"
)

// A terminal that gets its size while its shell is being replaced has it in the fresh
// one, and where none comes, who asked for it is told that the session is over.
func TestResizeOfAShellThatIsReplaced(t *testing.T) {
	for _, fails := range []bool{false, true} {
		dir := t.TempDir()
		shell, slow, begun, goOn := filepath.Join(dir, "sh"), filepath.Join(dir, "slow"), filepath.Join(dir, "begun"), filepath.Join(dir, "go")
		script := "#!/bin/sh\n[ ! -e " + slow + " ] || { >" + begun + "; until [ -e " + goOn + " ]; do sleep 0.01; done; read w <" + goOn + "; [ -z \"$w\" ] || exit 1; }\nexec sh \"$@\"\n"
		write := func(name, text string) {
			t.Helper()
			must(t, os.WriteFile(name, []byte(text), 0o700))
		}
		write(shell, script)
		c := start(t, daemon.Config{})("")
		s := open(t, c, api.Open{Shell: shell, Reopen: true})
		write(slow, "")
		begin(t, c, s.ID, api.Run{Text: "exit 3"})
		eventually(t, "a fresh shell starts", func() bool {
			_, err := os.Lstat(begun)
			return err == nil
		})
		resized := make(chan error, 1)
		go func() { resized <- c.Resize(t.Context(), s.ID, transport.Size{Cols: 101, Rows: 33}) }()
		select {
		case err := <-resized:
			t.Errorf("Resize = %v before there is a shell", err)
		case <-time.After(100 * time.Millisecond):
		}
		if fails {
			write(goOn+".new", "no\n")
		} else {
			write(goOn+".new", "\n")
		}
		must(t, os.Rename(goOn+".new", goOn))
		err := <-resized
		if fails {
			if gateway.Code(err) != "session.closed" {
				t.Errorf("Resize = %v, want session.closed", err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("Resize = %v", err)
		}
		command, err := c.Run(t.Context(), s.ID, api.Run{Text: "stty size", TTY: true, Wait: api.Duration(20 * time.Second)})
		if err != nil || command.Result == nil || string(command.Result.Stdout) != "33 101\n" {
			t.Errorf("the fresh shell's terminal: %+v, %v", command.Result, err)
		}
	}
}
