package ssh_test

import (
	"io"
	"sync"
	"testing"
	"time"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
)

// TestRoundTrips counts what opening costs: one round trip for the channel, one
// for the first output; both channels of a session at once cost no more.
func TestRoundTrips(t *testing.T) {
	const delay = 50 * time.Millisecond
	s := sshdtest.Start(t, sshdtest.Options{})
	p := netsim.Start(t, s.Addr, 0)
	tr := dial(t, behind(p, s))
	output(t, tr, "true")
	p.SetDelay(delay)
	trips := func(f func()) (least float64) { // a busy machine only adds
		for try := range 15 {
			start := time.Now()
			f()
			if got := float64(time.Since(start)) / float64(2*delay); try == 0 || got < least {
				least = got
			}
			if least <= 2.8 {
				break
			}
		}
		return least
	}
	first := func(r io.Reader) {
		if _, err := r.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
	}
	got := trips(func() { first(terminal(t, tr, "echo up; exec cat")) })
	if got > 2.8 {
		t.Errorf("terminal: %.1f round trips to the first output, want 2", got)
	}
	t.Logf("terminal: %.2f round trips", got)
	got = trips(func() {
		var both sync.WaitGroup
		both.Go(func() { first(terminal(t, tr, "echo up; exec cat")) })
		both.Go(func() {
			pipe, err := tr.Pipe(t.Context(), "echo up; exec cat")
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { pipe.Close() })
			first(pipe.Stdout)
		})
		both.Wait()
	})
	if got > 2.8 {
		t.Errorf("terminal and pipe: %.1f round trips to the first output, want 2", got)
	}
	t.Logf("terminal and pipe: %.2f round trips", got)
}

func BenchmarkColdCommand(b *testing.B) {
	s := sshdtest.Start(b, sshdtest.Options{})
	for b.Loop() {
		tr := dial(b, config(s))
		output(b, tr, "true")
		tr.Close()
	}
}

func BenchmarkEcho(b *testing.B) {
	tr := dial(b, config(sshdtest.Start(b, sshdtest.Options{})))
	pipe, err := tr.Pipe(b.Context(), "exec cat")
	if err != nil {
		b.Fatal(err)
	}
	line := []byte("echo hi\n")
	for b.Loop() {
		if _, err := pipe.Stdin.Write(line); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(pipe.Stdout, line); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOutput(b *testing.B) {
	const size = 64 << 20
	tr := dial(b, config(sshdtest.Start(b, sshdtest.Options{})))
	b.SetBytes(size)
	buf := make([]byte, 64<<10)
	for b.Loop() {
		pipe, err := tr.Pipe(b.Context(), "head -c 67108864 /dev/zero")
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{pipe.Stdout}, buf); n != size || err != nil {
			b.Fatal(n, err)
		}
		pipe.Close()
	}
}
