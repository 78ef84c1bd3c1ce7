package count

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"gateway/bench/lab"
	"gateway/transport"
	"gateway/transport/local"
)

// An order tells a child how many commands to run, and where.
type order struct {
	N    int
	Site *lab.Portable // nil is this machine
}

// Obey runs commands, as a child that is watched.
func Obey(ctx context.Context, text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	var t transport.Transport = local.New(local.Config{})
	if o.Site != nil {
		site, err := o.Site.Site()
		if err != nil {
			return err
		}
		if t, err = site.Dial(ctx); err != nil {
			return err
		}
		defer t.Close()
	}
	return within(ctx, t, func(run func() error) error { return repeat(o.N, run) })
}

// few and many are how many commands two children run; what the second one has
// more is what commands cost.
const few, many = 100, 200

// calls counts system calls with strace.
func (c Counts) calls(l *lab.Lab, self string) error {
	if _, err := exec.LookPath("strace"); err != nil {
		return fmt.Errorf("system calls can't be counted: %w", err)
	}
	near := l.Near.Portable()
	for where, site := range map[string]*lab.Portable{"over SSH": &near, "on this machine": nil} {
		var totals [2]tally
		for i, n := range []int{few, many} {
			var err error
			if totals[i], err = watch(l, self, order{n, site}); err != nil {
				return err
			}
		}
		c["system calls of gateway for a command, "+where] = float64(totals[1].own-totals[0].own) / (many - few)
		if site == nil {
			c["system calls of the shell for a command"] = float64(totals[1].shell-totals[0].shell) / (many - few)
		}
	}
	return nil
}

func watch(l *lab.Lab, self string, o order) (tally, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return tally{}, err
	}
	file := filepath.Join(l.Near.Home, "strace")
	cmd := l.Near.Command("strace", "-f", "-qq", "-s", "0", "-o", file, self, "-commands", string(text))
	cmd.Env = append(cmd.Env, "GODEBUG=asyncpreemptoff=1") // its signals come when the machine is busy
	if out, err := cmd.CombinedOutput(); err != nil {
		return tally{}, fmt.Errorf("strace: %w: %.300s", err, out)
	}
	f, err := os.Open(file)
	if err != nil {
		return tally{}, err
	}
	defer f.Close()
	return read(f)
}

// A tally is how many system calls a program made, and how many the busiest of the
// programs that it started: the shell. What the keeper does depends on how often a
// busy machine makes it look for prompts.
type tally struct{ own, shell int }

// call is a line of strace -f; a call that was interrupted by another thread's line
// counts where it begins.
var call = regexp.MustCompile(`^(\d+) +([a-z0-9_]+)\(`)

// waiting are the calls by which Go's scheduler and a shell wait, and a runtime
// manages its memory: how often depends on how busy the machine is.
var waiting = map[string]bool{
	"futex": true, "epoll_pwait": true, "epoll_wait": true, "nanosleep": true, "clock_nanosleep": true, "sched_yield": true,
	"madvise": true, "mmap": true, "munmap": true, "getpid": true, "tgkill": true, "rt_sigreturn": true, "rt_sigprocmask": true,
	"clone": true, "clone3": true, "sigaltstack": true, "gettid": true, "set_robust_list": true, "rseq": true, "restart_syscall": true,
}

// read counts the lines of strace. A process that has called execve is another
// program, but for the first one.
func read(r io.Reader) (tally, error) {
	var t tally
	first := ""
	others := map[string]int{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		m := call.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		pid, name := m[1], m[2]
		switch {
		case first == "":
			first = pid
		case name == "execve" && pid != first:
			others[pid]++
		case waiting[name]:
		case others[pid] > 0:
			others[pid]++
		default:
			t.own++
		}
	}
	for _, n := range others {
		t.shell = max(t.shell, n)
	}
	if t.own == 0 {
		return t, errors.New("strace saw nothing")
	}
	return t, lines.Err()
}
