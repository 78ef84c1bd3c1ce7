// Package transporttest is the contract suite that every transport passes.
package transporttest

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/transport"
)

// patience is how long a test waits for something that must happen.
const patience = 20 * time.Second

// Run checks the contract of the transports that open returns. open registers
// its own cleanup. The programs must run on this machine, because the suite
// looks for what they leave behind.
func Run(t *testing.T, open func(t testing.TB) transport.Transport) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, transport.Transport)
	}{
		{"terminal carries bytes both ways without echo or carriage returns", terminalBytes},
		{"terminal stops no program", terminalNotStopped},
		{"terminal is a terminal of the size asked for", terminalSize},
		{"terminal resizes", terminalResize},
		{"terminal has an interactive mode", terminalInteractive},
		{"terminal reports the exit status", terminalExit},
		{"terminal reports death by signal", terminalSignal},
		{"terminal interrupts with control-C", terminalInterrupt},
		{"terminal drains its output before EOF", terminalDrains},
		{"terminal close unblocks a pending read", terminalCloseUnblocks},
		{"terminal close twice", terminalCloseTwice},
		{"terminal close hangs the program up", terminalHangUp},
		{"terminal bounds its memory", terminalBackPressure},
		{"pipe keeps its streams apart and exact", pipeBytes},
		{"pipe closes stdin alone", pipeHalfClose},
		{"pipe reports the exit status", pipeExit},
		{"pipe reports death by signal", pipeSignal},
		{"pipe has no terminal", pipeNoTerminal},
		{"pipe close unblocks a pending read", pipeCloseUnblocks},
		{"pipe delivers what it would let read", pipeDelivers},
		{"pipe close ends a delivery", pipeCloseEndsDelivery},
		{"pipe close twice", pipeCloseTwice},
		{"pipe bounds its memory", pipeBackPressure},
		{"context that ended opens nothing", endedContext},
		{"NUL bytes are refused, and nothing else is", refusesNUL},
		{"close ends what runs", closeEnds},
		{"200 opens and closes leave nothing", leavesNothing},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(t, open(t))
		})
	}
}

func openTerminal(t *testing.T, tr transport.Transport, command string, options transport.TerminalOptions) transport.Terminal {
	t.Helper()
	term, err := tr.Terminal(t.Context(), command, options)
	if err != nil {
		t.Fatalf("Terminal(%q) = %v", command, err)
	}
	t.Cleanup(func() { term.Close() })
	return term
}

func openPipe(t *testing.T, tr transport.Transport, command string) *transport.Pipe {
	t.Helper()
	pipe, err := tr.Pipe(t.Context(), command)
	if err != nil {
		t.Fatalf("Pipe(%q) = %v", command, err)
	}
	t.Cleanup(func() { pipe.Close() })
	return pipe
}

// within runs f and fails the test when it takes longer than patience.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(patience):
		stacks := make([]byte, 1<<20)
		t.Fatalf("%s did not happen within %v\n%s", what, patience, stacks[:runtime.Stack(stacks, true)])
	}
}

// readAll reads r to its end.
func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	var all []byte
	var err error
	within(t, "the end of the output", func() { all, err = io.ReadAll(r) })
	if err != nil {
		t.Errorf("read: %v", err)
	}
	return string(all)
}

func wantOutput(t *testing.T, r io.Reader, want string) {
	t.Helper()
	if got := readAll(t, r); got != want {
		t.Errorf("output = %q, want %q", got, want)
	}
}

// typeIn types to the program on a terminal.
func typeIn(t *testing.T, term transport.Terminal, text string) {
	t.Helper()
	if _, err := io.WriteString(term, text); err != nil {
		t.Fatal(err)
	}
}

// readUntil reads r until what came ends in suffix, and returns all of it.
func readUntil(t *testing.T, r io.Reader, suffix string) string {
	t.Helper()
	var all []byte
	within(t, strconv.Quote(suffix), func() {
		b := make([]byte, 1)
		for !strings.HasSuffix(string(all), suffix) {
			n, err := r.Read(b)
			if all = append(all, b[:n]...); err != nil {
				t.Errorf("read: %v after %q, want %q", err, all, suffix)
				return
			}
		}
	})
	return string(all)
}

func wantExit(t *testing.T, p transport.Program, want transport.Exit) {
	t.Helper()
	within(t, "the exit", func() {
		got, err := p.Wait()
		if got != want || err != nil {
			t.Errorf("Wait() = %+v, %v, want %+v, nil", got, err, want)
		}
	})
}

// wantHungUp wants a terminal's Wait to tell its owner that he has ended the program.
func wantHungUp(t *testing.T, term transport.Terminal) {
	t.Helper()
	within(t, "the end", func() {
		if exit, err := term.Wait(); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("Wait after Close = %+v, %v, want %v", exit, err, transport.ErrClosed)
		}
	})
}

// every is what no byte of must be changed on a pipe.
func every() string {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}

// eventually polls until the condition holds: there is no event to wait for
// when another process ends.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// gone waits until no process has TAG=tag in its environment. Without a /proc there is
// none: only goroutines and descriptors are counted.
func gone(t *testing.T, what, tag string) {
	t.Helper()
	eventually(t, what, func() bool { return len(sshdtest.WithEnv("TAG="+tag)) == 0 })
}

func endedContext(t *testing.T, tr transport.Transport) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the caller's own")
	cancel(cause)
	if term, err := tr.Terminal(ctx, "true", transport.TerminalOptions{}); !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
		t.Errorf("Terminal = %v, %v, want %v, by %v", term, err, context.Canceled, cause)
	}
	if pipe, err := tr.Pipe(ctx, "true"); !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
		t.Errorf("Pipe = %v, %v, want %v, by %v", pipe, err, context.Canceled, cause)
	}
}

// refusesNUL: sshd ends the whole connection over a text with a NUL byte in it.
func refusesNUL(t *testing.T, tr transport.Transport) {
	beside := openPipe(t, tr, "exec cat")
	var options transport.TerminalOptions
	odd := options
	odd.Term = "a\x00b"
	_, pipe := tr.Pipe(t.Context(), "echo a\x00b")
	_, line := tr.Terminal(t.Context(), "echo a\x00b", options)
	_, term := tr.Terminal(t.Context(), "true", odd)
	errs := map[string]error{"Pipe": pipe, "Terminal": line, "Term": term}
	if over, ok := tr.(interface {
		Subsystem(context.Context, string) (*transport.Pipe, error)
	}); ok {
		_, errs["Subsystem"] = over.Subsystem(t.Context(), "a\x00b")
	}
	for what, err := range errs {
		e, ok := errors.AsType[*transport.Error](err)
		if ok && what == "Subsystem" && e.Code == "file.no_subsystem" { // as of any name
			continue
		}
		if !ok || e.Code != "usage" {
			t.Errorf("%s with a NUL byte = %v, want usage", what, err)
		}
	}
	io.WriteString(beside.Stdin, "still here\n")
	readUntil(t, beside.Stdout, "still here\n")
}

func closeEnds(t *testing.T, tr transport.Transport) {
	tag := rand.Text()
	term := openTerminal(t, tr, "export TAG="+tag+"; echo up; exec cat", transport.TerminalOptions{})
	pipe := openPipe(t, tr, "export TAG="+tag+"; echo up; exec cat")
	readUntil(t, term, "up\n")
	readUntil(t, pipe.Stdout, "up\n")
	within(t, "Close", func() {
		tr.Close()
		tr.Close()
		pipe.Wait()
	})
	wantHungUp(t, term)
	gone(t, "both programs gone", tag)
	if _, err := tr.Pipe(t.Context(), "true"); err == nil {
		t.Error("Pipe after Close = nil, want an error")
	}
}

func leavesNothing(t *testing.T, tr transport.Transport) {
	tag := rand.Text()
	cycle := func() {
		term := openTerminal(t, tr, "export TAG="+tag+"; exec cat", transport.TerminalOptions{})
		pipe := openPipe(t, tr, "export TAG="+tag+"; exec cat")
		term.Close()
		pipe.Close()
	}
	cycle() // what is opened once and kept
	goroutines, descriptors := runtime.NumGoroutine(), countDescriptors(t)
	for range 200 {
		cycle()
	}
	gone(t, "no process left", tag)
	eventually(t, "no goroutine left", func() bool { return runtime.NumGoroutine() <= goroutines })
	eventually(t, "no descriptor left", func() bool { return countDescriptors(t) <= descriptors })
}

func countDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// heap returns the bytes of the heap in use after a collection.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
