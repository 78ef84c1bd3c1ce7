package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
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
	t.Parallel()
	size := long(64<<20, 256<<20) + 4321
	large := largeFile(t, size)
	s := sshdtest.Start(t, sshdtest.Options{})
	proxy := netsim.Start(t, s.Addr, 0)
	there := t.TempDir()
	target := filepath.Join(there, "large")
	write(t, target, "before", 0o640)
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
		proxy.Truncate(netsim.Up, int64(1<<20+random.IntN(size/7)), []netsim.How{netsim.RST, netsim.FIN}[random.IntN(2)])
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
	if !r.OK() || r.Resumed == 0 || r.Resumed+r.Bytes != int64(size) {
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
	t.Parallel()
	large := largeFile(t, 70<<20)
	s := sshdtest.Start(t, sshdtest.Options{})
	far := filesOf(t, s, s.Port)
	for _, test := range []struct {
		name    string
		to      transfer.Machine
		damage  int64
		resumed int64
	}{
		{"sound", far, -1, 66 << 20},
		{"a gap near the end", far, 63<<20 + 17, 63 << 20},
		{"in the middle", &transfer.Local{}, 41 << 20, 41 << 20},
		{"at the beginning", &transfer.Local{}, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			there := t.TempDir()
			damagedPart(t, large, filepath.Join(there, ".large.gateway-ABCDEFGHIJ.part"), 66<<20+17, test.damage)
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

// damagedPart makes a part of a file, in which the byte at an offset is another one, if
// that is not negative.
func damagedPart(t *testing.T, file, part string, size, at int64) {
	t.Helper()
	from, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if _, err = io.CopyN(to, from, size); err == nil && at >= 0 {
		var b [1]byte
		if _, err = to.ReadAt(b[:], at); err == nil {
			_, err = to.WriteAt([]byte{b[0] ^ 1}, at)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Of the parts that several copies have left, the largest one is used of which something
// is right, and none is there in the end but what is somebody else's.
func TestTransferSeveralParts(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, m transfer.Machine) {
		path := write(t, t.TempDir()+"/f", strings.Repeat("x", 9<<20), 0o600)
		there := t.TempDir()
		for name, text := range map[string]string{
			"ABCDEFGHIA": strings.Repeat("y", 8<<20), // of what the file was once
			"ABCDEFGHIB": strings.Repeat("x", 7<<20) + "y",
			"ABCDEFGHIC": strings.Repeat("x", 6<<20),
			"ABCDEFGHID": "",
		} {
			write(t, there+"/.f.gateway-"+name+".part", text, 0o600)
		}
		want := []string{"f"}
		if os.Getuid() == 0 { // who can give a file away
			const foreign = ".f.gateway-ABCDEFGHIE.part"
			must(t, os.Chown(write(t, there+"/"+foreign, "x", 0o644), 12345, 12345))
			want = append(want, foreign)
		}
		if r := copyFiles(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: there, Resume: true}); r.Resumed != 7<<20 {
			t.Errorf("%d bytes were used, want 7 MiB", r.Resumed)
		}
		sameFiles(t, path, there+"/f")
		holds(t, there, want...)
	})
}

// A part that nobody goes on with stays away also where the shell that was to write to it
// takes its time, and the server hangs up nothing, as sshd before 10 for root.
func TestTransferPartIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	slow := "trap 'case $BASH_COMMAND in *\"cat >>\"*) sleep 0.3;; esac' DEBUG\n"
	write(t, bin+"/slow", slow, 0o600)
	write(t, bin+"/sh", "#!/bin/sh\nBASH_ENV="+bin+"/slow exec bash \"$@\"\n", 0o700)
	s := sshdtest.Start(t, sshdtest.Options{NoSftp: true, Config: []string{"SetEnv PATH=" + bin + ":/usr/bin:/bin"}})
	path := write(t, t.TempDir()+"/f", strings.Repeat("x", 9<<20), 0o600)
	there := t.TempDir()
	for _, name := range []string{"ABCDEFGHIA", "ABCDEFGHIB"} {
		write(t, there+"/.f.gateway-"+name+".part", strings.Repeat("x", 8<<20), 0o600)
	}
	m := filesOf(t, s, s.Port)
	if r := copyFiles(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: there, Resume: true}); r.Resumed != 8<<20 {
		t.Errorf("%d bytes were used, want 8 MiB", r.Resumed)
	}
	m.Close()
	sameFiles(t, path, there+"/f")
	eventually(t, "the shells are through", func() bool { return len(without("BASH_ENV="+bin+"/slow", "none")) == 0 })
	holds(t, there, "f")
}

// Nor is a part left of a copy that is ended while such a shell is about to make it.
func TestTransferEndedAsItsPartIsMade(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	write(t, bin+"/slow", "trap 'case $BASH_COMMAND in *\">\"*.part*) : >"+bin+"/about; sleep 0.5;; esac' DEBUG\n", 0o600)
	write(t, bin+"/sh", "#!/bin/sh\nBASH_ENV="+bin+"/slow exec bash \"$@\"\n", 0o700)
	s := sshdtest.Start(t, sshdtest.Options{NoSftp: true, Config: []string{"SetEnv PATH=" + bin + ":/usr/bin:/bin"}})
	for _, size := range []int{5, 6 << 20} {
		path, there := write(t, t.TempDir()+"/f", strings.Repeat("x", size), 0o600), t.TempDir()
		m := filesOf(t, s, s.Port)
		ctx, cancel := context.WithCancel(t.Context())
		var ending sync.WaitGroup
		ending.Go(func() {
			defer cancel()
			eventually(t, "a part is about to be made", func() bool { return os.Remove(bin+"/about") == nil })
		})
		c := transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: there}
		if r := c.Run(ctx); gateway.Code(r.Err) != "cmd.interrupted" || r.Files > 0 {
			t.Errorf("%d bytes: %+v", size, r)
		}
		ending.Wait()
		m.Close()
		eventually(t, "the shells are through", func() bool { return len(without("BASH_ENV="+bin+"/slow", "none")) == 0 })
		holds(t, there)
	}
}

// A first try that was cut has left nothing of the name that the copy is to have. Where
// there is no directory for it, --resume changes nothing about that.
func TestTransferResumesNewName(t *testing.T) {
	onAll(t, func(t *testing.T, m transfer.Machine) {
		path := write(t, t.TempDir()+"/f", strings.Repeat("x", 9<<20), 0o600)
		there := t.TempDir()
		c := transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: there + "/new", Resume: true}
		write(t, there+"/.new.gateway-ABCDEFGHIJ.part", strings.Repeat("x", 8<<20), 0o600)
		if r := copyFiles(t, c); r.Resumed != 8<<20 {
			t.Errorf("%d bytes were used, want 8 MiB", r.Resumed)
		}
		sameFiles(t, path, c.Into)
		if entries, err := os.ReadDir(there); err != nil || len(entries) != 1 {
			t.Errorf("%v: left behind: %v", err, entries)
		}
		c.Into = there + "/missing/new"
		again := run(t, c)
		c.Resume = false
		if first := run(t, c); codes(again) != "file.not_found" || fmt.Sprint(again.Problems) != fmt.Sprint(first.Problems) {
			t.Errorf("%v, want %v", again.Problems, first.Problems)
		}
	})
}

// A file that is resumed has the permissions that it would have had.
func TestTransferResumedMode(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, m transfer.Machine) {
		for _, part := range []os.FileMode{0o600, 0o644} {
			for _, mode := range []os.FileMode{0o640, 0o755, 0o600, 0o440} {
				there := t.TempDir()
				path := write(t, t.TempDir()+"/f", strings.Repeat("x", 9<<20), mode)
				write(t, there+"/.f.gateway-ABCDEFGHIJ.part", strings.Repeat("x", 8<<20), part)
				if r := copyFiles(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: there, Resume: true}); r.Resumed != 8<<20 {
					t.Errorf("%+v", r)
				}
				if info, err := os.Stat(there + "/f"); err != nil || info.Mode().Perm() != mode {
					t.Errorf("a part with %v: %v, %v, want %v", part, info.Mode(), err, mode)
				}
				holds(t, there, "f")
			}
		}
	})
}

// What is there of a file is compared again where the file is written to after
// that.
func TestTransferStalePart(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, m transfer.Machine) {
		for name, test := range map[string]struct {
			at     int64
			opened bool // it happens behind that
			code   string
		}{
			"before it is opened":       {1000, false, "file.changed"},
			"while it is read":          {1000, true, "file.changed"},
			"it grows":                  {12<<20 + 17, false, ""},
			"it grows while it is read": {12<<20 + 17, true, ""},
		} {
			t.Run(name, func(t *testing.T) {
				large, there := largeFile(t, 12<<20), t.TempDir()
				must(t, os.Truncate(large, 12<<20+17))
				old := time.Now().Add(-time.Hour) // servers tell whole seconds
				must(t, os.Chtimes(large, old, old))
				b, err := os.ReadFile(large)
				if err == nil {
					err = os.WriteFile(filepath.Join(there, ".large.gateway-ABCDEFGHIJ.part"), b[:9<<20], 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
				change := func() {
					f, err := os.OpenFile(large, os.O_WRONLY, 0)
					if err == nil {
						_, err = f.WriteAt([]byte("changed"), test.at)
						f.Close()
					}
					if err != nil {
						t.Error(err)
					}
				}
				c := transfer.Copy{From: m, To: &transfer.Local{}, Paths: []string{large}, Into: there, Resume: true}
				if test.opened {
					c.Watch = &moved{limit: 1, then: sync.OnceFunc(change)}
				} else {
					c.From = between{m, sync.OnceFunc(change)}
				}
				r := run(t, c)
				if codes(r) != test.code || r.Resumed != 9<<20 {
					t.Fatalf("%+v, want %q", r, test.code)
				}
				if test.code != "" {
					holds(t, there)
				}
			})
		}
	})
}

// A copy that is interrupted leaves nothing but a part worth keeping.
func TestTransferInterrupted(t *testing.T) {
	t.Parallel()
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

// What can't be removed, as the link has gone silent, is told: a copy can go on with it.
func TestTransferEndedOnSilentLink(t *testing.T) {
	t.Parallel() // it waits, mostly
	for name, noSftp := range map[string]bool{"sftp": false, "shell": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sshdtest.Start(t, sshdtest.Options{NoSftp: noSftp})
			proxy := netsim.Start(t, s.Addr, 0)
			m := filesOf(t, s, proxy.Port())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			there := t.TempDir()
			var begun time.Time
			silence := sync.OnceFunc(func() {
				proxy.Stall()
				begun = time.Now()
				cancel()
			})
			r := (&transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{largeFile(t, 7<<20)}, Into: there, Watch: &moved{limit: 4 << 20, then: silence}}).Run(ctx)
			if took := time.Since(begun); gateway.Code(r.Err) != "cmd.interrupted" || r.Kept != 1 || took > transfer.Committing+2*time.Second {
				t.Errorf("%v: %+v", took, r)
			}
			if parts, _ := filepath.Glob(there + "/.large.gateway-*.part"); len(parts) != 1 {
				t.Errorf("there is %q", parts)
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

// What cp says of a host is what is known: a link that is lost while a file gets
// its name leaves open whether it has it, and a host that is ended for another
// one has not failed.
func TestCpOutcomes(t *testing.T) {
	t.Parallel() // it waits, mostly
	server := sshdtest.Start(t, sshdtest.Options{})
	near, far := netsim.Start(t, server.Addr, 250*time.Millisecond), netsim.Start(t, server.Addr, 0)
	host := func(p *netsim.Proxy) string {
		return entryAt(server, p.Port())
	}
	u := newUser(t, "hosts:\n  web1: "+host(near)+"\n  web2: "+host(far)+"\n")
	// during does something as soon as a name that fits is in a directory.
	during := func(t *testing.T, pattern string, do func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() {
			for ctx.Err() == nil {
				if found, _ := filepath.Glob(pattern); len(found) > 0 {
					do()
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
		t.Cleanup(func() {
			cancel()
			done.Wait()
		})
	}
	outcomes := func(t *testing.T, o outcome) (all []string) {
		t.Helper()
		var results []struct {
			Outcome  string
			Problems []struct{ Code, Message, Hint string }
		}
		if err := json.Unmarshal([]byte(o.stdout), &results); err != nil {
			t.Fatalf("%v: %+v", err, o)
		}
		for _, r := range results {
			for _, p := range r.Problems {
				r.Outcome += " " + p.Code
			}
			all = append(all, r.Outcome)
		}
		return all
	}
	t.Run("lost while it gets its name", func(t *testing.T) {
		there := t.TempDir()
		during(t, filepath.Join(there, "copy"), func() { near.Cut(netsim.RST) })
		o := u.gateway(t, "cp", "-o", "json", u.write(t, "small", "text"), "web1:"+filepath.Join(there, "copy"))
		if got := outcomes(t, o); o.status != 5 || !slices.Equal(got, []string{"unknown link.lost"}) {
			t.Errorf("%q, %+v", got, o)
		}
	})
	t.Run("lost before", func(t *testing.T) {
		there := t.TempDir()
		during(t, filepath.Join(there, ".large*"), func() { near.Cut(netsim.RST) })
		o := u.gateway(t, "cp", "-o", "json", largeFile(t, 64<<20), "web1:"+there)
		if got := outcomes(t, o); o.status != 1 || len(got) != 1 || !strings.HasPrefix(got[0], "failed") {
			t.Errorf("%q, %+v", got, o)
		}
	})
	t.Run("told to end, over a link that stands for six seconds", func(t *testing.T) {
		there := t.TempDir()
		cmd := u.command(t, "cp", "-q", largeFile(t, 6<<20), "web1:"+there)
		must(t, cmd.Start())
		during(t, filepath.Join(there, ".large*"), func() {
			near.Stall(netsim.Up)
			_ = cmd.Process.Signal(syscall.SIGTERM) // else its status is another
			time.AfterFunc(6*time.Second, func() { near.Resume(netsim.Up) })
		})
		_ = cmd.Wait()
		if entries, err := os.ReadDir(there); err != nil || len(entries) > 0 || cmd.ProcessState.ExitCode() != 143 {
			t.Errorf("%v, %v: left behind: %v", cmd.ProcessState, err, entries)
		}
	})
	t.Run("ended for another one", func(t *testing.T) {
		there := t.TempDir()
		far.Stall(netsim.Up)
		during(t, filepath.Join(there, ".large*"), func() { far.Cut(netsim.RST) })
		o := u.gateway(t, "cp", "-o", "json", "--fail-fast", largeFile(t, 64<<20), "web1,web2:"+there)
		if got := outcomes(t, o); o.status != 3 || !slices.Equal(got, []string{"interrupted", "not_started"}) {
			t.Errorf("%q, %+v", got, o)
		}
	})
}
