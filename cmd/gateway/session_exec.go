package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/session"
)

// sessionExecFlags are what the command line says about a command of a session.
type sessionExecFlags struct {
	tty, stdin, merge   bool
	timeout, wait, idle duration
	cwd                 string
	env                 []string
}

func (a *app) sessionExecCommand() *cobra.Command {
	var f sessionExecFlags
	cmd := &cobra.Command{
		Use:   "exec [flags] NAME [flags] [--] COMMAND...",
		Short: "Run a command in a session, and wait for its end",
		Long: `Run a command in a session. What it changes, such as the directory and
variables, stays. Flags stand before NAME or directly after it; the words of
COMMAND are joined with spaces and read by the session's shell.

The command belongs to the daemon: it goes on when this call is killed or its
terminal goes away, and its output can be read later. The first INT or TERM
interrupts it; a second one leaves at once, and the command goes on. With --tty
at a terminal your keys go to it, and ~. at the beginning of a line leaves.

Status: that of gateway exec, and 123 with --wait: it still runs, or it waits
for input.`,
		Example: `  gateway session exec work -- 'cd /srv/app && export CI=1'
  gateway session exec work --timeout 10m -- make test
  gateway session exec work --wait 5s -- ./migrate
  gateway session exec --tty work -- top`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeSessions(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.oneHost = true
			name, rest, err := first(cmd, args, "NAME")
			if len(args) > 0 {
				a.about.Session = args[0]
			}
			if err != nil || name == "" {
				return err
			}
			a.about.Command = strings.Join(rest, " ")
			return a.sessionExec(cmd, name, rest, &f)
		},
	}
	flags := cmd.Flags()
	cmd.SetFlagErrorFunc(a.oneHostFlagError)
	flags.SetInterspersed(false) // the command's own flags are its own
	flags.BoolVarP(&f.tty, "tty", "t", false, "run it on the session's terminal, which echoes what is typed")
	flags.BoolVarP(&f.stdin, "stdin", "i", false, fmt.Sprintf("read stdin to its end, at most %d MiB, and pass it on", api.MaxStdin>>20))
	flags.Var(&f.timeout, "timeout", "end it that long after its start")
	flags.Var(&f.idle, "idle", "end it when nothing has come from it for that long")
	flags.Var(&f.wait, "wait", "wait no longer than that, and not for a person to answer")
	flags.BoolVar(&f.merge, "merge", false, "send its stderr to stdout")
	flags.StringVar(&f.cwd, "cwd", "", "run it in `DIR`")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "set `NAME=VALUE` for it, or pass on NAME; may be repeated")
	return cmd
}

// sessionExec runs one command in a session.
func (a *app) sessionExec(cmd *cobra.Command, name string, args []string, f *sessionExecFlags) error {
	ctx := cmd.Context()
	run, err := a.sessionRun(cmd, args, f)
	if err != nil {
		return err
	}
	c, err := a.daemon(cmd)
	if a.config == nil { // the settings are wrong
		return err
	}
	show := a.newShow("")
	if err != nil {
		return a.finish(ctx, show, notStarted(name, run.Text, err))
	}
	if a.out.format == "text" {
		run.Limit = 1 // all of it has been shown by then: another MiB would be sent for nothing
	}
	unread := &unread{app: a, flags: "-i", done: f.stdin || f.tty}
	unread.warn()
	e := &execution{app: a, client: c, show: show, session: name, run: run, wait: time.Duration(f.wait), waits: cmd.Flags().Changed("wait")}
	r := e.do(ctx)
	if r.Session == name && a.out.format != "text" { // it has not started, and a program goes by ids
		if s, err := c.Session(ctx, name); err == nil {
			r.Session = s.ID
		}
	}
	unread.warn()
	err = a.finish(ctx, show, r)
	if r.Ended && r.Verdict != session.Unknown && a.out.format == "text" && !a.config.Quiet {
		a.out.say(fateOf(name, r))
	}
	return err
}

// fateOf says what has become of a session whose shell has ended, with the command or
// before it began.
func fateOf(name string, r gateway.Result) string {
	ended := "gateway: the session's shell ended with the command"
	if r.Verdict == session.NotStarted {
		ended = "gateway: the session's shell ended"
	}
	if r.Reopened {
		return ended + "; a fresh one has its directory and exported variables from before"
	}
	return ended + ", and session " + name + " is over"
}

// sessionRun puts together what is to be run.
func (a *app) sessionRun(cmd *cobra.Command, args []string, f *sessionExecFlags) (api.Run, error) {
	run := api.Run{
		Text: strings.Join(args, " "), Cwd: f.cwd, TTY: f.tty, Echo: f.tty, Merge: f.merge,
		Timeout: api.Duration(f.timeout), Idle: api.Duration(f.idle),
	}
	var err error
	switch {
	case len(args) == 0:
		return run, usage(cmd, "to type commands there is gateway session attach", "no COMMAND given")
	case f.tty && f.stdin:
		return run, usage(cmd, "leave out -t or -i", "a command on a terminal has no other stdin")
	case f.stdin:
		if run.Stdin, err = readAll(cmd.Context(), "-", api.MaxStdin+1); err != nil {
			return run, err
		}
		if len(run.Stdin) > api.MaxStdin {
			return run, usage(cmd, "make a file of it there: gateway exec -i HOST -- 'cat >FILE'", "--stdin: more than the %d MiB that a session takes", api.MaxStdin>>20)
		}
	}
	run.Env, err = environment(cmd, f.env)
	return run, err
}

// notStarted is the result of a command that did not run.
func notStarted(name, text string, err error) gateway.Result {
	return gateway.Result{Session: name, Command: text, Err: err, Result: session.Result{
		Verdict: session.NotStarted, ExitCode: -1, Streams: session.Split,
	}}
}
