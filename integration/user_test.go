package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/internal/sshdtest"
)

// programs is where the command line is built.
var programs string

// binary builds the command line once for all tests, with the race detector if
// the tests have it.
var binary = sync.OnceValues(func() (path string, err error) {
	return build("gateway", fmt.Sprintf("-race=%v", raced()))
})

// plainBinary builds it once as people have it, without the race detector,
// whose shadow memory would be measured too.
var plainBinary = sync.OnceValues(func() (path string, err error) {
	return build("plain", "-race=false", "CGO_ENABLED=0")
})

func build(name, race string, env ...string) (path string, err error) {
	path = filepath.Join(programs, name, "gateway")
	cmd := exec.Command("go", "build", race, "-o", path, "gateway/cmd/gateway")
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
}

// A user has a home with an inventory, and calls gateway where nobody is asked.
type user struct {
	home string
	env  []string
}

func newUser(t *testing.T, inventory string) *user {
	t.Helper()
	u := &user{home: t.TempDir()}
	u.env = []string{"HOME=" + u.home, "PATH=" + os.Getenv("PATH"), "GATEWAY_SSH_CONFIG=off", "CI=true", "GORACE=atexit_sleep_ms=0"}
	u.write(t, ".config/gateway/hosts.yaml", inventory)
	return u
}

// write puts a file into the home, and returns its path.
func (u *user) write(t *testing.T, name, text string) string {
	t.Helper()
	return write(t, filepath.Join(u.home, name), text, 0o600)
}

func (u *user) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second
	cmd.Env = u.env
	return cmd
}

// outcome is what a call of gateway leaves.
type outcome struct {
	status         int
	stdout, stderr string
	took           time.Duration
}

// gateway calls gateway.
func (u *user) gateway(t *testing.T, args ...string) outcome {
	t.Helper()
	return u.feed(t, "", args...)
}

// feed calls gateway with something on its stdin, unless that is empty.
func (u *user) feed(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	cmd := u.command(t, args...)
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	return outcomeOf(t, cmd)
}

// send sends a signal to a call of gateway.
func send(t *testing.T, cmd *exec.Cmd, s os.Signal) {
	t.Helper()
	must(t, cmd.Process.Signal(s))
}

func outcomeOf(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begun := time.Now()
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	o := outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(begun)}
	for _, never := range []string{"goroutine ", "panic: ", "DATA RACE"} {
		if strings.Contains(o.stderr, never) {
			t.Errorf("%s on stderr:\n%.3000s", never, o.stderr)
		}
	}
	return o
}

// want compares everything byte for byte.
func (o outcome) want(t *testing.T, status int, stdout, stderr string) {
	t.Helper()
	if o.status != status || o.stdout != stdout || o.stderr != stderr {
		t.Errorf("got  %d %.1000q %.1000q\nwant %d %.1000q %.1000q", o.status, o.stdout, o.stderr, status, stdout, stderr)
	}
}

// within checks how long it took.
func (o outcome) within(t *testing.T, limit time.Duration) {
	t.Helper()
	if sshdtest.Over(t, o.took, limit) {
		t.Errorf("it took %v, want at most %v", o.took, limit)
	}
}

// entry is a server as a host of the inventory; more is further settings.
func entry(server *sshdtest.Server, more string) string {
	return fmt.Sprintf("{addr: %s, port: %d, user: %s, identity: %s, known_hosts: %s, agent: false%s}",
		server.Host, server.Port, server.User, server.KeyFile, server.KnownHosts, more)
}

// entryAt is entry for a server behind a proxy. Its key is pinned: known_hosts has
// it for the server's own port.
func entryAt(server *sshdtest.Server, port int) string {
	pinned := entry(server, fmt.Sprintf(", host_key: %q", pin(server)))
	return strings.Replace(pinned, fmt.Sprintf("port: %d", server.Port), fmt.Sprintf("port: %d", port), 1)
}

// tag marks the processes of one test: commands export it, and what they start
// has it in its environment.
func tag(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("GATEWAY_TEST_TAG=%d-%d", os.Getpid(), time.Now().UnixNano())
}

// tagged counts the processes that have the tag.
func tagged(tag string) int { return len(sshdtest.WithEnv(tag)) }

// gone waits until no process has the tag. Between two processes of a loop there
// may be none, so what a tag is for has to last.
func gone(t *testing.T, tag string) {
	t.Helper()
	soon(t, "no process of the command left", func() bool { return tagged(tag) == 0 })
	for _, dir := range sshdtest.WithEnv(tag) {
		t.Log(describe(dir))
	}
}

// describe says what a process is, and what a signal would find.
func describe(proc string) string {
	var said strings.Builder
	for _, name := range []string{"stat", "cmdline", "status"} {
		text, _ := os.ReadFile(filepath.Join(proc, name))
		for line := range strings.Lines(strings.ReplaceAll(string(text), "\x00", " ")) {
			if name != "status" || strings.HasPrefix(line, "Sig") || strings.HasPrefix(line, "ShdPnd") {
				fmt.Fprintf(&said, "%s\n", strings.TrimSpace(line))
			}
		}
	}
	return said.String()
}
