package integration

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/sshdtest"
)

// fanHosts is how many names the one server has.
const fanHosts = 100

// fan returns the server, an inventory file and the names.
func fan(b testing.TB) (*sshdtest.Server, string, []string) {
	b.Helper()
	s := sshdtest.Start(b, sshdtest.Options{Addresses: 16, Config: []string{"MaxStartups 1000"}})
	var text strings.Builder
	fmt.Fprintf(&text, "defaults: {port: %d, user: %s, identity: %s, host_key: %q, agent: false, shell: sh}\nhosts:\n",
		s.Port, s.User, s.KeyFile, pin(s))
	var names []string
	for i := range fanHosts {
		names = append(names, fmt.Sprintf("web%03d", i))
		fmt.Fprintf(&text, "  %s: {addr: 127.0.0.%d}\n", names[i], i%16+1)
	}
	file := filepath.Join(b.TempDir(), "hosts.yaml")
	write(b, file, text.String(), 0o600)
	return s, file, names
}

// bareClients are connections of x/crypto/ssh, and nothing else.
func bareClients(b testing.TB, s *sshdtest.Server) []*gossh.Client {
	b.Helper()
	clients := make([]*gossh.Client, fanHosts)
	onEach(b, func(i int) error {
		var err error
		clients[i], err = bareDial(s, i)
		return err
	}, 8)
	b.Cleanup(func() {
		for _, c := range clients {
			c.Close()
		}
	})
	return clients
}

func bareDial(s *sshdtest.Server, i int) (*gossh.Client, error) {
	return gossh.Dial("tcp", net.JoinHostPort(fmt.Sprintf("127.0.0.%d", i%16+1), strconv.Itoa(s.Port)), &gossh.ClientConfig{
		User: s.User, Auth: []gossh.AuthMethod{gossh.PublicKeys(s.Key.Signer)}, HostKeyCallback: gossh.FixedHostKey(s.HostKey),
	})
}

// onEach does something for every host, some at a time.
func onEach(b testing.TB, do func(i int) error, forks int) {
	b.Helper()
	var group sync.WaitGroup
	places := make(chan struct{}, forks)
	for i := range fanHosts {
		group.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			if err := do(i); err != nil {
				b.Error(err)
			}
		})
	}
	group.Wait()
}

func hostname(c *gossh.Client) error {
	s, err := c.NewSession()
	if err != nil {
		return err
	}
	defer s.Close()
	out, err := s.Output("hostname")
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("no name")
	}
	return err
}

// BenchmarkFanOut compares hostname on a hundred hosts with goroutines over bare
// connections, in turns. Warm: sessions are open here, and connections there; a
// command is to cost at most 1.2 times a channel. Cold: both connect.
func BenchmarkFanOut(b *testing.B) {
	s, file, names := fan(b)
	inv, err := hosts.Load(file)
	if err != nil {
		b.Fatal(err)
	}
	g := gateway.New(gateway.Config{Inventory: inv})
	defer g.Close()
	run := func(b *testing.B, forks int, exec func(ctx context.Context, i int) gateway.Result) {
		b.Helper()
		results, err := fleet.Run(b.Context(), len(names), fleet.Plan{Forks: forks}, fleet.Exec(names, "hostname", exec))
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range results {
			if fleet.OutcomeOf(r) != fleet.OK || len(r.Stdout) == 0 {
				b.Fatalf("%s: %v", r.Host, r.Err)
			}
		}
	}
	compare := func(b *testing.B, ours, bare func()) {
		b.Helper()
		var mine, theirs []time.Duration
		for b.Loop() {
			begun := time.Now()
			bare()
			theirs = append(theirs, time.Since(begun))
			begun = time.Now()
			ours()
			mine = append(mine, time.Since(begun))
		}
		b.ReportMetric(median(mine)/1e3, "ms")
		b.ReportMetric(median(theirs)/1e3, "ms-bare")
		b.ReportMetric(median(mine)/median(theirs), "times-bare")
	}
	b.Run("warm", func(b *testing.B) {
		clients := bareClients(b, s)
		sessions := make([]*gateway.Session, fanHosts)
		onEach(b, func(i int) (err error) {
			sessions[i], err = g.Open(b.Context(), names[i], gateway.Options{})
			return err
		}, 8)
		defer onEach(b, func(i int) error { sessions[i].Close(); return nil }, fanHosts)
		if b.Failed() {
			return
		}
		compare(b, func() {
			run(b, fanHosts, func(ctx context.Context, i int) gateway.Result {
				return sessions[i].Run(ctx, gateway.Command{Text: "hostname"})
			})
		}, func() { onEach(b, func(i int) error { return hostname(clients[i]) }, fanHosts) })
	})
	b.Run("cold", func(b *testing.B) {
		compare(b, func() {
			run(b, fleet.DefaultForks, func(ctx context.Context, i int) gateway.Result {
				return g.Exec(ctx, names[i], gateway.Command{Text: "hostname"})
			})
		}, func() {
			onEach(b, func(i int) error {
				c, err := bareDial(s, i)
				if err != nil {
					return err
				}
				defer c.Close()
				return hostname(c)
			}, fleet.DefaultForks)
		})
	})
}

// BenchmarkFanOutPrograms compares gateway with clush and pssh, where they are
// installed: whole calls, each with twenty at a time.
func BenchmarkFanOutPrograms(b *testing.B) {
	s, file, names := fan(b)
	dir := b.TempDir()
	var config strings.Builder
	for i, name := range names {
		fmt.Fprintf(&config, "Host %s\n  HostName 127.0.0.%d\n  Port %d\n  User %s\n  IdentityFile %s\n  StrictHostKeyChecking no\n  UserKnownHostsFile %s/known_hosts\n  LogLevel ERROR\n",
			name, i%16+1, s.Port, s.User, s.KeyFile, dir)
	}
	ssh := filepath.Join(dir, "config")
	list := filepath.Join(dir, "hosts")
	for path, text := range map[string]string{ssh: config.String(), list: strings.Join(names, "\n") + "\n"} {
		write(b, path, text, 0o600)
	}
	path, err := binary()
	if err != nil {
		b.Fatal(err)
	}
	for _, program := range []struct {
		name string
		args []string
	}{
		{path, []string{"--inventory", file, "exec", "web*", "--no-daemon", "-q", "--", "hostname"}},
		{"clush", []string{"-o", "-F " + ssh, "-f", "20", "-w", strings.Join(names, ","), "hostname"}},
		{"parallel-ssh", []string{"-x", "-F " + ssh, "-p", "20", "-i", "-h", list, "hostname"}},
	} {
		b.Run(filepath.Base(program.name), func(b *testing.B) {
			if _, err := exec.LookPath(program.name); err != nil {
				sshdtest.Skip(b, "not installed: %v", err)
			}
			for b.Loop() {
				cmd := exec.Command(program.name, program.args...)
				cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "GATEWAY_SSH_CONFIG=off", "CI=true"}
				if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), "\n") < fanHosts {
					b.Fatalf("%v: %.2000s", err, out)
				}
			}
		})
	}
}

// TestMemoryPerHost: a fan-out takes less than 60 KiB a host more than as many
// bare connections of x/crypto/ssh, also where its sessions are all open at once,
// as those of a script are with enough forks.
func TestMemoryPerHost(t *testing.T) {
	s, file, names := fan(t)
	inv, err := hosts.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	g := gateway.New(gateway.Config{Inventory: inv})
	defer g.Close()
	used := func() int {
		for range 5 { // pools and stacks shrink step by step
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc + m.StackInuse)
	}
	before := used()
	clients := bareClients(t, s)
	bare := (used() - before) / fanHosts
	for _, c := range clients {
		c.Close()
	}
	check := func(what string, bytes, most int) {
		t.Helper()
		if raced() {
			most *= 3
		}
		t.Logf("%s: %d KiB a host; a bare connection takes %d", what, bytes>>10, bare>>10)
		if bytes-bare > most {
			t.Errorf("%s: %d KiB a host more than bare connections, want at most %d", what, (bytes-bare)>>10, most>>10)
		}
	}
	before = used()
	var peak atomic.Int64
	_, err = fleet.Run(t.Context(), len(names), fleet.Plan{}, fleet.Exec(names, "hostname", func(ctx context.Context, i int) gateway.Result {
		return g.Exec(ctx, names[i], gateway.Command{Text: "hostname", Started: func(gateway.Live) {
			if i%10 == 0 {
				peak.Store(max(peak.Load(), int64(used()-before)))
			}
		}})
	}))
	if err != nil {
		t.Fatal(err)
	}
	check("fan-out", int(peak.Load())/fanHosts, 10<<10)

	before = used()
	sessions := make([]*gateway.Session, fanHosts)
	onEach(t, func(i int) (err error) {
		if sessions[i], err = g.Open(t.Context(), names[i], gateway.Options{}); err != nil {
			return err
		}
		return sessions[i].Run(t.Context(), gateway.Command{Text: "hostname"}).Err
	}, 8)
	check("open sessions", (used()-before)/fanHosts, 58<<10)
	onEach(t, func(i int) error { sessions[i].Close(); return nil }, fanHosts)
}

// raced reports whether the race detector takes its share of memory, and of the
// time.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
