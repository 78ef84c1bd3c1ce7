package transporttest

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"gateway/transport"
)

var plain transport.TerminalOptions

func terminalBytes(t *testing.T, tr transport.Transport) {
	term := openTerminal(t, tr, `read -r line; printf "got %s\nsecond\n" "$line"`, plain)
	typeIn(t, term, "a  b\\c\n")
	wantOutput(t, term, "got a  b\\c\nsecond\n")
}

// A program that was stopped would look like one that has ended.
func terminalNotStopped(t *testing.T, tr transport.Transport) {
	term := openTerminal(t, tr, `echo up; read -r line; echo "got $line"`, plain)
	readUntil(t, term, "up\n")
	typeIn(t, term, "a\x1ab\n")
	wantOutput(t, term, "got a\x1ab\n")
}

func terminalSize(t *testing.T, tr transport.Transport) {
	term := openTerminal(t, tr, `test -t 0 && test -t 1 && test -t 2 && : </dev/tty && stty size && echo "$TERM"`,
		transport.TerminalOptions{Size: transport.Size{Cols: 132, Rows: 43}, Term: "vt220"})
	wantOutput(t, term, "43 132\nvt220\n")
	wantOutput(t, openTerminal(t, tr, `stty size; echo "$TERM"`, plain), "24 80\ndumb\n")
}

func terminalResize(t *testing.T, tr transport.Transport) {
	term := openTerminal(t, tr, `trap "stty size; exit" WINCH; echo up; while :; do sleep 0.02; done`, plain)
	readUntil(t, term, "up\n")
	if err := term.Resize(transport.Size{Cols: 100, Rows: 50}); err != nil {
		t.Fatal(err)
	}
	wantOutput(t, term, "50 100\n")
}

func terminalInteractive(t *testing.T, tr transport.Transport) {
	term := openTerminal(t, tr, `echo up; read -r line; echo "$line"`, transport.TerminalOptions{Interactive: true})
	readUntil(t, term, "up\r\n")
	typeIn(t, term, "typed\r")
	wantOutput(t, term, "typed\r\ntyped\r\n")
}

func terminalExit(t *testing.T, tr transport.Transport) {
	term := openTerminal(t, tr, "exit 7", plain)
	readAll(t, term)
	wantExit(t, term, transport.Exit{Code: 7})
	wantExit(t, term, transport.Exit{Code: 7}) // whoever asks, and however often
}

func terminalSignal(t *testing.T, tr transport.Transport) {
	term := openTerminal(t, tr, "kill -KILL $$", plain)
	readAll(t, term)
	wantExit(t, term, transport.Exit{Code: 137, Signal: "KILL"})
}

func terminalInterrupt(t *testing.T, tr transport.Transport) {
	// Not in the login shell: a ^C that meets bash 5.2 as it begins to wait for a program
	// leaves it waiting for ever, on any terminal (2 of 6,000).
	term := openTerminal(t, tr, `exec sh -c 'trap "echo caught; exit 3" INT; echo up; while :; do sleep 0.02; done'`, plain)
	readUntil(t, term, "up\n")
	typeIn(t, term, "\x03")
	if got := readAll(t, term); !strings.Contains(got, "caught\n") {
		t.Errorf("output = %q, want %q in it", got, "caught\n")
	}
	wantExit(t, term, transport.Exit{Code: 3})
}

func terminalDrains(t *testing.T, tr transport.Transport) {
	const want = 1 << 20
	term := openTerminal(t, tr, "head -c 1048576 /dev/zero | tr '\\0' x", plain)
	if got := readAll(t, term); len(got) != want || strings.Trim(got, "x") != "" {
		t.Errorf("read %d bytes, want %d times x", len(got), want)
	}
	wantExit(t, term, transport.Exit{})
}

func terminalCloseUnblocks(t *testing.T, tr transport.Transport) {
	term := openTerminal(t, tr, "echo up; exec sleep 1000", plain)
	readUntil(t, term, "up\n")
	within(t, "Close while a Read is pending", func() {
		read := make(chan struct{})
		go func() {
			defer close(read)
			term.Read(make([]byte, 10))
		}()
		term.Close()
		<-read
	})
}

func terminalCloseTwice(t *testing.T, tr transport.Transport) {
	term := openTerminal(t, tr, "exec cat", plain)
	within(t, "Close twice", func() {
		term.Close()
		term.Close()
		term.Wait()
	})
	_, read := term.Read(make([]byte, 1))
	_, write := term.Write([]byte("x"))
	for name, err := range map[string]error{"Read": read, "Write": write, "Resize": term.Resize(transport.Size{})} {
		if !errors.Is(err, transport.ErrClosed) {
			t.Errorf("%s after Close = %v, want %v", name, err, transport.ErrClosed)
		}
	}
}

func terminalHangUp(t *testing.T, tr transport.Transport) {
	tag := rand.Text()
	term := openTerminal(t, tr, "export TAG="+tag+"; echo up; sleep 1000; exit", plain)
	readUntil(t, term, "up\n")
	term.Close()
	wantHungUp(t, term)
	gone(t, "the shell and its child gone", tag)
}

func terminalBackPressure(t *testing.T, tr transport.Transport) {
	before := heap()
	term := openTerminal(t, tr, "head -c 67108864 /dev/zero | tr '\\0' x", plain)
	checkBackPressure(t, before, term, 64<<20)
}
