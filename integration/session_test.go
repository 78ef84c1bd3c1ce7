package integration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"gateway/daemon/api"
)

// A session keeps its shell between calls on every way to a machine, and a
// person can take it over.
func TestSessionCommands(t *testing.T) {
	t.Parallel()
	for _, place := range places(t) {
		t.Run(place.name, func(t *testing.T) {
			u := newHouse(t)
			u.write(t, ".config/gateway/hosts.yaml", place.inventory())
			u.env = append(u.env, "TERM=xterm")
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

// What is more than one object may hold is read on at its next, also where it is
// the end of much.
func TestSessionReadsInPieces(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.serves(t)
	if o := h.gateway(t, "session", "open", "localhost", "--name", "work"); o.status != 0 {
		t.Fatalf("open: %+v", o)
	}
	if o := h.gateway(t, "session", "exec", "work", "-o", "json", "--", "seq 1 700000"); o.status != 0 {
		t.Fatalf("exec: status %d, %s", o.status, o.stderr)
	}
	var got, want strings.Builder
	for i := 2; i <= 700000; i++ {
		fmt.Fprintln(&want, i)
	}
	for _, from := range []string{"--tail=699999", "--since="} {
		if from == "--since=" {
			from += strconv.Itoa(len("1\n") + got.Len())
		}
		o := h.gateway(t, "session", "read", "work", "-o", "json", from)
		var read struct {
			Pieces []struct{ Data string }
			Next   int
		}
		if err := json.Unmarshal([]byte(o.stdout), &read); err != nil || o.status != 0 {
			t.Fatalf("read %s: status %d, %v, %s", from, o.status, err, o.stderr)
		}
		for _, p := range read.Pieces {
			got.WriteString(p.Data)
		}
		if end := len("1\n") + got.Len(); read.Next != end {
			t.Errorf("read %s: next is %d, want %d", from, read.Next, end)
		}
	}
	if got.String() != want.String() {
		t.Errorf("read %d bytes, want %d", got.Len(), want.Len())
	}
}

// Who watches and reads slowly misses what happened, but no bytes: there is
// nothing to be told of.
func TestWatcherThatIsSlow(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.serves(t)
	c, s := h.session(t, "echo up; read -r x </dev/tty; head -c 4000000 /dev/zero; echo end")
	cmd := h.command(t, "session", "attach", s.ID, "--read-only")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	shown := bufio.NewReader(out)
	for line := ""; line != "up\n"; { // from now on it follows
		if line, err = shown.ReadString('\n'); err != nil {
			t.Fatalf("it shows nothing: %v, %s", err, said.String())
		}
	}
	if w, err := c.Wait(t.Context(), s.ID, api.Wait{Until: api.UntilPrompt, Max: api.Duration(20 * time.Second)}); err != nil || !w.Met {
		t.Fatalf("Wait = %+v, %v", w, err)
	}
	must(t, c.Send(t.Context(), s.ID, api.Input{Text: "on", Enter: true}))
	if w, err := c.Wait(t.Context(), s.ID, api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)}); err != nil || !w.Met {
		t.Fatalf("Wait = %+v, %v", w, err)
	}
	for range 150 { // more than is kept of what happened
		if _, err := c.Run(t.Context(), s.ID, api.Run{Text: ":", Wait: api.Duration(20 * time.Second)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Run(t.Context(), s.ID, api.Run{Text: "echo l''ast", Wait: api.Duration(20 * time.Second)}); err != nil {
		t.Fatal(err)
	}
	var size int
	for line := ""; line != "last\n"; size += len(line) {
		if line, err = shown.ReadString('\n'); err != nil {
			t.Fatalf("it shows no end: %v, %s", err, said.String())
		}
	}
	if _, err := c.Close(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || size < 4_000_000 || strings.Contains(said.String(), "no longer there") {
		t.Errorf("it showed %d bytes and said %q, %v", size, said.String(), err)
	}
}
