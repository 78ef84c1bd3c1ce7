package integration

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// A session keeps its shell between calls on every way to a machine, and a
// person can take it over.
func TestSessionCommands(t *testing.T) {
	for _, place := range places(t) {
		t.Run(place.name, func(t *testing.T) {
			u := place.user(t)
			dir, err := os.MkdirTemp("", "gw") // short: it is a socket's
			if err != nil {
				t.Fatal(err)
			}
			u.env = append(u.env, "GATEWAY_SOCKET="+filepath.Join(dir, "run", "s"), "TERM=xterm")
			t.Cleanup(func() {
				u.gateway(t, "serve", "--stop", "--force")
				os.RemoveAll(dir)
			})
			if o := u.gateway(t, "session", "open", "web1"); o.status != 1 || !strings.Contains(o.stderr, "daemon.unreachable: no daemon runs") {
				t.Errorf("open with CI=true: %+v", o)
			}
			if o := u.gateway(t, "serve"); o.status != 0 {
				t.Fatalf("serve: %+v", o)
			}
			if o := u.gateway(t, "session", "open", "web1", "--name", "work", "-e", "A=1"); o.status != 0 || o.stdout != "work\n" {
				t.Fatalf("open: %+v", o)
			}
			u.gateway(t, "session", "exec", "work", "--", "cd /usr; B=2; echo out; echo err >&2; (exit 3)").want(t, 3, "out\n", "err\n")
			u.gateway(t, "session", "exec", "work", "--", "pwd; echo $A$B").want(t, 0, "/usr\n12\n", "")
			u.gateway(t, "session", "read", "work", "--stream", "stdout").want(t, 0, "out\n/usr\n12\n", "")

			cmd := u.command(t, "session", "attach", "work")
			terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
			if err != nil {
				t.Fatal(err)
			}
			defer terminal.Close()
			shown := shownUntil(t, terminal, "work:/usr$ ")
			press(t, terminal, "cd /; echo at''tached $B\r")
			shown += shownUntil(t, terminal, "attached 2\r\n")
			shown += shownUntil(t, terminal, "work:/$ ")
			press(t, terminal, "\x04")
			shown += shownUntil(t, terminal, "gateway: detached from work")
			if err := cmd.Wait(); err != nil {
				t.Errorf("attach: %v; it showed %q", err, shown)
			}
			u.gateway(t, "session", "exec", "work", "pwd").want(t, 0, "/\n", "")
			u.gateway(t, "session", "close", "work").want(t, 0, "work closed\n", "")
			u.gateway(t, "serve", "--stop")
		})
	}
}

func press(t *testing.T, terminal io.Writer, keys string) {
	t.Helper()
	if _, err := io.WriteString(terminal, keys); err != nil {
		t.Fatal(err)
	}
}

// shownUntil reads what a terminal shows, up to a text.
func shownUntil(t *testing.T, terminal *os.File, text string) string {
	t.Helper()
	var seen []byte
	b := make([]byte, 1)
	stop := time.AfterFunc(15*time.Second, func() { terminal.Close() })
	defer stop.Stop()
	for !bytes.HasSuffix(seen, []byte(text)) {
		if _, err := terminal.Read(b); err != nil {
			t.Fatalf("the terminal shows %q, want %q", seen, text)
		}
		seen = append(seen, b...)
	}
	return string(seen)
}
