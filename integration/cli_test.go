package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/internal/sshdtest"
)

// A place is a machine that users know as web1.
type place struct {
	name    string
	tty     bool
	entry   string // of the inventory
	runtime string // where sessions keep their directories, if that is known
	server  *sshdtest.Server
}

func (p place) inventory() string { return "hosts:\n  web1: " + p.entry + "\n" }

func (p place) user(t *testing.T) *user {
	t.Helper()
	return newUser(t, p.inventory())
}

func places(t *testing.T) []place {
	t.Helper()
	runtime := t.TempDir()
	setEnv := []string{"SetEnv XDG_RUNTIME_DIR=" + runtime}
	openSSH := sshdtest.Start(t, sshdtest.Options{Config: setEnv})
	dropbear := sshdtest.StartDropbear(t, sshdtest.Options{})
	noTTY := sshdtest.Start(t, sshdtest.Options{Config: setEnv, AuthorizedOptions: "restrict"})
	return []place{
		{"localhost", true, "{transport: local}", "", nil},
		{"openssh", true, entry(openSSH, ""), runtime, openSSH},
		{"dropbear", true, entry(dropbear, ""), "", dropbear},
		{"no terminal", false, entry(noTTY, ""), runtime, noTTY},
	}
}

// commands have the same outcome on every machine, byte for byte. TAG in an
// argument is a tag that nothing may have afterwards.
var commands = []struct {
	name           string
	args           []string
	stdin          string
	status         int
	stdout, stderr string
	within         time.Duration
	json           bool // stdout is a result, compared without what differs each time
	noTTY          *outcome
}{
	{
		name: "streams and status", args: []string{"exec", "web1", "--", "echo out; echo err >&2; exit 3"},
		status: 3, stdout: "out\n", stderr: "err\n",
	},
	{name: "directory", args: []string{"exec", "web1", "--", "cd /tmp && pwd"}, stdout: "/tmp\n"},
	{
		name: "bytes and death by signal", args: []string{"exec", "web1", "-o", "json", "--", `printf "\000\001\377"; kill -9 $$`},
		status: 137, json: true,
		stdout: `{"background":false,"command":"printf \"\\000\\001\\377\"; kill -9 $$","error":null,"exit_code":137,"host":"web1","schema":"gateway.result/v1","shell":"bash","shell_ended":true,"signal":"KILL",` +
			`"spool":null,"spool_stderr":null,"stderr":"","stderr_bytes":0,"stdout_base64":"AAH/","stdout_bytes":3,"streams":"split","terminal":"","truncated":false,"verdict":"signaled"}`,
	},
	{
		name: "timeout", args: []string{"exec", "web1", "--timeout", "1s", "--", "export TAG; echo part; sleep 60"},
		status: 124, stdout: "part\n", stderr: "gateway: cmd.timeout: session: command ended after its timeout of 1s\n", within: 3 * time.Second,
	},
	{
		name: "timeout of what does not listen", args: []string{"exec", "web1", "--timeout", "1s", "--", `export TAG; trap "" INT TERM; (trap "" INT TERM QUIT; echo part; sleep 60; sleep 60)`},
		status: 124, stdout: "part\n", stderr: "gateway: cmd.timeout: session: command ended after its timeout of 1s\n", within: 5 * time.Second,
		// A bash with job control says how a job died, one without does not.
		noTTY: &outcome{status: 124, stdout: "part\n", stderr: "gateway: cmd.timeout: session: command ended after its timeout of 1s\n"},
	},
	{name: "stdin", args: []string{"exec", "-i", "web1", "--", "wc", "-l"}, stdin: lines(1_000_000), stdout: "1000000\n"},
	{name: "no terminal by default", args: []string{"exec", "web1", "--", "test -t 0 || test -t 1 || test -t 2 || ls -d / | wc -l"}, stdout: "1\n"},
	{
		name: "a terminal", args: []string{"exec", "-t", "web1", "--", "test -t 0 && test -t 1 && test -t 2"},
		noTTY: &outcome{
			status: 125,
			stderr: "gateway: session.pty_refused: session: the account gets no terminal\nhint: run the command without a terminal\n",
		},
	},
	{
		name: "needs input", args: []string{"exec", "web1", "--", `export TAG; read -p "name? " a </dev/tty`},
		status: 125, within: 2 * time.Second,
		stderr: "name? \ngateway: cmd.needs_input: session: command waits for input at \"name? \": nobody to ask\n" +
			"hint: answer it at a terminal with this host alone, give the host a reference to the password, or use an option of the command that asks nothing\n",
		noTTY: &outcome{status: 1, stderr: "bash: /dev/tty: No such device or address\n"},
	},
	{name: "job in the background", args: []string{"exec", "web1", "--", "sleep 0.1 & echo done"}, stdout: "done\n"},
	{name: "status", args: []string{"exec", "web1", "--", "exit 7"}, status: 7},
	{name: "environment and directory", args: []string{"exec", "-e", "A=it's", "web1", "--cwd", "/usr", "--", `sh -c 'echo "$A"; pwd'`}, stdout: "it's\n/usr\n"},
	{name: "merged", args: []string{"exec", "web1", "--merge", "--", "echo a; echo b >&2; echo c"}, stdout: "a\nb\nc\n"},
	{name: "script", args: []string{"exec", "web1", "--script", "-"}, stdin: "cat <<X\n$((1+1))\nX\nfalse\n", status: 1, stdout: "2\n", stderr: "gateway: exit status 1 on line 4 of the script\n"},
	{name: "much output", args: []string{"exec", "web1", "--", "seq 1 200000"}, stdout: lines(200_000)},
	{
		name: "missing directory", args: []string{"exec", "web1", "--cwd", "/nowhere", "--", "echo ran"}, status: 125,
		stderr: "gateway: cmd.cwd: session: directory \"/nowhere\" can't be entered on the machine\n",
	},
	{
		name: "unknown host", args: []string{"exec", "wbe1", "--", "true"}, status: 125,
		stderr: "gateway: inventory.unknown_host: unknown host wbe1\nhint: did you mean web1?\n",
	},
}

func TestSameCommandsEverywhere(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, place := range places(t) {
		t.Run(place.name, func(t *testing.T) {
			u := place.user(t)
			for _, test := range commands {
				t.Run(test.name, func(t *testing.T) {
					tag := tag(t)
					args := make([]string, len(test.args))
					for i, arg := range test.args {
						args[i] = strings.ReplaceAll(arg, "TAG", tag)
					}
					got := u.feed(t, test.stdin, args...)
					want := outcome{status: test.status, stdout: test.stdout, stderr: test.stderr}
					if test.noTTY != nil && !place.tty {
						want = *test.noTTY
					}
					if test.json {
						got.stdout = steady(t, got.stdout)
					}
					got.want(t, want.status, want.stdout, want.stderr)
					if test.within > 0 {
						got.within(t, test.within)
					}
					gone(t, tag)
				})
			}
			if place.runtime != "" {
				eventually(t, "no keeper's directory left", func() bool { return empty(place.runtime) })
			}
		})
	}
}

// steady returns a result without what differs from call to call or from
// machine to machine, its keys in order.
func steady(t *testing.T, result string) string {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(result), &fields); err != nil {
		t.Fatalf("%v in %.1000q", err, result)
	}
	for _, varies := range []string{"id", "session", "user", "transport", "cwd", "started_at", "duration_ms", "connect_ms"} {
		if value, ok := fields[varies]; !ok || value == "" {
			t.Errorf("%s = %v in %.1000s", varies, value, result)
		}
		delete(fields, varies)
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	must(t, encoder.Encode(fields))
	return strings.TrimSuffix(text.String(), "\n")
}

// TestGatewayEnds ends gateway while a command runs: it says so with its
// status, and nothing stays on the machine.
func TestGatewayEnds(t *testing.T) {
	t.Parallel() // it waits, mostly
	ends := []struct {
		name   string
		signal syscall.Signal // none: its stdout is closed
		status int
		stderr string
	}{
		{"TERM", syscall.SIGTERM, 143, "gateway: cmd.interrupted: "},
		{"INT", syscall.SIGINT, 130, "gateway: cmd.interrupted: "},
		{"HUP", syscall.SIGHUP, 129, "gateway: cmd.interrupted: "},
		{"stdout closed", 0, 141, ""},
		{"KILL", syscall.SIGKILL, -1, ""},
	}
	for _, place := range places(t) {
		t.Run(place.name, func(t *testing.T) {
			u := place.user(t)
			for _, end := range ends {
				t.Run(end.name, func(t *testing.T) {
					command := "echo $GATEWAY_SESSION; "
					switch end.signal {
					case 0:
						command += "sh -c 'while :; do echo more; sleep 0.05; done'"
					case syscall.SIGKILL: // the rest is for the hang-up, not for gateway
						command += "sh -c 'sleep 60; :'; sleep 60"
					default:
						command += "sleep 60 & setsid sleep 60 & sh -c 'sleep 60; :'; sleep 60"
					}
					cmd := u.command(t, "exec", "web1", "--", command)
					var stderr strings.Builder
					cmd.Stderr = &stderr
					stdout, err := cmd.StdoutPipe()
					if err != nil {
						t.Fatal(err)
					}
					must(t, cmd.Start())
					line, err := bufio.NewReader(stdout).ReadString('\n')
					if err != nil {
						t.Fatalf("read %q, %v; stderr %.1000q", line, err, stderr.String())
					}
					session := "GATEWAY_SESSION=" + strings.TrimSpace(line) // the shell has it, too
					eventually(t, "the command runs", func() bool { return tagged(session) > 1 })
					begun := time.Now()
					if end.signal == 0 {
						stdout.Close()
					} else if err := cmd.Process.Signal(end.signal); err != nil {
						t.Fatal(err)
					}
					_ = cmd.Wait() // the status says it
					if took := time.Since(begun); sshdtest.Over(t, took, 5*time.Second) {
						t.Errorf("gateway ended after %v, want within 5s", took)
					}
					if got := cmd.ProcessState.ExitCode(); got != end.status {
						t.Errorf("status %d, want %d", got, end.status)
					}
					// The account's shell may say there, too, how its jobs died.
					if got := stderr.String(); !strings.Contains("\n"+got, "\n"+end.stderr) || end.stderr == "" && got != "" || strings.Count(got, "gateway: ") > 1 {
						t.Errorf("stderr %.1000q, want one line with %q", got, end.stderr)
					}
					gone(t, session)
					if place.runtime != "" {
						eventually(t, "no keeper's directory left", func() bool { return empty(place.runtime) })
					}
				})
			}
		})
	}
}

// TestEvents reads the events of a command: they are in order, and together
// they are the result.
func TestEvents(t *testing.T) {
	for _, place := range places(t) {
		t.Run(place.name, func(t *testing.T) {
			u := place.user(t)
			got := u.gateway(t, "exec", "web1", "-o", "jsonl", "--", "echo one; echo two >&2; seq 1 20000; exit 4")
			if got.status != 4 || got.stderr != "" {
				t.Errorf("got %d, stderr %.1000q, want 4 and nothing", got.status, got.stderr)
			}
			said := map[string]string{}
			var last string
			var at time.Time
			for i, line := range strings.Split(strings.TrimSuffix(got.stdout, "\n"), "\n") {
				var event struct {
					Schema, Event, Host, Data string
					Seq                       int
					Time                      time.Time
					Result                    struct {
						Stdout, Stderr string
						ExitCode       int `json:"exit_code"`
					}
				}
				if err := json.Unmarshal([]byte(line), &event); err != nil {
					t.Fatalf("line %d: %v in %.300q", i+1, err, line)
				}
				if event.Schema != "gateway.event/v1" || event.Host != "web1" || event.Seq != i+1 || event.Time.Before(at) || (event.Event == "start") != (i == 0) || last == "result" {
					t.Errorf("line %d after %q: %.300s", i+1, last, line)
				}
				said[event.Event] += event.Data
				last, at = event.Event, event.Time
				if r := event.Result; last == "result" && (r.ExitCode != 4 || r.Stdout != said["stdout"] || r.Stderr != said["stderr"]) {
					t.Errorf("the result differs from the events: %.300s", line)
				}
			}
			if last != "result" || said["stdout"] != "one\n"+lines(20000) || said["stderr"] != "two\n" {
				t.Errorf("the last is %q, stdout %.100q, stderr %.100q", last, said["stdout"], said["stderr"])
			}
		})
	}
}

// TestHostKeys walks through what happens with the key of a machine: nobody
// knows it, it is trusted, it changes.
func TestHostKeys(t *testing.T) {
	t.Parallel()
	for _, place := range places(t) {
		if place.server == nil {
			continue
		}
		t.Run(place.name, func(t *testing.T) {
			server := place.server
			u := newUser(t, fmt.Sprintf("hosts:\n  web1: {addr: %s, port: %d, user: %s, identity: %s, agent: false}\n",
				server.Host, server.Port, server.User, server.KeyFile))
			fingerprint := pin(server)
			file := u.home + "/.ssh/known_hosts"

			got := u.gateway(t, "exec", "web1", "--", "true")
			if got.status != 125 || got.stdout != "" || !strings.HasPrefix(got.stderr, "gateway: hostkey.unknown: ") || !strings.Contains(got.stderr, fingerprint) {
				t.Errorf("unknown key: %d %q %q", got.status, got.stdout, got.stderr)
			}
			if got := u.gateway(t, "hosts", "trust", "web1"); got.status != 2 || !strings.Contains(got.stderr, "--fingerprint") {
				t.Errorf("trust without a fingerprint: %d %q", got.status, got.stderr)
			}
			if got := u.gateway(t, "hosts", "trust", "web1", "--fingerprint", fingerprint); got.status != 0 || !strings.Contains(got.stdout, file) {
				t.Errorf("trust: %d %q %q", got.status, got.stdout, got.stderr)
			}
			u.gateway(t, "exec", "web1", "--", "echo in").want(t, 0, "in\n", "")

			known := mustRead(t, file)
			other := sshdtest.NewKey(t, "ed25519")
			name, _, _ := strings.Cut(string(known), " ")
			u.write(t, ".ssh/known_hosts", "# mine\n"+name+" "+other.Line()+"\n")
			got = u.gateway(t, "exec", "web1", "--", "true")
			if got.status != 125 || got.stdout != "" || !strings.HasPrefix(got.stderr, "gateway: hostkey.changed: ") || !strings.Contains(got.stderr, file+":2") || !strings.Contains(got.stderr, "\nhint: ") {
				t.Errorf("changed key: %d %q %q, want hostkey.changed and %s:2", got.status, got.stdout, got.stderr, file)
			}
		})
	}
}

func TestHostsCommands(t *testing.T) {
	for _, place := range places(t) {
		t.Run(place.name, func(t *testing.T) {
			u := place.user(t)
			got := u.gateway(t, "hosts", "check", "all")
			if got.status != 0 || got.stderr != "" || !strings.HasPrefix(got.stdout, "web1\n  ") || !strings.HasSuffix(got.stdout, "\n\nHOST  RESULT  LAYER  CODE\nweb1  ok\n") || strings.Contains(got.stdout, "failed") {
				t.Errorf("check all: %d %q\n%s", got.status, got.stderr, got.stdout)
			}
			got = u.gateway(t, "hosts", "show", "web1", "--explain")
			origin := u.home + "/.config/gateway/hosts.yaml:2"
			setting := "transport"
			if place.server != nil {
				setting = "port"
			}
			if got.status != 0 || got.stderr != "" || !strings.Contains(got.stdout, "\n"+setting) || !strings.Contains(got.stdout, origin) {
				t.Errorf("show --explain: %d %q\n%s", got.status, got.stderr, got.stdout)
			}
		})
	}
}
