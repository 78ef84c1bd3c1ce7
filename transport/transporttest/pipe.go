package transporttest

import (
	"io"
	"testing"
	"time"

	"gateway/transport"
)

func pipeBytes(t *testing.T, tr transport.Transport) {
	pipe := openPipe(t, tr, "tee /dev/stderr")
	go func() {
		io.WriteString(pipe.Stdin, every())
		pipe.Stdin.Close()
	}()
	stderr := make(chan string, 1)
	go func() { b, _ := io.ReadAll(pipe.Stderr); stderr <- string(b) }()
	if got, want := readAll(t, pipe.Stdout), every(); got != want {
		t.Errorf("stdout = %q, want %q", got, want)
	}
	if got, want := <-stderr, every(); got != want {
		t.Errorf("stderr = %q, want %q", got, want)
	}
	wantExit(t, pipe, transport.Exit{})
}

func pipeHalfClose(t *testing.T, tr transport.Transport) {
	pipe := openPipe(t, tr, "cat; echo after the end")
	io.WriteString(pipe.Stdin, "before ")
	if err := pipe.Stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := readAll(t, pipe.Stdout), "before after the end\n"; got != want {
		t.Errorf("stdout = %q, want %q", got, want)
	}
}

func pipeExit(t *testing.T, tr transport.Transport) {
	pipe := openPipe(t, tr, "exit 7")
	readAll(t, pipe.Stdout)
	wantExit(t, pipe, transport.Exit{Code: 7})
}

func pipeSignal(t *testing.T, tr transport.Transport) {
	pipe := openPipe(t, tr, "kill -KILL $$")
	readAll(t, pipe.Stdout)
	wantExit(t, pipe, transport.Exit{Code: 137, Signal: "KILL"})
}

func pipeNoTerminal(t *testing.T, tr transport.Transport) {
	pipe := openPipe(t, tr, `test -t 0 || test -t 1 || test -t 2 || { : </dev/tty; } 2>/dev/null || echo none`)
	if got, want := readAll(t, pipe.Stdout), "none\n"; got != want {
		t.Errorf("stdout = %q, want %q", got, want)
	}
}

func pipeCloseUnblocks(t *testing.T, tr transport.Transport) {
	pipe := openPipe(t, tr, "echo up; exec cat")
	readUntil(t, pipe.Stdout, "up\n")
	within(t, "Close while two reads are pending", func() {
		read := make(chan struct{}, 2)
		for _, r := range []io.Reader{pipe.Stdout, pipe.Stderr} {
			go func() {
				r.Read(make([]byte, 10))
				read <- struct{}{}
			}()
		}
		pipe.Close()
		<-read
		<-read
	})
}

func pipeCloseTwice(t *testing.T, tr transport.Transport) {
	pipe := openPipe(t, tr, "exec cat")
	within(t, "Close twice", func() {
		pipe.Close()
		pipe.Close()
		pipe.Wait()
	})
	if _, err := pipe.Stdin.Write([]byte("x")); err == nil {
		t.Error("Write after Close = nil, want an error")
	}
}

func pipeBackPressure(t *testing.T, tr transport.Transport) {
	before := heap()
	pipe := openPipe(t, tr, "head -c 268435456 /dev/zero")
	checkBackPressure(t, before, pipe.Stdout, 256<<20)
	wantExit(t, pipe, transport.Exit{})
}

// checkBackPressure leaves a fast writer alone until this process's memory
// stands still, and then reads all that it has to say.
func checkBackPressure(t *testing.T, before uint64, r io.Reader, size int) {
	t.Helper()
	const allowed = 16 << 20
	if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	last, still := uint64(0), 0
	for still < 10 {
		<-time.After(10 * time.Millisecond)
		if now := heap(); now <= last+64<<10 {
			still++
		} else {
			last, still = now, 0
		}
		if last > before+allowed {
			t.Fatalf("heap grew from %d to %d bytes while nobody read", before, last)
		}
	}
	buffer := make([]byte, 64<<10)
	for total := 1; ; {
		n, err := r.Read(buffer)
		total += n
		if err == io.EOF {
			if total != size {
				t.Errorf("read %d bytes, want %d", total, size)
			}
			return
		}
		if err != nil {
			t.Fatalf("read: %v after %d bytes", err, total)
		}
	}
}
