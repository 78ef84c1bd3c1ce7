package transporttest

import (
	"io"
	"sync"
	"sync/atomic"
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
	wantOutput(t, pipe.Stdout, every())
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
	wantOutput(t, pipe.Stdout, "before after the end\n")
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
	wantOutput(t, pipe.Stdout, "none\n")
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

// deliver hands what comes to to, whether the stream can do it or has to be read.
func deliver(r io.Reader, to func([]byte)) error {
	if d, ok := r.(transport.Deliverer); ok {
		ended := make(chan error, 1)
		var over atomic.Bool // whatever comes behind it comes in some other goroutine
		d.Deliver(func(b []byte) {
			if over.Load() {
				panic("Deliver hands out bytes behind the end")
			}
			to(b)
		}, func(err error) {
			if over.Swap(true) {
				panic("Deliver ends twice")
			}
			ended <- err
		})
		return <-ended
	}
	for b := make([]byte, 4096); ; {
		n, err := r.Read(b)
		if to(b[:n]); err != nil {
			return err
		}
	}
}

func pipeDelivers(t *testing.T, tr transport.Transport) {
	const text = "seq 100000; echo end"
	want := readAll(t, openPipe(t, tr, text).Stdout)
	pipe := openPipe(t, tr, text)
	got := []byte(readUntil(t, pipe.Stdout, "1\n2"))
	within(t, "the end of the output", func() {
		if err := deliver(pipe.Stdout, func(b []byte) { got = append(got, b...) }); err != io.EOF {
			t.Errorf("Deliver = %v, want io.EOF", err)
		}
	})
	if string(got) != want {
		t.Errorf("%d bytes were delivered, %d can be read", len(got), len(want))
	}
}

func pipeCloseEndsDelivery(t *testing.T, tr transport.Transport) {
	pipe := openPipe(t, tr, "while echo on; do :; done")
	up, ended := make(chan struct{}), make(chan error)
	over := false
	go func() {
		var once sync.Once
		err := deliver(pipe.Stdout, func([]byte) {
			if once.Do(func() { close(up) }); over {
				t.Error("called after the end")
			}
		})
		over = true // the race detector sees a call that is late
		ended <- err
	}()
	within(t, "Close during a delivery", func() {
		<-up
		pipe.Close()
		if err := <-ended; err == nil {
			t.Error("Deliver = nil after Close")
		}
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
	pipe := openPipe(t, tr, "head -c 67108864 /dev/zero")
	checkBackPressure(t, before, pipe.Stdout, 64<<20)
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
