// Package peer holds the contenders: what a user would pick, the floor that
// nothing can beat, and gateway itself. Each is data and a little code.
package peer

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"gateway/bench/lab"
)

// A Peer is one contender. What is nil it does not do, or nobody would do it that
// way.
type Peer struct {
	// Name stands in the tables, How says what is run.
	Name, How string
	// Ours: it is gateway. Floor: it is the least that can be had.
	Ours, Floor bool
	// Jumps: it passes through a bastion if the site's files say so, as gateway does.
	Jumps bool
	// InProcess: it is code of this program, so that its memory is this process's.
	InProcess bool
	// Version says which one was measured.
	Version func(*lab.Lab) string
	// Missing says why it can't take part, and is empty if it can.
	Missing func(*lab.Lab) string

	// Warm opens what stays open between commands.
	Warm func(context.Context, *lab.Site) (Shell, error)
	// Local is Warm on this machine; the site is only a home.
	Local func(context.Context, *lab.Site) (Shell, error)
	// Cold runs one command with everything that has to be made for it. Code leaves
	// the cleaning up to Cold.Close; a program does its own, as its user waits for it.
	Cold func(ctx context.Context, site *lab.Site, command string) (Cold, error)
	// Begin starts a program for one command on this machine and returns with its first
	// byte. Cold.Close waits for its end.
	Begin func(ctx context.Context, site *lab.Site, command string) (Cold, error)
	// Again prepares a warm connection; each call of what it returns opens one more
	// session there, runs a command, and closes it.
	Again func(context.Context, *lab.Site) (Again, error)
	// Stream prepares a warm connection for much output.
	Stream func(context.Context, *lab.Site) (Stream, error)
	// Fan runs a command on a site's first n hosts, forks at a time.
	Fan func(ctx context.Context, site *lab.Site, n, forks int, command string) (Crowd, error)
	// FanWarm opens what stays open to n hosts.
	FanWarm func(ctx context.Context, site *lab.Site, n int) (WarmFan, error)
	// Many opens n shells on one host, over as few connections as it allows.
	Many func(ctx context.Context, site *lab.Site, n int) ([]Shell, error)
	// Idle opens connections with sessions each, and leaves them idle.
	Idle func(ctx context.Context, site *lab.Site, connections, each int) (Idle, error)
	// Copy copies files.
	Copy func(ctx context.Context, site *lab.Site, job Copy) error
}

// A Shell runs commands one after the other and returns their output.
type Shell interface {
	Run(ctx context.Context, command string) (string, error)
	Close()
}

// Cold is what a first command said.
type Cold struct {
	Out   string
	Close func() // may be nil
}

// whole is a Cold that has cleaned up.
func whole(out string, err error) (Cold, error) { return Cold{Out: out}, err }

// Again opens one more session on a connection that is there.
type Again struct {
	// Ready opens it and returns what runs a command there. What has no session
	// makes a channel for the command, and is never ready before.
	Ready func(context.Context) (Shell, error)
	None  bool // there is no session
	Close func()
}

// A Stream carries much output.
type Stream struct {
	// Run runs a command and gives its output away as it comes.
	Run func(ctx context.Context, command string, to io.Writer) error
	// Pids are the processes whose memory it takes; ours is 0.
	Pids  func() []int
	Close func()
}

// A Crowd is what became of a fan-out.
type Crowd struct {
	OK int // hosts whose output came
	// Peak is the most memory it took, in bytes, with its children; 0 is unknown.
	Peak int64
}

// A WarmFan runs a command on all hosts that it has open.
type WarmFan struct {
	Run   func(ctx context.Context, command string) (Crowd, error)
	Close func()
}

// Idle is a number of idle sessions.
type Idle struct {
	Pids  []int // the client's processes
	Close func()
}

// A Copy is a job for a peer that copies files.
type Copy struct {
	// From and To are paths. The far one is on the site's first host; Up says that
	// it is To. Tree says that they are directories.
	From, To string
	Up, Tree bool
}

// All are the contenders, in the order of the tables.
func All() []Peer {
	var all []Peer
	for _, group := range [][]Peer{floors, apart, ours, bare, openssh, python, ansible, crowds, agents, copiers} {
		all = append(all, group...)
	}
	return all
}

// needs says which of the programs are not here.
func needs(programs ...string) func(*lab.Lab) string {
	return func(*lab.Lab) string {
		for _, name := range programs {
			if _, err := exec.LookPath(name); err != nil {
				return "no " + name + " here"
			}
		}
		return ""
	}
}

// says is the first line of what a program prints about its version.
func says(name string, args ...string) func(*lab.Lab) string {
	return func(l *lab.Lab) string {
		out, err := l.Near.Command(name, args...).CombinedOutput()
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		if err != nil {
			return fmt.Sprintf("unknown (%v)", err)
		}
		return line
	}
}

// output runs a program and returns what it said, or why it failed.
func output(ctx context.Context, cmd *exec.Cmd) (string, error) {
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	stop := context.AfterFunc(ctx, func() { kill(cmd) })
	defer stop()
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %.300s", cmd.Args[0], err, errs.String())
	}
	return out.String(), nil
}

// begun is a Begin.
func begun(program func(s *lab.Site, command string) *exec.Cmd) func(context.Context, *lab.Site, string) (Cold, error) {
	return func(ctx context.Context, s *lab.Site, command string) (Cold, error) {
		cmd := program(s, command)
		out, err := cmd.StdoutPipe()
		if err != nil {
			return Cold{}, err
		}
		if err := cmd.Start(); err != nil {
			return Cold{}, err
		}
		stop := context.AfterFunc(ctx, func() { kill(cmd) })
		defer stop()
		first := make([]byte, len(command)) // more than comes of it
		n, err := out.Read(first)
		return Cold{Out: string(first[:n]), Close: func() {
			_, _ = io.Copy(io.Discard, out)
			_ = cmd.Wait() // what it said is looked at
		}}, err
	}
}

func kill(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = cmd.Process.Kill() // it may be over
	}
}

// An each is a Shell whose every command is a program of its own.
type each struct {
	command func(text string) *exec.Cmd
	close   func()
}

func (e each) Run(ctx context.Context, text string) (string, error) {
	return output(ctx, e.command(text))
}

func (e each) Close() {
	if e.close != nil {
		e.close()
	}
}

// Why says why the peer can't take part, and is empty if it can.
func (p Peer) Why(l *lab.Lab) string {
	if p.Missing == nil {
		return ""
	}
	return p.Missing(l)
}
