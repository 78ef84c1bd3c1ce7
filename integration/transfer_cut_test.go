package integration

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gateway/gateway"
	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/transfer"
)

// A link that is cut again and again leaves no file under the name, and each
// time the copy goes on where it was.
func TestTransferCut(t *testing.T) {
	const size = 64<<20 + 4321
	large := largeFile(t, size)
	s := sshdtest.Start(t, sshdtest.Options{})
	proxy := netsim.Start(t, s.Addr, 0)
	there := t.TempDir()
	target := filepath.Join(there, "large")
	if err := os.WriteFile(target, []byte("before"), 0o640); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	copyOnce := func(resume bool) *transfer.Report {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		m, err := openFiles(t, s, proxy.Port())
		if err != nil {
			return &transfer.Report{Err: err}
		}
		defer m.Close()
		c := transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{large}, Into: target, Resume: resume}
		return c.Run(ctx)
	}
	var gone int64
	for range 10 {
		proxy.Truncate(netsim.Up, int64(1<<20+random.IntN(9<<20)), []netsim.How{netsim.RST, netsim.FIN}[random.IntN(2)])
		r := copyOnce(true)
		if r.OK() || r.Err == nil {
			t.Fatalf("a link that was cut: %+v", r)
		}
		gone += r.Bytes
		if b, err := os.ReadFile(target); err != nil || string(b) != "before" {
			t.Fatalf("%v: what was there is %d bytes", err, len(b))
		}
	}
	proxy.Truncate(netsim.Up, -1, netsim.RST)
	r := copyOnce(true)
	if !r.OK() || r.Resumed == 0 || r.Resumed+r.Bytes != size {
		t.Errorf("%+v", r)
	}
	t.Logf("%d MiB went before, %d MiB were there, %d MiB went in the end", gone>>20, r.Resumed>>20, r.Bytes>>20)
	sameFiles(t, large, target)
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v: mode %v, want that of the file before", err, info.Mode())
	}
	if entries, err := os.ReadDir(there); err != nil || len(entries) != 1 {
		t.Errorf("%v: left behind: %v", err, entries)
	}
}

// A part that is no beginning of the file is used as far as it is one.
func TestTransferWrongPart(t *testing.T) {
	large := largeFile(t, 70<<20)
	whole, err := os.ReadFile(large)
	if err != nil {
		t.Fatal(err)
	}
	s := sshdtest.Start(t, sshdtest.Options{})
	far := filesOf(t, s, s.Port)
	for _, test := range []struct {
		name    string
		to      transfer.Machine
		damage  int64
		resumed int64
	}{
		{"sound", far, -1, 66 << 20},
		{"a gap near the end", far, 60 << 20, 59 << 20},
		{"in the middle", &transfer.Local{}, 40 << 20, 32 << 20},
		{"at the beginning", &transfer.Local{}, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			there := t.TempDir()
			part := filepath.Join(there, ".large.gateway-OLD.part")
			b := append([]byte(nil), whole[:66<<20+17]...)
			if test.damage >= 0 {
				b[test.damage] ^= 1
			}
			if err := os.WriteFile(part, b, 0o600); err != nil {
				t.Fatal(err)
			}
			r := copyFiles(t, transfer.Copy{From: &transfer.Local{}, To: test.to, Paths: []string{large}, Into: there, Resume: true})
			if r.Resumed != test.resumed {
				t.Errorf("%d bytes were used, want %d", r.Resumed, test.resumed)
			}
			sameFiles(t, large, filepath.Join(there, "large"))
			if entries, err := os.ReadDir(there); err != nil || len(entries) != 1 {
				t.Errorf("%v: left behind: %v", err, entries)
			}
		})
	}
}

// A copy that is interrupted leaves nothing but a part worth keeping.
func TestTransferInterrupted(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	proxy := netsim.Start(t, s.Addr, 10*time.Millisecond)
	for _, test := range []struct {
		name string
		size int
		kept int
	}{{"small", 6 << 20, 0}, {"large", 64 << 20, 1}} {
		t.Run(test.name, func(t *testing.T) {
			large, there := largeFile(t, test.size), t.TempDir()
			m := filesOf(t, s, proxy.Port())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{large}, Into: there, Watch: &moved{limit: int64(test.size) / 2, then: cancel}}
			r := c.Run(ctx)
			if gateway.Code(r.Err) != "cmd.interrupted" || r.Kept != int64(test.kept) {
				t.Errorf("%+v", r)
			}
			entries, err := os.ReadDir(there)
			if err != nil || len(entries) != test.kept {
				t.Errorf("%v: left behind: %v", err, entries)
			}
		})
	}
}

// moved does something when so many bytes have been moved.
type moved struct {
	limit int64
	then  func()
}

func (m *moved) Found(int64)                {}
func (m *moved) Begin(string, int64, int64) {}
func (m *moved) End(transfer.Event)         {}

func (m *moved) Moved(_ string, bytes int) {
	if m.limit -= int64(bytes); m.limit <= 0 {
		m.then()
	}
}
