package integration

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
	"gateway/transport/ssh"
)

// soak is how long the long tests are to take, as GATEWAY_SOAK says. Zero is
// what a run of all tests has: their quick form.
var soak, _ = time.ParseDuration(os.Getenv("GATEWAY_SOAK"))

// soakSeed returns what a random test begins with, which GATEWAY_SOAK_SEED may say.
func soakSeed(t *testing.T) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("GATEWAY_SOAK_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	return seed
}

// long returns the larger figure in a soak.
func long[T any](quick, long T) T {
	if soak > 0 {
		return long
	}
	return quick
}

// status returns a figure in KiB of /proc/PID/status.
func status(t *testing.T, pid int, name string) int {
	t.Helper()
	text := mustRead(t, fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[0] == name+":" {
			n, _ := strconv.Atoi(f[1])
			return n
		}
	}
	t.Fatalf("no %s in /proc/%d/status", name, pid)
	return 0
}

// written returns how many bytes the programs that have the tag have written.
func written(tag string) (bytes int64, programs int) {
	for _, dir := range sshdtest.WithEnv(tag) {
		text, _ := os.ReadFile(filepath.Join(dir, "io"))
		for line := range strings.Lines(string(text)) {
			if n, ok := strings.CutPrefix(line, "wchar: "); ok {
				count, _ := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
				bytes, programs = bytes+count, programs+1
			}
		}
	}
	return bytes, programs
}

// TestFloodIsBounded: a program that writes without end to both streams, and a
// reader that reads none of it, then all of it, then none again. While nobody
// reads, the program stands still on its machine; at no time does gateway need
// more than 32 MiB above what it needs at rest.
func TestFloodIsBounded(t *testing.T) {
	path, err := plainBinary()
	if err != nil {
		t.Fatal(err)
	}
	third := long(time.Second, 20*time.Second)
	for _, place := range places(t)[:2] {
		t.Run(place.name, func(t *testing.T) {
			t.Parallel()
			tag, dir := tag(t), t.TempDir()
			cmd := exec.Command(path, "exec", "web1", "--", "echo up; until [ -e "+dir+"/go ]; do sleep 0.05; done; "+tag+" yes >&2 & "+tag+" yes; wait")
			cmd.Env = place.user(t).env
			out, outSide := pipe(t)
			errs, errSide := pipe(t)
			cmd.Stdout, cmd.Stderr = outSide, errSide
			must(t, cmd.Start())
			defer cmd.Wait()
			defer cmd.Process.Kill()
			outSide.Close()
			errSide.Close()
			if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
				t.Fatal(err)
			}
			idle := status(t, cmd.Process.Pid, "VmRSS")
			write(t, dir+"/go", "", 0o600)
			eventually(t, "both write", func() bool { n, programs := written(tag); return programs == 2 && n > 0 })

			// standsStill waits until nothing more is written, and sees that it
			// stays like that.
			standsStill := func() int64 {
				last, since := int64(-1), time.Now()
				eventually(t, "the programs stand still", func() bool {
					if now, _ := written(tag); now != last {
						last, since = now, time.Now()
					}
					return time.Since(since) > 500*time.Millisecond
				})
				<-time.After(third)
				if now, programs := written(tag); now != last || programs != 2 {
					t.Errorf("%d programs wrote %d more bytes while nobody read", programs, now-last)
				}
				return last
			}
			before := standsStill()
			read := make([]int64, 2)
			var readers sync.WaitGroup
			for i, r := range []*os.File{out, errs} {
				r.SetReadDeadline(time.Now().Add(third))
				readers.Go(func() {
					buffer := make([]byte, 64<<10)
					for {
						n, err := r.Read(buffer)
						read[i] += int64(n)
						if err != nil {
							return
						}
					}
				})
			}
			readers.Wait()
			between := standsStill()
			if read[0] < 1<<20 || read[1] < 1<<20 || between-before < read[0]+read[1]-before {
				t.Errorf("read %d and %d bytes; %d were written before and %d then", read[0], read[1], before, between)
			}
			if held := between - read[0] - read[1]; held > 32<<20 {
				t.Errorf("%d bytes are under way", held)
			}
			peak := status(t, cmd.Process.Pid, "VmHWM")
			t.Logf("%d MiB at rest, %d MiB more at most; %d KiB on the way at a standstill; %d MiB read", idle>>10, (peak-idle)>>10, before>>10, (read[0]+read[1])>>20)
			if peak-idle > 32<<10 {
				t.Errorf("%d KiB at rest, %d KiB at most", idle, peak)
			}
			// It can be ended while it stands still.
			cmd.Process.Signal(syscall.SIGTERM)
			go io.Copy(io.Discard, errs) // both end with gateway
			go io.Copy(io.Discard, out)
			out.SetReadDeadline(time.Time{})
			errs.SetReadDeadline(time.Time{})
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 143 {
				t.Errorf("ended: %v, want status 143", err)
			}
			gone(t, tag)
		})
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// TestOneLongLine: much output without a newline comes whole, is counted
// exactly and kept in part, in little memory.
func TestOneLongLine(t *testing.T) {
	size := long[int64](32<<20, 1<<30)                                                   // on each of two streams
	word := bytes.Repeat([]byte("0123456789abcdefghijklmnopqrstuvwxyz\x1e\x00"), 30_000) // long, for a cat of it is a process
	want := sha256.New()
	for left := size; left > 0; left -= int64(len(word)) {
		want.Write(word[:min(left, int64(len(word)))])
	}
	for _, machine := range machines(t, t.TempDir())[:2] {
		t.Run(machine.name, func(t *testing.T) {
			s := open(t, machine.open(t), session.Config{})
			got := [2]hash.Hash{sha256.New(), sha256.New()}
			var r session.Result
			var err error
			file := filepath.Join(t.TempDir(), "word")
			os.WriteFile(file, word, 0o600)
			begun := time.Now()
			peak := peakHeap(func() {
				r, err = s.Run(t.Context(), session.Command{
					Text:   fmt.Sprintf("endless() { while cat %s; do :; done 2>/dev/null | head -c %d; }; endless; endless >&2; (exit 9)", file, size),
					Output: func(from session.Stream, b []byte) { got[from].Write(b) },
				})
			})
			t.Logf("%d MiB in %v, %d KiB of memory at most", 2*size>>20, time.Since(begun), peak>>10)
			if err != nil || r.ExitCode != 9 || r.StdoutBytes != size || r.StderrBytes != size || !r.Truncated {
				t.Errorf("got %s %d, %d and %d bytes, truncated %v, %v", r.Verdict, r.ExitCode, r.StdoutBytes, r.StderrBytes, r.Truncated, err)
			}
			if len(r.Stdout) != 1<<20 || len(r.Stderr) != 1<<20 {
				t.Errorf("kept %d and %d bytes", len(r.Stdout), len(r.Stderr))
			}
			for i := range got {
				if !bytes.Equal(got[i].Sum(nil), want.Sum(nil)) {
					t.Errorf("stream %d: not the bytes that were written", i)
				}
			}
			if peak > 64<<20 { // what is not collected yet is among it
				t.Errorf("it took %d KiB of memory", peak>>10)
			}
		})
	}
}

// TestSessionsAtOnce has many sessions at once, on this machine, and on one
// server with the usual limits: of one connection each, and of as few
// connections as may be.
func TestSessionsAtOnce(t *testing.T) {
	dir := t.TempDir()
	server := sshdtest.Start(t, sshdtest.Options{Config: []string{"SetEnv XDG_RUNTIME_DIR=" + dir, "MaxSessions 10", "MaxStartups 10:30:100"}})
	link := netsim.Start(t, server.Addr, 0)
	config := sshConfig(server, link.Port())
	config.ConnectTimeout = time.Minute // they queue: a server takes so many at a time
	remote := func() (transport.Transport, error) { return ssh.Dial(t.Context(), config) }
	for _, test := range []struct {
		name        string
		count       int
		connections int // at most; 0: one per session
		connect     func() (transport.Transport, error)
	}{
		{"this machine", long(50, 200), 1, func() (transport.Transport, error) {
			return local.New(local.Config{Env: []string{"XDG_RUNTIME_DIR=" + dir}}), nil
		}},
		{"a connection each", long(40, 100), 0, remote},
		{"shared connections", long(40, 100), long(12, 30), remote},
	} {
		t.Run(test.name, func(t *testing.T) {
			before, begun := link.Conns(), time.Now()
			connect := test.connect
			if test.connections > 0 {
				shared, err := test.connect()
				if err != nil {
					t.Fatal(err)
				}
				defer shared.Close()
				connect = func() (transport.Transport, error) { return shared, nil }
			}
			sessions := make([]*session.Session, test.count)
			var open, all sync.WaitGroup
			open.Add(test.count)
			for i := range sessions {
				all.Go(func() {
					tr, err := connect()
					if err == nil {
						sessions[i], err = session.Open(t.Context(), tr, session.Config{OpenTimeout: time.Minute})
						if test.connections == 0 {
							defer tr.Close()
						}
					}
					open.Done()
					if err != nil {
						t.Errorf("session %d: %v", i, err)
						return
					}
					open.Wait() // all of them are there at the same time
					r, err := sessions[i].Run(t.Context(), session.Command{Text: fmt.Sprintf("echo $GATEWAY_SESSION; echo %d >&2; (exit %d)", i, i)})
					if err != nil || r.ExitCode != i || string(r.Stdout) != sessions[i].ID()+"\n" || string(r.Stderr) != fmt.Sprintln(i) {
						t.Errorf("session %d: %s %d %q %q, %v", i, r.Verdict, r.ExitCode, r.Stdout, r.Stderr, err)
					}
					sessions[i].Close()
				})
			}
			open.Wait()
			t.Logf("%d sessions after %v, on %d connections", test.count, time.Since(begun), link.Conns()-before)
			all.Wait()
			t.Logf("%v in all", time.Since(begun))
			if got := link.Conns() - before; test.connections > 0 && got > test.connections {
				t.Errorf("%d connections, want at most %d", got, test.connections)
			}
			eventually(t, "no process left", func() bool { return len(ofSessions(sessions)) == 0 })
			eventually(t, "no keeper's directory left", func() bool { return empty(dir) })
		})
	}
}

// ofSessions returns the processes of the sessions.
func ofSessions(sessions []*session.Session) (dirs []string) {
	return withEnv(func(env []string) bool {
		return slices.ContainsFunc(sessions, func(s *session.Session) bool { return s != nil && slices.Contains(env, "GATEWAY_SESSION="+s.ID()) })
	})
}

// TestNothingGrows runs command after command, of every kind, in one session:
// neither side holds more in the end than after the first of them.
func TestNothingGrows(t *testing.T) {
	count := long(1_000, 10_000)
	dir := t.TempDir()
	for _, machine := range machines(t, dir)[:2] {
		t.Run(machine.name, func(t *testing.T) {
			s := open(t, machine.open(t), session.Config{})
			r, err := s.Run(t.Context(), session.Command{Text: "echo $$"})
			if err != nil {
				t.Fatal(err)
			}
			shell, _ := strconv.Atoi(strings.TrimSpace(string(r.Stdout)))
			run := func(i int) {
				c := session.Command{Text: fmt.Sprintf("echo %d; echo x >&2; (exit %d)", i, i%250)}
				switch i % 100 {
				case 10:
					c.Stdin = strings.NewReader("some text\n")
				case 20:
					c.Cwd = "/usr"
				case 30:
					c.Env = map[string]string{"A": "it's"}
				case 40:
					c.Merge = true
				case 50:
					c.Text += " # " + strings.Repeat("x", 20_000)
				case 60:
					c.Text = "true & " + c.Text
				case 70:
					c.Text = "seq 100000 >&2; " + c.Text
				case 80:
					c.TTY = true
				}
				r, err := s.Run(t.Context(), c)
				if err != nil || r.ExitCode != i%250 || !strings.HasPrefix(string(r.Stdout), fmt.Sprintln(i)) {
					t.Fatalf("command %d: %s %d %.100q %.100q, %v", i, r.Verdict, r.ExitCode, r.Stdout, r.Stderr, err)
				}
			}
			type holds struct {
				used
				shell, resident int
			}
			look := func() holds {
				// The shell may still be at the end of its last frame.
				eventually(t, "the shell reads its terminal", func() bool {
					wchan, _ := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", shell))
					return strings.Contains(string(wchan), "wait_woken") || strings.Contains(string(wchan), "tty_read")
				})
				return holds{usedNow(), len(descriptors(shell)), status(t, shell, "VmRSS")}
			}
			for i := range 200 {
				run(i)
			}
			first, begun := look(), time.Now()
			for i := 200; i < count; i++ {
				run(i)
			}
			last := look()
			t.Logf("%v a command; after 200: %+v, after %d: %+v", time.Since(begun)/time.Duration(count-200), first, count, last)
			if last.heap > first.heap+long[uint64](1, 2)<<20 || last.goroutines > first.goroutines+4 || last.descriptors > first.descriptors+4 ||
				last.shell > first.shell || last.resident > first.resident+long(1, 2)<<10 {
				t.Errorf("after 200: %+v, after %d: %+v", first, count, last)
			}
			// The keeper in use, and those whose background jobs may still write.
			eventually(t, "at most three keepers' directories", func() bool {
				entries, _ := os.ReadDir(dir)
				return len(entries) <= 3
			})
		})
	}
}

// used is what a process holds.
type used struct {
	heap                    uint64
	goroutines, descriptors int
}

func usedNow() used {
	runtime.GC()
	runtime.GC() // what the first one's finalizers gave up
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return used{m.HeapAlloc, runtime.NumGoroutine(), len(descriptors(os.Getpid()))}
}

func descriptors(pid int) []os.DirEntry {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return entries
}
