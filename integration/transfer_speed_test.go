package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/transfer"
)

// sftpProgram runs OpenSSH's sftp with a batch of commands, and returns how long
// that took.
func sftpProgram(b *testing.B, s *sshdtest.Server, port int, batch ...string) time.Duration {
	b.Helper()
	cmd := exec.Command("sftp", "-q", "-b", "-", "-P", strconv.Itoa(port), "-i", s.KeyFile, "-F", "none",
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", s.User+"@127.0.0.1")
	cmd.Stdin = strings.NewReader(strings.Join(batch, "\n") + "\n")
	begun := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("sftp: %v\n%s", err, out)
	}
	return time.Since(begun)
}

// memoryDir is a directory that no disk slows down, where there is one.
func memoryDir(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "gateway")
	if err != nil {
		return b.TempDir()
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// BenchmarkTransfer compares with OpenSSH's sftp, in turns, against the same
// server: a large file is to go at least as fast, and a tree of 2,000 small ones
// three times. Both connect. Where sftp would take minutes for the tree it gets
// a part of it, and its time is scaled, less that of connecting.
func BenchmarkTransfer(b *testing.B) {
	s := sshdtest.Start(b, sshdtest.Options{})
	const count = 2000
	tree := smallFiles(b, count)
	for _, rtt := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond} {
		size, fewer := 256<<20, 1
		switch rtt {
		case 20 * time.Millisecond:
			fewer = 10
		case 100 * time.Millisecond:
			size, fewer = 64<<20, 40
		}
		port := s.Port
		if rtt > 0 {
			port = netsim.Start(b, s.Addr, rtt/2).Port()
		}
		large := largeFile(b, size)
		part := smallFiles(b, count/fewer)
		here, there := memoryDir(b), memoryDir(b)
		ours := func(b *testing.B, down, tree bool, from, to string) time.Duration {
			begun := time.Now()
			m, err := openFiles(b, s, port)
			if err != nil {
				b.Fatal(err)
			}
			defer m.Close()
			c := transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{from}, Into: to, Recursive: tree}
			if down {
				c.From, c.To = c.To, c.From
			}
			copyFiles(b, c)
			return time.Since(begun)
		}
		name := fmt.Sprintf("rtt=%v", rtt)
		n := 0
		fresh := func(dir string) string {
			n++
			return filepath.Join(dir, fmt.Sprint(n))
		}
		connect := func(b *testing.B) time.Duration { return sftpProgram(b, s, port, "pwd") }
		compare := func(name string, times float64, mine, theirs func(b *testing.B) time.Duration) {
			b.Run(name, func(b *testing.B) {
				var a, c []time.Duration
				for b.Loop() {
					c = append(c, theirs(b))
					a = append(a, mine(b))
				}
				b.ReportMetric(median(a)/1e3, "ms")
				b.ReportMetric(median(c)/1e3, "ms-sftp")
				b.ReportMetric(median(c)/median(a), "times-sftp")
				b.ReportMetric(times, "wanted")
			})
		}
		compare(name+"/put/large", 1, func(b *testing.B) time.Duration { return ours(b, false, false, large, fresh(there)) },
			func(b *testing.B) time.Duration { return sftpProgram(b, s, port, "put "+large+" "+fresh(there)) })
		compare(name+"/get/large", 1, func(b *testing.B) time.Duration { return ours(b, true, false, large, fresh(here)) },
			func(b *testing.B) time.Duration { return sftpProgram(b, s, port, "get "+large+" "+fresh(here)) })
		scaled := func(b *testing.B, took time.Duration) time.Duration {
			if fewer == 1 {
				return took
			}
			base := connect(b)
			return base + (took-base)*time.Duration(fewer)
		}
		compare(name+"/put/small", 3, func(b *testing.B) time.Duration { return ours(b, false, true, tree, fresh(there)) },
			func(b *testing.B) time.Duration {
				to := fresh(there)
				return scaled(b, sftpProgram(b, s, port, "mkdir "+to, "put -R "+part+"/. "+to))
			})
		compare(name+"/get/small", 3, func(b *testing.B) time.Duration { return ours(b, true, true, tree, fresh(here)) },
			func(b *testing.B) time.Duration {
				return scaled(b, sftpProgram(b, s, port, "get -R "+part+" "+fresh(here)))
			})
	}
}

// highWater runs a program and returns how much memory it has had, in MiB. What
// the kernel says when it is over counts the parent before the exec as well.
func highWater(b *testing.B, cmd *exec.Cmd) int64 {
	b.Helper()
	must(b, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var most int64
	for {
		select {
		case err := <-ended:
			if err != nil {
				b.Fatal(err)
			}
			return most
		case <-tick.C:
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)) // none: it has ended
		if _, rest, ok := strings.Cut(string(status), "VmHWM:"); ok {
			if kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64); err == nil {
				most = max(most, kib>>10)
			}
		}
	}
}

// maxClient is what gateway cp may take of memory, in MiB.
const maxClient = 64

// BenchmarkTransferMemory measures the memory of the program, which must not
// depend on what it copies.
func BenchmarkTransferMemory(b *testing.B) {
	program := filepath.Join(b.TempDir(), "gateway")
	if out, err := exec.Command("go", "build", "-o", program, "gateway/cmd/gateway").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	s := sshdtest.Start(b, sshdtest.Options{})
	tree, large := smallFiles(b, 2000), largeFile(b, 256<<20)
	for _, rtt := range []time.Duration{0, 20 * time.Millisecond} {
		port := s.Port
		if rtt > 0 {
			port = netsim.Start(b, s.Addr, rtt/2).Port()
		}
		home, dir := b.TempDir(), memoryDir(b)
		inventory := fmt.Sprintf("hosts:\n  web1: {addr: 127.0.0.1, port: %d, user: %s, identity: %s, host_key: %q, agent: false}\n",
			port, s.User, s.KeyFile, pin(s))
		write(b, home+"/.config/gateway/hosts.yaml", inventory, 0o600)
		for name, args := range map[string][]string{
			"put/large": {large, "web1:" + dir + "/up"}, "get/large": {"web1:" + large, dir + "/down"},
			"put/small": {"-r", tree, "web1:" + dir + "/up-tree"}, "get/small": {"-r", "web1:" + tree, dir + "/down-tree"},
		} {
			b.Run(fmt.Sprintf("rtt=%v/%s", rtt, name), func(b *testing.B) {
				var most int64
				for b.Loop() {
					cmd := exec.Command(program, append([]string{"cp"}, args...)...)
					cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GATEWAY_SSH_CONFIG=off", "CI=true"}
					most = max(most, highWater(b, cmd))
				}
				if b.ReportMetric(float64(most), "MiB"); most >= maxClient {
					b.Errorf("%d MiB, want less than %d", most, maxClient)
				}
			})
		}
	}
}
