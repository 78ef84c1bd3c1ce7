package peer

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"gateway/bench/lab"
)

var openssh = []Peer{
	{
		Name: "ssh, a new connection", Jumps: true, How: "`ssh host command`",
		Version: says("ssh", "-V"), Missing: needs("ssh"),
		Warm: func(_ context.Context, s *lab.Site) (Shell, error) {
			return each{command: func(text string) *exec.Cmd { return ssh(s, "ssh_config", s.First().Name, text) }}, nil
		},
		Cold: func(ctx context.Context, s *lab.Site, command string) (Cold, error) {
			return whole(output(ctx, ssh(s, "ssh_config", s.First().Name, command)))
		},
		Stream: func(_ context.Context, s *lab.Site) (Stream, error) {
			return programStream(func(text string) *exec.Cmd { return ssh(s, "ssh_config", s.First().Name, text) }), nil
		},
		Idle: func(ctx context.Context, s *lab.Site, connections, each int) (Idle, error) {
			return idlePrograms(connections*each, func(i int) *exec.Cmd {
				return ssh(s, "ssh_config", s.Hosts[i%len(s.Hosts)].Name, "echo up; exec cat")
			})
		},
	},
	{
		Name: "ssh, ControlMaster", Jumps: true, How: "`ssh host command` with `ControlMaster auto`",
		Version: says("ssh", "-V"), Missing: needs("ssh"),
		Warm: func(ctx context.Context, s *lab.Site) (Shell, error) {
			if _, err := output(ctx, ssh(s, "ssh_shared", s.First().Name, "true")); err != nil {
				return nil, err
			}
			return each{
				command: func(text string) *exec.Cmd { return ssh(s, "ssh_shared", s.First().Name, text) },
				close:   func() { endMasters(s, 1) },
			}, nil
		},
		Again: func(ctx context.Context, s *lab.Site) (Again, error) {
			if _, err := output(ctx, ssh(s, "ssh_shared", s.First().Name, "true")); err != nil {
				return Again{}, err
			}
			return Again{
				Ready: func(context.Context) (Shell, error) {
					return each{command: func(text string) *exec.Cmd { return ssh(s, "ssh_shared", s.First().Name, text) }}, nil
				},
				None:  true,
				Close: func() { endMasters(s, 1) },
			}, nil
		},
	},
	{
		Name: "tmux, polled", Jumps: true, How: "`ssh` in a tmux pane; `send-keys`, then `capture-pane` every 100 ms until the mark, as agents do",
		Version: says("tmux", "-V"), Missing: needs("tmux", "ssh"),
		Warm: openPane,
	},
}

func ssh(s *lab.Site, config string, args ...string) *exec.Cmd {
	return s.Command("ssh", append([]string{"-F", s.Path(config)}, args...)...)
}

// endMasters ends the control masters of the first n hosts.
func endMasters(s *lab.Site, n int) {
	_, _ = everywhere(n, 2, func(i int) (string, error) { // one may be gone already
		return "over", ssh(s, "ssh_shared", "-O", "exit", s.Hosts[i].Name).Run()
	})
}

// programStream is a Stream whose every command is a program of its own.
func programStream(command func(text string) *exec.Cmd) Stream {
	var pid int
	return Stream{
		Run: func(ctx context.Context, text string, to io.Writer) error {
			cmd := command(text)
			cmd.Stdout = to
			var errs strings.Builder
			cmd.Stderr = &errs
			if err := cmd.Start(); err != nil {
				return err
			}
			pid = cmd.Process.Pid
			defer context.AfterFunc(ctx, func() { kill(cmd) })()
			if err := cmd.Wait(); err != nil {
				return fmt.Errorf("%w: %.300s", err, errs.String())
			}
			return nil
		},
		Pids:  func() []int { return []int{pid} },
		Close: func() {},
	}
}

// idlePrograms starts programs that say something once and then wait for their
// standard input to end.
func idlePrograms(n int, command func(i int) *exec.Cmd) (Idle, error) {
	pids := make([]int, n)
	ends := make([]func(), n)
	_, err := everywhere(n, 4, func(i int) (string, error) {
		cmd := command(i)
		in, err := cmd.StdinPipe()
		if err != nil {
			return "", err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return "", err
		}
		if err := cmd.Start(); err != nil {
			return "", err
		}
		pids[i] = cmd.Process.Pid
		ends[i] = func() { in.Close(); _ = cmd.Wait() } // its status is nobody's
		if _, err := out.Read(make([]byte, 16)); err != nil {
			return "", fmt.Errorf("%s: nothing came: %w", cmd.Args[0], err)
		}
		return "up", nil
	})
	return Idle{Pids: pids, Close: func() {
		for _, end := range ends {
			if end != nil {
				end()
			}
		}
	}}, err
}

// A pane is a tmux pane with a shell on the host.
type pane struct {
	site *lab.Site
	n    int
}

func openPane(ctx context.Context, s *lab.Site) (Shell, error) {
	p := &pane{site: s}
	start := p.tmux("-f", "/dev/null", "new-session", "-d", "-x", "200", "-y", "50", "-s", "work",
		"ssh -tt -F "+s.Path("ssh_config")+" "+s.First().Name)
	if _, err := output(ctx, start); err != nil {
		return nil, err
	}
	_, err := p.Run(ctx, "true")
	return p, err
}

func (p *pane) tmux(args ...string) *exec.Cmd {
	return p.site.Command("tmux", append([]string{"-S", p.site.Path("tmux")}, args...)...)
}

func (p *pane) Run(ctx context.Context, text string) (string, error) {
	p.n++
	typed := fmt.Sprintf("clear; %s; echo MA''RK%d", text, p.n)
	if _, err := output(ctx, p.tmux("send-keys", "-t", "work", typed, "Enter")); err != nil {
		return "", err
	}
	for {
		seen, err := output(ctx, p.tmux("capture-pane", "-p", "-t", "work"))
		if err != nil {
			return "", err
		}
		if out, _, found := strings.Cut(seen, fmt.Sprintf("MARK%d", p.n)); found {
			return out, nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

func (p *pane) Close() { _ = p.tmux("kill-server").Run() } // it may be gone
