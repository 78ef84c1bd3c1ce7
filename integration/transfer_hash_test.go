package integration

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/transfer"
)

// TestTransferHashEnds: what hashes a file on a machine ends with who asked for it,
// and with the link, and nothing is left there.
func TestTransferHashEnds(t *testing.T) {
	for name, start := range map[string]func(testing.TB, sshdtest.Options) *sshdtest.Server{"openssh": sshdtest.Start, "dropbear": sshdtest.StartDropbear} {
		t.Run(name, func(t *testing.T) {
			s := start(t, sshdtest.Options{})
			before := len(s.Processes())
			for what, to := range map[string]int64{"all of it": -1, "what was there": 1 << 40} {
				for how, end := range map[string]func(transfer.Machine, *netsim.Proxy){
					"interrupted": func(m transfer.Machine, _ *netsim.Proxy) { m.Close() },
					"cut":         func(_ transfer.Machine, p *netsim.Proxy) { p.Cut(netsim.RST) },
				} {
					t.Run(what+", "+how, func(t *testing.T) {
						proxy := netsim.Start(t, s.Addr, 0)
						m := filesOf(t, s, proxy.Port())
						givenUp(t, func(path string) { m.Sum(t.Context(), path, 0, to) }, func() { end(m, proxy) })
						eventually(t, "nothing is left", func() bool { return len(s.Processes()) == before })
					})
				}
			}
		})
	}
}

// givenUp has a file read that does not end, and waits for that to be given up.
func givenUp(t *testing.T, read func(path string), end func()) {
	t.Helper()
	path := t.TempDir() + "/endless"
	must(t, syscall.Mkfifo(path, 0o600))
	var reading, ending sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() { read(path) })
	f, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for who reads it
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	defer ending.Wait()
	ending.Go(end)
	must(t, f.SetWriteDeadline(time.Now().Add(20*time.Second)))
	for b := make([]byte, 1<<16); err == nil; {
		_, err = f.Write(b)
	}
	if !errors.Is(err, syscall.EPIPE) {
		t.Errorf("it is read on: %v", err)
	}
}
