package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
)

// A crowd is a hundred names for one server, seven of them rigged.
type crowd struct {
	user   *user
	link   *netsim.Proxy
	marker string // made by the host whose link is cut
}

const (
	crowdSize = 100
	// some are the seven and twenty-three others, where not all are needed: those that are.
	some  = "web*0,web*1,web*2"
	sound = "web[001-002,011-012,021-022,031-032,041-042,051-052,061-062,071-072,080-082,090-092,100]"
	// What goes wrong, and where.
	mishaps = `case $RIGGED in exit) exit 3;; slow) sleep 60;; kill) kill -9 $$;; cut) touch $MARKER; sleep 60;; esac; echo same`
)

// A mishap is what goes wrong on a host.
type mishap struct {
	host, outcome, verdict, code, said string
	exit                               int // -1: none, -2: any
}

// rigged is what comes of the seven, in the order of the inventory.
var rigged = []mishap{
	{"web010", "failed", "exited", "", "exit status 3", 3},
	{"web020", "timed_out", "timed_out", "cmd.timeout", "timed out, cmd.timeout", -2},
	{"web030", "not_started", "not_started", "tcp.refused", "not started, tcp.refused", -1},
	{"web040", "not_started", "not_started", "hostkey.changed", "not started, hostkey.changed", -1},
	{"web050", "not_started", "not_started", "ssh.handshake", "not started, ssh.handshake", -1},
	{"web060", "failed", "signaled", "", "shell killed by SIGKILL", 137},
	{"web070", "unknown", "unknown", "link.lost", "unknown, link.lost", -1},
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	server := sshdtest.Start(t, sshdtest.Options{Addresses: 16})
	c := &crowd{link: netsim.Start(t, server.Addr, 0), marker: filepath.Join(t.TempDir(), "running")}
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mute.Close() })
	go func() { // ends with the listener
		for {
			conn, err := mute.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(conn, "SSH-2.0-mute\r\n")
			t.Cleanup(func() { conn.Close() })
		}
	}()
	host, _, _ := strings.Cut(string(mustRead(t, server.KnownHosts)), "\n")
	_, key, _ := strings.Cut(host, " ")
	known := make([]string, 0, 16)
	for i := range 16 {
		known = append(known, fmt.Sprintf("[127.0.0.%d]:%d %s", i+1, server.Port, key))
	}
	other := sshdtest.NewKey(t, "ed25519")
	known = append(known, fmt.Sprintf("[127.0.0.1]:%d %s", c.link.Port(), key))
	knownHosts := filepath.Join(t.TempDir(), "known_hosts")
	write(t, knownHosts, strings.Join(known, "\n")+"\n", 0o600)
	var inventory strings.Builder
	fmt.Fprintf(&inventory, "defaults: {port: %d, user: %s, identity: %s, known_hosts: %s, agent: false, shell: sh}\nhosts:\n", server.Port, server.User, server.KeyFile, knownHosts)
	for i := 1; i <= crowdSize; i++ {
		addr, port, more := fmt.Sprintf("127.0.0.%d", i%16+1), server.Port, ""
		switch i {
		case 10:
			more = ", env: {RIGGED: exit}"
		case 20:
			more = ", env: {RIGGED: slow}"
		case 30:
			port = 1
		case 40:
			more = ", host_key: " + gossh.FingerprintSHA256(other.Public())
		case 50:
			addr, port, more = "127.0.0.1", mute.Addr().(*net.TCPAddr).Port, ", connect_timeout: 1s"
		case 60:
			more = ", env: {RIGGED: kill}"
		case 70:
			addr, port, more = "127.0.0.1", c.link.Port(), fmt.Sprintf(", env: {RIGGED: cut, MARKER: %s}", c.marker)
		}
		fmt.Fprintf(&inventory, "  web%03d: {addr: %s, port: %d%s}\n", i, addr, port, more)
	}
	c.user = newUser(t, inventory.String())
	if _, err := binary(); err != nil { // to build it takes its time
		t.Fatal(err)
	}
	return c
}

func someNames() (names []string) {
	for i := 1; i <= crowdSize; i++ {
		if i%10 <= 2 {
			names = append(names, fmt.Sprintf("web%03d", i))
		}
	}
	return names
}

// run runs the mishaps as a command.
func (c *crowd) run(t *testing.T, hosts string, args ...string) outcome {
	t.Helper()
	return c.call(t, append(append([]string{"exec", hosts, "--timeout", "5s"}, args...), "--", mishaps)...)
}

// call calls gateway, and cuts the link of the host that has said that it runs.
func (c *crowd) call(t *testing.T, args ...string) outcome {
	t.Helper()
	os.Remove(c.marker)
	ended, cut := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(cut)
		for _, err := os.Stat(c.marker); err != nil; _, err = os.Stat(c.marker) {
			select {
			case <-ended:
				t.Error("the command never ran that is to be cut off")
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
		c.link.Cut(netsim.RST)
	}()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = c.user.env
	o := outcomeOf(t, cmd)
	close(ended)
	<-cut
	return o
}

// A hundred hosts, or thirty, seven of which fail in seven ways: every view says
// so, and just so.
func TestCrowd(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	t.Run("live", func(t *testing.T) {
		o := c.run(t, "web*")
		lines := strings.Split(strings.TrimSuffix(o.stdout, "\n"), "\n")
		slices.Sort(lines)
		var want []string
		for i := 1; i <= crowdSize; i++ {
			if name := fmt.Sprintf("web%03d", i); !slices.ContainsFunc(rigged, func(r mishap) bool { return r.host == name }) {
				want = append(want, name+" | same")
			}
		}
		if o.status != 5 || !slices.Equal(lines, want) {
			t.Errorf("status %d, want 5; got %q", o.status, lines)
		}
		if !strings.Contains(o.stderr, "gateway: 93 of 100 ok in ") {
			t.Errorf("no summary:\n%s", o.stderr)
		}
		_, summary, _ := strings.Cut(o.stderr, "gateway: 93 of 100")
		for _, r := range rigged {
			if n := strings.Count(o.stderr, r.host+" ! gateway: "); n != 1 {
				t.Errorf("%d words on the end of %s", n, r.host)
			}
			if !strings.Contains(summary, fmt.Sprintf("     1  %-*s  %s\n", len("not started, hostkey.changed"), r.said, r.host)) {
				t.Errorf("%s: %q is not in the summary:\n%s", r.host, r.said, summary)
			}
		}
	})
	t.Run("selector", func(t *testing.T) { c.selectsRigged(t) })
	t.Run("gather", func(t *testing.T) {
		o := c.run(t, some, "-b", "-q")
		if o.status != 5 || !strings.HasPrefix(o.stdout, "=== "+sound+" (23): exit status 0\nsame\n=== ") || strings.Count(o.stdout, "\n=== ") != len(rigged) {
			t.Errorf("status %d:\n%s", o.status, o.stdout)
		}
		for _, r := range rigged {
			if !strings.Contains(o.stdout, "\n=== "+r.host+" (1): "+r.said+"\n") {
				t.Errorf("no group for %s", r.host)
			}
		}
	})
	t.Run("json", func(t *testing.T) {
		o := c.run(t, some, "-o", "json")
		var results []struct {
			Host, Verdict, Stdout string
			ExitCode              *int `json:"exit_code"`
			Error                 *struct{ Code string }
		}
		if err := json.Unmarshal([]byte(o.stdout), &results); err != nil || len(results) != len(someNames()) || o.status != 5 {
			t.Fatalf("status %d, %v, %d results", o.status, err, len(results))
		}
		seven := rigged
		for i, r := range results {
			if want := someNames()[i]; r.Host != want {
				t.Fatalf("%s in the place of %s", r.Host, want)
			}
			if len(seven) == 0 || r.Host != seven[0].host {
				if r.Verdict != "exited" || *r.ExitCode != 0 || r.Stdout != "same\n" || r.Error != nil {
					t.Errorf("%+v, want 0 and its line", r)
				}
				continue
			}
			code, exit := "", -1
			if r.Error != nil {
				code = r.Error.Code
			}
			if r.ExitCode != nil {
				exit = *r.ExitCode
			}
			if want := seven[0]; r.Verdict != want.verdict || code != want.code || want.exit > -2 && exit != want.exit {
				t.Errorf("%s: %s %s %d, want %s %s %d", r.Host, r.Verdict, code, exit, want.verdict, want.code, want.exit)
			}
			seven = seven[1:]
		}
	})
}

// selectsRigged: what failed in the last run are the seven, and nothing else.
func (c *crowd) selectsRigged(t *testing.T) {
	t.Helper()
	o := c.user.gateway(t, "hosts", "list", "run:last/failed", "-o", "json")
	var got []struct{ Name string }
	if err := json.Unmarshal([]byte(o.stdout), &got); err != nil || len(got) != len(rigged) {
		t.Fatalf("%v: %s", err, o.stdout)
	}
	for i, r := range rigged {
		if got[i].Name != r.host {
			t.Errorf("%s, want %s", got[i].Name, r.host)
		}
	}
	o = c.user.gateway(t, "runs", "show", "last", "-o", "json")
	for _, r := range rigged {
		if want := fmt.Sprintf(`{"host":"%s","outcome":"%s","verdict":"%s"`, r.host, r.outcome, r.verdict); !strings.Contains(o.stdout, want) {
			t.Errorf("the record lacks %s", want)
		}
	}
}

func mustRead(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What is the same for many hosts is said once.
func TestWarningOfManyHosts(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	key := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(key, mustRead(t, s.KeyFile), 0o644))
	newer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUpgradeRequired)
		io.WriteString(w, `{"error": {"code": "daemon.version", "message": "daemon: it speaks protocol 99"}}`)
	})
	u := newUser(t, fmt.Sprintf("hosts:\n  \"web[1-3]\": {addr: 127.0.0.1, port: %d, user: %s, identity: %q, known_hosts: %q, agent: false}\n", s.Port, s.User, key, s.KnownHosts))
	u.env = append(u.env, "GATEWAY_SOCKET="+serveSocket(t, newer))
	o := u.gateway(t, "exec", "web[1-3]", "--", "true")
	for _, warning := range []string{"can be read by others", "not using its connections"} {
		if n := strings.Count(o.stderr, warning); o.status != 0 || n != 1 {
			t.Errorf("status %d, %q comes %d times, want once: %s", o.status, warning, n, o.stderr)
		}
	}
}
