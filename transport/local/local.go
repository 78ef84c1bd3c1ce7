// Package local is the transport for this machine: creack/pty for terminals,
// os/exec for pipes.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gateway/transport"
)

// How long a program may take to end after the hang-up before its process group
// is killed: on a terminal few catch it, and on pipes some have to clean up.
const (
	terminalGrace = 200 * time.Millisecond
	pipeGrace     = 5 * time.Second
)

// Config says how programs start. The zero value starts them as sshd would
// start them for this account.
type Config struct {
	// Env is added to the environment described at [New]; later entries win.
	Env []string
	// Dir is the working directory; empty means the account's home.
	Dir string
	// Shell reads the commands; empty means the account's login shell.
	Shell string
}

// Transport implements [transport.Transport] on this machine.
type Transport struct {
	shell string
	dir   string
	env   []string

	mu       sync.Mutex // guards what follows
	closed   bool
	programs map[*program]struct{} // those that have not ended
}

// New returns a transport for this machine. Its programs get HOME, USER,
// LOGNAME, SHELL, PATH, LANG, LC_*, TZ of this process's environment and the
// entries of config.Env, and nothing else: what the caller happens to have
// exported is not what a host would have (sshd(8), LOGIN PROCESS). They ignore the
// signals that this process ignores, and not those that it has a receiver for
// (os/signal): under nohup, one for SIGHUP lets them be hung up.
func New(config Config) *Transport {
	a := lookupAccount()
	t := &Transport{shell: cmp.Or(config.Shell, a.shell), dir: cmp.Or(config.Dir, a.home), programs: map[*program]struct{}{}}
	if info, err := os.Stat(t.dir); err != nil || !info.IsDir() {
		t.dir = "/" // as sshd does where the home is missing
	}
	t.env = append(a.environment(os.Environ()), config.Env...)
	return t
}

// Dir returns the directory in which programs start.
func (t *Transport) Dir() string { return t.dir }

// command builds the process for a command line, without its streams.
func (t *Transport) command(line string, term string) *exec.Cmd {
	cmd := &exec.Cmd{Path: t.shell, Dir: t.dir, Env: t.env}
	if script, ok := t.script(line); ok {
		cmd.Path, cmd.Args = sh, []string{sh, "-c", script}
	} else if line == "" {
		cmd.Args = []string{"-" + filepath.Base(t.shell)} // a leading dash makes a login shell (sh(1))
	} else {
		cmd.Args = []string{filepath.Base(t.shell), "-c", line}
	}
	if term != "" {
		cmd.Env = append(slices.Clip(cmd.Env), "TERM="+term)
	}
	return cmd
}

const sh = "/bin/sh"

// script returns the script of a line that has the account's shell become /bin/sh and does
// nothing else, where that shell reads no file for a line: then it need not be started, a
// millisecond for dash and three for bash.
func (t *Transport) script(line string) (string, bool) {
	script, execs := strings.CutPrefix(line, "exec "+sh+" -c '")
	script, ends := strings.CutSuffix(script, "'")
	if !execs || !ends || strings.Contains(script, "'") || !slices.Contains([]string{"sh", "dash", "bash"}, filepath.Base(t.shell)) {
		return "", false
	}
	reads := slices.ContainsFunc(t.env, func(entry string) bool { return strings.HasPrefix(entry, "BASH_ENV=") })
	return script, !reads && unix.Access(t.shell, unix.X_OK) == nil
}

// start starts cmd, whose attributes make it the leader of its own process
// group, and gives it an owner.
func (t *Transport) start(ctx context.Context, cmd *exec.Cmd, grace time.Duration) (*program, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("local: start %s: %w", cmd.Path, transport.Cause(ctx))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, fmt.Errorf("local: start %s: %w", cmd.Path, transport.ErrClosed)
	}
	if err := cmd.Start(); isExhausted(err) {
		return nil, exhausted("start "+cmd.Path, err)
	} else if err != nil {
		return nil, &transport.Error{
			Code:    "shell.unsupported",
			Message: fmt.Sprintf("local: start %s: %v", cmd.Path, errors.Unwrap(err)),
			Hint:    "the account's login shell must exist and be executable",
			Err:     err,
		}
	}
	p := &program{Ending: transport.NewEnding(), cmd: cmd, grace: grace}
	t.programs[p] = struct{}{}
	go func() { // ends with the process, which Close kills
		p.wait()
		t.mu.Lock()
		delete(t.programs, p)
		t.mu.Unlock()
	}()
	return p, nil
}

// Close implements [transport.Transport].
func (t *Transport) Close() error {
	t.mu.Lock()
	t.closed = true
	programs := slices.Collect(maps.Keys(t.programs))
	t.mu.Unlock()
	var group sync.WaitGroup
	for _, p := range programs {
		group.Go(p.end)
	}
	group.Wait()
	return nil
}

// program is one child process, the leader of its process group.
type program struct {
	*transport.Ending
	cmd     *exec.Cmd
	grace   time.Duration
	hungUp  atomic.Bool // by Close, before it had ended
	endOnce sync.Once
}

// wait reaps the process. It runs once, in the goroutine that start made.
func (p *program) wait() {
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.Finish(transport.Exit{}, fmt.Errorf("local: wait for %s: %w", p.cmd.Path, err))
		return
	}
	if p.hungUp.Load() && p.cmd.SysProcAttr.Setctty { // many a shell ends with a status then, ksh93 with 0
		p.Finish(transport.Exit{}, fmt.Errorf("local: %s: %w", p.cmd.Path, transport.ErrClosed))
		return
	}
	end := transport.Exit{Code: p.cmd.ProcessState.ExitCode()}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		end = transport.Exit{Code: 128 + int(status.Signal()), Signal: signalName(status.Signal())}
	}
	p.Finish(end, nil)
}

// end hangs the process group up, kills it when that is not enough, and waits
// until the leader is reaped, but not for ever: what exec has made another user's program
// can't be killed. A leader that has ended by itself leaves its background jobs running, as
// it does under sshd.
func (p *program) end() {
	p.hungUp.Store(true)
	p.endOnce.Do(func() {
		p.signal(syscall.SIGHUP)
		p.signal(syscall.SIGCONT) // a stopped process sees the hang-up only then
		select {
		case <-p.Done():
		case <-time.After(p.grace):
			p.signal(syscall.SIGKILL)
		}
	})
	select {
	case <-p.Done():
	case <-time.After(p.grace):
	}
}

// signal sends sig to the process group unless its leader is gone: the number
// may belong to somebody else by then.
func (p *program) signal(sig syscall.Signal) {
	select {
	case <-p.Done():
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, sig)
	}
}
