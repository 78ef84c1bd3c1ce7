package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/vbauerster/mpb/v8"

	"gateway/internal/screen"
	"gateway/transfer"
)

// A ^C takes the bars away, and what is said then begins a line, however wide the
// terminal is: it shows the ^C itself, where the bars are about to be erased.
func TestInterruptAmidBars(t *testing.T) {
	for _, cols := range []int{80, 60, 40} {
		t.Run(fmt.Sprint(cols), func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "big"), "")
			must(t, os.Truncate(filepath.Join(dir, "big"), 1<<40)) // nobody waits for its end
			p := starts(t, dir, "sh", "-c", `read go; cd "$HOME" && exec gateway cp big localhost:"$PWD/copy"`)
			must(t, pty.Setsize(p.terminal, &pty.Winsize{Rows: 24, Cols: uint16(cols)}))
			p.press("go\r")
			p.expect("  big ")
			p.expect("  big ")   // drawn twice: the first one has been erased
			p.expect("iB / 1.0") // how far it is
			p.press("\x03")
			p.expect("^C")
			p.expect("gateway: copied 0 files")
			p.leaves(130)
			shown := p.screen(24, cols)
			if len(shown) < 2 || shown[0] != "go" || !strings.HasPrefix(shown[1], "localhost ! gateway: cmd.interrupted: ") {
				t.Errorf("the message is not what comes first: %q", shown)
			}
			if text := strings.Join(shown, "\n"); strings.Contains(text, "TiB") || strings.Contains(text, "^C") {
				t.Errorf("the bars are still there: %q", shown)
			}
		})
	}
}

// Without bars nothing draws over the ^C, and what is said then begins a line as well.
func TestInterruptWithoutBars(t *testing.T) {
	home := homeWith(t, "groups: {both: {hosts: [gone, localhost]}}\nhosts: {gone: {addr: 127.0.0.1, port: 1, agent: false}}\n")
	write(t, filepath.Join(home, "big"), "")
	must(t, os.Truncate(filepath.Join(home, "big"), 1<<40))
	p := starts(t, home, "sh", "-c", `cd "$HOME" && CI=true exec gateway cp big @both:"$PWD/copy"`)
	p.expect("gone ! gateway: tcp.refused: ")
	p.expect("\r\n")
	p.press("\x03")
	p.expect("^C\r\n")
	p.expect("gateway: 0 of 2 ok")
	p.leaves(130)
}

// A copy that is given up goes on for a moment behind the end of the bars.
func TestBehindTheBars(t *testing.T) {
	out, _ := outputFile(t)
	c := &copying{app: &app{out: out}, names: []string{"web1", "web2"}}
	b := &bars{copying: c, progress: mpb.New(mpb.WithOutput(out.stdout)), hosts: make(map[int]*hostBars)}
	b.undraw = again(b.draw)
	first := b.watcher(0)
	b.end()
	for _, w := range []transfer.Watcher{first, b.watcher(1)} {
		if w != nil {
			w.Found(barFrom)
			w.Begin("x", barFrom, 0)
			w.Moved("x", barFrom)
			w.End(transfer.Event{Path: "x"})
		}
	}
	b.done(0)
	b.done(1)
}

// drawings takes what is drawn, a piece for each time.
type drawings chan string

func (d drawings) Write(b []byte) (int, error) {
	d <- string(b)
	return len(b), nil
}

// A file's bar stands below its host's, whatever has begun in between.
func TestBarsOfAHost(t *testing.T) {
	out, _ := outputFile(t)
	c := &copying{app: &app{out: out}, names: []string{"web1", "web2"}}
	drawn, refresh := make(drawings, 100), make(chan any)
	b := &bars{copying: c, progress: mpb.New(mpb.WithOutput(drawn), mpb.WithManualRefresh(refresh)), hosts: make(map[int]*hostBars), name: 5}
	b.undraw = again(b.draw)
	web2, web1 := b.watcher(1), b.watcher(0)
	web1.Begin("a", barFrom, 0)
	web2.Begin("b", barFrom, 0)
	web1.Begin("c", barFrom, 0)
	refresh <- nil
	var names []string
	for line := range strings.Lines(<-drawn) {
		names = append(names, strings.Fields(line)[0])
	}
	if want := []string{"web1", "a", "c", "web2", "b"}; !slices.Equal(names, want) {
		t.Errorf("the bars are %q, want %q", names, want)
	}
	b.end()
}

// screen returns the lines of the terminal, as far as there is something on them.
func (p *person) screen(rows, cols int) []string {
	s := screen.New(rows, cols)
	_, _ = s.Write([]byte(p.text())) // never fails
	return slices.DeleteFunc(s.Snapshot().Rows, func(row string) bool { return row == "" })
}
