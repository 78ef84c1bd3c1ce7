package screen_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/internal/screen"
	"gateway/internal/sshdtest"
	"gateway/transport"
	"gateway/transport/local"
)

// patience is how long a program may take to draw.
const patience = 20 * time.Second

// A watched is a program on a real terminal of 24 × 80, and its screen.
type watched struct {
	transport.Terminal
	changed chan struct{} // a token after each change
	ended   chan struct{}

	mu  sync.Mutex
	scr *screen.Screen
	raw []byte
}

// watch starts a command line.
func watch(t *testing.T, line string) *watched {
	t.Helper()
	machine := local.New(local.Config{Dir: t.TempDir(), Shell: "/bin/sh", Env: []string{"LC_ALL=C.UTF-8", "LESS=", "VIMINIT="}})
	t.Cleanup(func() { machine.Close() })
	terminal, err := machine.Terminal(t.Context(), line, transport.TerminalOptions{Term: "xterm-256color", Interactive: true})
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{Terminal: terminal, changed: make(chan struct{}, 1), ended: make(chan struct{}), scr: screen.New(24, 80)}
	go w.read()
	t.Cleanup(func() {
		w.Close()
		<-w.ended
	})
	return w
}

func (w *watched) read() {
	defer close(w.ended)
	buf := make([]byte, 4096)
	for {
		n, err := w.Read(buf)
		w.mu.Lock()
		_, _ = w.scr.Write(buf[:n])
		w.raw = append(w.raw, buf[:n]...)
		w.mu.Unlock()
		select {
		case w.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// until waits for the screen to look as it should.
func (w *watched) until(t *testing.T, what string, ok func(screen.Snapshot) bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		w.mu.Lock()
		s, whole := w.scr.Snapshot(), render(w.raw, 24, 80)
		w.mu.Unlock()
		if !reflect.DeepEqual(s, whole) {
			t.Fatalf("in pieces:\n%s\nas a whole:\n%s", picture(s), picture(whole))
		}
		if ok(s) {
			return
		}
		select {
		case <-w.changed:
		case <-deadline:
			t.Fatalf("waiting for %s, the screen is:\n%s", what, picture(s))
		}
	}
}

func (w *watched) untilEnd(t *testing.T) {
	t.Helper()
	select {
	case <-w.ended:
	case <-time.After(patience):
		t.Fatal("the program does not end")
	}
}

func (w *watched) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := w.Write([]byte(keys)); err != nil {
		t.Fatal(err)
	}
}

func picture(s screen.Snapshot) string {
	return fmt.Sprintf("%s\ncursor %d,%d visible %t alternate %t title %q",
		strings.Join(s.Rows, "\n"), s.CursorRow, s.CursorCol, s.CursorVisible, s.Alternate, s.Title)
}

// need is for programs that the tests can't do without.
func need(t *testing.T, program, debianPackage string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		if program == "busybox" && runtime.GOOS == "darwin" {
			t.Skip("no busybox on macOS")
		}
		sshdtest.Skip(t, "no %s here: install the package %s", program, debianPackage)
	}
}

// numbered is a file whose lines are line 1 … line 100.
func numbered(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	name := filepath.Join(t.TempDir(), "numbered")
	if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func row(n int, text string) func(screen.Snapshot) bool {
	return func(s screen.Snapshot) bool { return s.Rows[n] == text }
}

func TestEditor(t *testing.T) {
	for _, editor := range []string{"busybox vi", "vim -u NONE -N", "nano --ignorercfiles --emptyline"} {
		program, _, _ := strings.Cut(editor, " ")
		t.Run(program, func(t *testing.T) {
			need(t, program, program)
			w := watch(t, "echo before; "+editor+" "+numbered(t)+"; echo after")
			if program == "nano" {
				w.until(t, "the file", row(2, "line 1"))
				w.press(t, "hello 漢 ")
				w.until(t, "the change", func(s screen.Snapshot) bool {
					return s.Rows[2] == "hello 漢 line 1" && s.CursorRow == 2 && s.CursorCol == 9
				})
				w.press(t, "\x18n")
			} else {
				w.until(t, "the file", func(s screen.Snapshot) bool { return s.Rows[0] == "line 1" && s.Rows[22] == "line 23" && s.Alternate })
				w.press(t, "5Gdd")
				w.until(t, "a line less", func(s screen.Snapshot) bool {
					return s.Rows[3] == "line 4" && s.Rows[4] == "line 6" && s.Rows[22] == "line 24"
				})
				w.press(t, "Gohello\x1b")
				w.until(t, "a line more", func(s screen.Snapshot) bool {
					y := slices.Index(s.Rows, "hello") // vi puts it into the middle, vim at the end
					return y > 0 && s.Rows[y-1] == "line 100" && s.CursorRow == y && s.CursorCol == 4
				})
				w.press(t, "1G")
				w.until(t, "the top", func(s screen.Snapshot) bool { return s.Rows[0] == "line 1" && s.CursorRow == 0 })
				w.press(t, ":q!\r")
			}
			w.until(t, "the shell's screen", func(s screen.Snapshot) bool {
				return s.Rows[0] == "before" && s.Rows[1] == "after" && !s.Alternate && s.CursorVisible
			})
		})
	}
}

func TestPager(t *testing.T) {
	for _, pager := range []string{"busybox less", "less"} {
		program, _, _ := strings.Cut(pager, " ")
		t.Run(pager, func(t *testing.T) {
			need(t, program, program)
			w := watch(t, pager+" "+numbered(t))
			w.until(t, "the first page", func(s screen.Snapshot) bool {
				return s.Rows[0] == "line 1" && s.Rows[22] == "line 23" && s.Rows[23] != ""
			})
			w.press(t, " ")
			w.until(t, "the second page", func(s screen.Snapshot) bool { return s.Rows[0] == "line 24" && s.Rows[22] == "line 46" })
			w.press(t, "k")
			w.until(t, "a line back", row(0, "line 23"))
			w.press(t, "G")
			w.until(t, "the end", func(s screen.Snapshot) bool { return slices.Contains(s.Rows[20:23], "line 100") })
			w.press(t, "q")
			w.untilEnd(t)
		})
	}
}

func TestTop(t *testing.T) {
	for _, test := range []struct{ command, heading string }{
		{"busybox top", "PID  PPID USER"},
		{"top -d 1", "PID USER"},
		{"htop --no-mouse", "USER       PRI"}, // whatever a person has it sort by
	} {
		program, _, _ := strings.Cut(test.command, " ")
		t.Run(program, func(t *testing.T) {
			need(t, program, program)
			w := watch(t, test.command)
			w.until(t, "the table", func(s screen.Snapshot) bool {
				y := slices.IndexFunc(s.Rows, func(row string) bool { return strings.Contains(row, test.heading) })
				return y >= 0 && y < 23 && s.Rows[y+1] != ""
			})
			w.press(t, "q")
			w.untilEnd(t)
		})
	}
}

// tput sends what the terminfo entry says, and so does every program that uses
// curses.
func TestTput(t *testing.T) {
	need(t, "tput", "ncurses-bin")
	need(t, "bash", "bash")
	const script = `tput smcup; tput clear; tput cup 4 9; printf X; tput sc; tput home; printf top; tput rc; printf Y
		tput cup 6 0; tput smacs; printf lqk; tput rmacs; printf lqk; tput cup 6 4; tput el
		tput cup 8 0; printf 123456; tput cub 3; tput dch 2; tput cup 9 0; printf 123456; tput hpa 1; tput ech 2; tput ich 1
		tput csr 11 13; tput cup 11 0; printf 'a\nb\nc\nd'; tput cup 11 0; tput ri; printf e; tput csr 0 23
		tput cup 15 0; printf 'f\ng\nh'; tput cup 16 0; tput dl1; tput il 2; tput cup 20 75; printf 1234567
		tput civis; tput smkx; tput cup 23 79; sleep 100`
	w := watch(t, "bash -c '"+strings.ReplaceAll(script, "'", `'\''`)+"'")
	want := make([]string, 24)
	for y, text := range map[int]string{
		0: "top", 4: "         XY", 6: "┌─┐l", 8: "1236", 9: "1   456", 11: "e", 12: "b", 13: "c", 15: "f", 18: "h", 20: "     " + strings.Repeat(" ", 70) + "12345", 21: "67",
	} {
		want[y] = text
	}
	w.until(t, strings.Join(want, "\n"), func(s screen.Snapshot) bool {
		return reflect.DeepEqual(s, screen.Snapshot{
			Rows: want, CursorRow: 23, CursorCol: 79, Alternate: true, ApplicationCursor: true,
		})
	})
}
