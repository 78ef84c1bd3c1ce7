package peer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"gateway/bench/lab"
	"gateway/daemon/api"
	"gateway/daemon/client"
)

// The names that the targets speak of.
const (
	APIName         = "gateway, the daemon's API"
	MCPName         = "gateway mcp"
	SessionExecName = "gateway session exec"
	ExecName        = "gateway exec, cold"
)

var ours = []Peer{
	engine, library,
	{
		Name: APIName, Ours: true, How: "`POST /v1/sessions/…` over the socket, from one client", Version: program,
		Warm: func(ctx context.Context, s *lab.Site) (Shell, error) {
			d, name, err := daemonWith(ctx, s)
			return apiShell{d, name}, err
		},
	},
	mcpPeer(MCPName, ourServer),
	{
		Name: SessionExecName, Ours: true, How: "`gateway session exec NAME -- command`, a session of the daemon", Version: program,
		Warm: func(ctx context.Context, s *lab.Site) (Shell, error) {
			d, name, err := daemonWith(ctx, s)
			if err != nil {
				return nil, err
			}
			return each{
				command: func(text string) *exec.Cmd { return run(s, "session", "exec", name, "-q", "--", text) },
				close:   d.Close,
			}, nil
		},
		Stream: func(ctx context.Context, s *lab.Site) (Stream, error) {
			d, name, err := daemonWith(ctx, s)
			if err != nil {
				return Stream{}, err
			}
			stream := programStream(func(text string) *exec.Cmd { return run(s, "session", "exec", name, "-q", "--", text) })
			alone := stream.Pids
			stream.Pids = func() []int { return append(alone(), d.pid) }
			stream.Close = d.Close
			return stream, nil
		},
		Idle: func(ctx context.Context, s *lab.Site, connections, each int) (Idle, error) {
			d, err := startDaemon(ctx, s)
			if err != nil {
				return Idle{}, err
			}
			n := connections * each
			_, err = everywhere(n, 8, func(i int) (string, error) {
				return d.open(ctx, s.Hosts[i/each].Name)
			})
			return Idle{Pids: []int{d.pid}, Close: d.Close}, err
		},
	},
	{
		Name: "gateway exec, the daemon's connection", Ours: true, How: "`gateway exec host -- command` while the daemon has a session there", Version: program,
		Warm: func(ctx context.Context, s *lab.Site) (Shell, error) {
			d, _, err := daemonWith(ctx, s)
			if err != nil {
				return nil, err
			}
			return each{command: func(text string) *exec.Cmd { return run(s, "exec", s.First().Name, "-q", "--", text) }, close: d.Close}, nil
		},
		FanWarm: func(ctx context.Context, s *lab.Site, n int) (WarmFan, error) {
			d, err := startDaemon(ctx, s)
			if err != nil {
				return WarmFan{}, err
			}
			_, err = everywhere(n, 8, func(i int) (string, error) {
				return d.open(ctx, s.Hosts[i].Name)
			})
			if err != nil {
				d.Close()
				return WarmFan{}, err
			}
			return WarmFan{
				Run: func(ctx context.Context, command string) (Crowd, error) {
					return crowdOf(ctx, run(s, "exec", selector(n), "-q", "--", command))
				},
				Close: d.Close,
			}, nil
		},
	},
	{
		Name: ExecName, Ours: true, How: "`gateway exec --no-daemon host -- command`", Version: program,
		Warm: func(_ context.Context, s *lab.Site) (Shell, error) {
			return each{command: func(text string) *exec.Cmd { return cold(s, s.First().Name, text) }}, nil
		},
		Local: func(_ context.Context, s *lab.Site) (Shell, error) {
			return each{command: func(text string) *exec.Cmd { return here(s, text) }}, nil
		},
		Begin: begun(here),
		Cold: func(ctx context.Context, s *lab.Site, command string) (Cold, error) {
			return whole(output(ctx, cold(s, s.First().Name, command)))
		},
		Stream: func(_ context.Context, s *lab.Site) (Stream, error) {
			return programStream(func(text string) *exec.Cmd { return cold(s, s.First().Name, text) }), nil
		},
		Fan: func(ctx context.Context, s *lab.Site, n, forks int, command string) (Crowd, error) {
			return crowdOf(ctx, run(s, "exec", selector(n), "--no-daemon", "-q", "-f", strconv.Itoa(forks), "--", command))
		},
	},
	ourCopy,
}

// program is the version of gateway itself.
func program(l *lab.Lab) string { return says(l.Program, "version")(l) }

func run(s *lab.Site, args ...string) *exec.Cmd { return s.Command(s.Program, args...) }

func cold(s *lab.Site, host, text string) *exec.Cmd {
	return run(s, "exec", host, "--no-daemon", "-q", "--shell", lab.Shell, "--", text)
}

func here(s *lab.Site, text string) *exec.Cmd { return cold(s, "localhost", text) }

// selector names the first n hosts.
func selector(n int) string { return fmt.Sprintf("h[000-%03d]", n-1) }

// A daemon is gateway serve for one site, which its users share.
type daemon struct {
	site   *lab.Site
	client *client.Client
	pid    int
}

// users counts the users of each site's daemon.
var users = map[*lab.Site]int{}

func startDaemon(ctx context.Context, s *lab.Site) (*daemon, error) {
	d := &daemon{site: s, client: client.At(s.Path("run/s"), "")}
	users[s]++
	if users[s] == 1 { // nor does it remember what was before
		_ = os.RemoveAll(s.Path(".local/state/gateway"))
	}
	if _, err := output(ctx, run(s, "serve")); err != nil {
		d.Close()
		return nil, err
	}
	hello, err := d.client.Hello(ctx)
	if err != nil {
		d.Close()
		return nil, err
	}
	d.pid = hello.PID
	return d, nil
}

// daemonWith starts a daemon with one session and returns its name.
func daemonWith(ctx context.Context, s *lab.Site) (*daemon, string, error) {
	d, err := startDaemon(ctx, s)
	if err != nil {
		return nil, "", err
	}
	opened, err := d.open(ctx, s.First().Name)
	if err != nil {
		d.Close()
		return nil, "", err
	}
	return d, opened, nil
}

// open opens a session as a user does: the command line borrows only connections
// that were made with just its settings.
func (d *daemon) open(ctx context.Context, host string) (id string, err error) {
	out, err := output(ctx, run(d.site, "session", "open", host, "-q", "--shell", lab.Shell))
	return strings.TrimSpace(out), err
}

// Close ends the daemon with its last user.
func (d *daemon) Close() {
	d.client.Release()
	if users[d.site]--; users[d.site] > 0 {
		return
	}
	_ = run(d.site, "serve", "--stop", "--force").Run() // it may be gone
}

type apiShell struct {
	*daemon
	session string
}

func (a apiShell) Run(ctx context.Context, command string) (string, error) {
	r, err := a.client.Run(ctx, a.session, api.Run{Text: command, Wait: api.Duration(time.Minute)})
	if err != nil {
		return "", err
	}
	if r.Result == nil {
		return "", fmt.Errorf("state %s after a minute", r.State)
	}
	return string(r.Result.Stdout), nil
}

// crowdOf runs a program for many hosts and counts the lines that end as the
// command's output does.
func crowdOf(ctx context.Context, cmd *exec.Cmd) (Crowd, error) {
	stop := lab.Peak(func() []int {
		if cmd.Process == nil {
			return nil
		}
		return []int{cmd.Process.Pid}
	})
	out, err := output(ctx, cmd)
	crowd := Crowd{Peak: stop()}
	for line := range strings.Lines(out) {
		if strings.HasSuffix(strings.TrimSpace(line), Said) {
			crowd.OK++
		}
	}
	return crowd, err
}

// Said is what the commands of a fan-out say.
const Said = "said-hi"
