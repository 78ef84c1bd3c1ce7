package peer

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"gateway/bench/lab"
)

// The drivers are long-lived, so that the start of Python is in no figure.
var python = []Peer{
	driven("paramiko", "paramiko_.py", "`client.exec_command(…)` on an open connection", "paramiko", true),
	driven("fabric", "fabric_.py", "`Connection.run(…)` on an open connection", "fabric", false),
	driven("pxssh", "pxssh_.py", "pexpect's own class for ssh: `sendline`, `prompt`", "pexpect", false),
	driven("pexpect", "pexpect_.py", "`ssh` with a prompt of its own, without pexpect's delay of 50 ms before each line", "pexpect", false),
}

// driven is a peer that a Python driver speaks for.
func driven(name, script, how, module string, idles bool) Peer {
	standing := map[*lab.Site]*driver{} // what is cold is the connection, not Python
	p := Peer{
		Name: name, How: how,
		Version: says(lab.Python, "-c", "import importlib.metadata as m; print('"+module+" ' + m.version('"+module+"'))"),
		Missing: func(*lab.Lab) string {
			if exec.Command(lab.Python, "-c", "import "+module).Run() != nil {
				return "no " + module + " for " + lab.Python
			}
			return ""
		},
		Warm: func(ctx context.Context, s *lab.Site) (Shell, error) {
			d, err := drive(s, script)
			if err == nil {
				_, err = d.ask(ctx, "open", "")
			}
			if err != nil {
				d.Close()
				return nil, err
			}
			return d, nil
		},
		Cold: func(ctx context.Context, s *lab.Site, command string) (Cold, error) {
			if standing[s] == nil {
				d, err := drive(s, script)
				if err != nil {
					return Cold{}, err
				}
				standing[s] = d
				s.Defer(d.Close)
			}
			d := standing[s]
			out, err := d.ask(ctx, "cold", command)
			return Cold{out, func() { _, _ = d.ask(context.Background(), "done", "") }}, err // it may have failed
		},
	}
	if idles {
		p.Idle = func(ctx context.Context, s *lab.Site, connections, each int) (Idle, error) {
			d, err := drive(s, script)
			if err != nil {
				return Idle{}, err
			}
			if _, err := d.ask(ctx, "idle", fmt.Sprintf("%d %d", connections, each)); err != nil {
				d.Close()
				return Idle{}, err
			}
			return Idle{Pids: []int{d.cmd.Process.Pid}, Close: d.Close}, nil
		}
	}
	return p
}

// A driver is a Python program that answers each line of JSON with one.
type driver struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	errs strings.Builder
}

// drive starts a driver and waits until it has imported what it needs.
func drive(s *lab.Site, script string) (*driver, error) {
	h := s.First()
	d := &driver{cmd: s.Command(lab.Python, filepath.Join(s.Drivers, script),
		h.Addr, strconv.Itoa(h.Port), s.Server.User, s.Server.KeyFile, s.Path("known_hosts"), s.Path("ssh_config"), h.Name)}
	d.cmd.Stderr = &d.errs
	var err error
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	d.out = bufio.NewReader(out)
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := d.ask(context.Background(), "hello", ""); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *driver) Run(ctx context.Context, command string) (string, error) {
	return d.ask(ctx, "run", command)
}

func (d *driver) ask(ctx context.Context, verb, text string) (string, error) {
	line, err := json.Marshal([]string{verb, text})
	if err != nil {
		return "", err
	}
	defer context.AfterFunc(ctx, func() { kill(d.cmd) })()
	if _, err := d.in.Write(append(line, '\n')); err != nil {
		return "", err
	}
	answer, err := d.out.ReadBytes('\n')
	if err != nil {
		_ = d.cmd.Wait() // for its last words
		return "", fmt.Errorf("driver ended: %w: %s", err, lastLine(d.errs.String()))
	}
	var said struct{ Out, Error string }
	if err := json.Unmarshal(answer, &said); err != nil {
		return "", err
	}
	if said.Error != "" {
		return "", fmt.Errorf("%s", said.Error)
	}
	return said.Out, nil
}

func (d *driver) Close() {
	if d == nil {
		return
	}
	d.in.Close()
	kill(d.cmd)
	_ = d.cmd.Wait() // it was killed
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndex(text, "\n")+1:]
}
