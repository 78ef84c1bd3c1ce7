package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gateway/gateway"
	"gateway/session"
)

// execFlags are what the command line says about one command.
type execFlags struct {
	tty, stdin, login, merge bool
	noDaemon                 bool
	timeout                  duration
	cwd, shell, user, script string
	sudo                     sudoFlag
	env                      []string
	keepGoing, dryRun        bool
	many                     manyFlags
}

func (a *app) execCommand() *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use:   "exec [flags] SELECTOR [flags] [--] COMMAND...",
		Short: "Run one command on a host, or on many",
		Long: `Run one command on a host, or on many. Flags come before SELECTOR or directly
after it; the next word starts COMMAND. The words of COMMAND are joined with
spaces and read by the session's shell: bash if there is one, otherwise sh.

With one plain host name, output comes unchanged, and the exit status is the
command's. Flags for many hosts (--forks, --batch, --max-fail, --fail-fast,
--gather, --diff) are checked, but change nothing there. Status: 0-255 the
command's own, 124 timed out, 125 did not start, 122 outcome unknown,
130/143/129 interrupted, 141 stdout was closed.

Any other SELECTOR (a group, a glob, a range, a tag, a list, all, run:…) is for
many hosts, however many it selects: each line of output has its host in front,
and a summary comes last, on stderr. Nobody is asked anything. The run is
remembered: once it has ended, run:last/failed selects its hosts that were tried
and are not ok.
Status: 0 all exited 0, 1 a command failed, 2 nothing was tried, 3 some host did
not start, 4 some timed out, 5 some outcome is unknown (also of commands that
were ended because stdout could not be written to), 6 stopped by --max-fail or
--fail-fast; if several apply, the first of 5, 3, 4, 6, 1. 130/143/129
interrupted, 141 stdout was closed.

What the command leaves in the background is hung up when it ends, unless it was
started with nohup or setsid, or in a shell other than bash and ksh93.

--script runs the statements of a file one by one, in one shell: the first that
fails ends the script, and its line is named.`,
		Example: `  gateway exec localhost -- 'uname -a; exit 3'
  gateway exec web1 --cwd /srv/app -e CI=1 -- make test
  gateway exec -t web1 top
  tar c src | gateway exec -i web1 -- tar x -C /tmp
  gateway exec web1 --script deploy.sh
  gateway exec web1 -o json -- uptime
  gateway exec '@web,!web03' -- systemctl is-active nginx
  gateway exec 'web[01-40]' -b --diff -- cat /etc/os-release
  gateway exec @web --batch 1,10%,rest --max-fail 2 --script deploy.sh
  gateway exec run:last/failed --out logs -- journalctl -u nginx -n 50`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeSelector,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.exec(cmd, args, &f)
		},
	}
	flags := cmd.Flags()
	cmd.SetFlagErrorFunc(a.oneHostFlagError)
	flags.SetInterspersed(false) // the command's own flags are its own
	flags.BoolVarP(&f.tty, "tty", "t", false, "run it on a terminal")
	flags.BoolVarP(&f.stdin, "stdin", "i", false, "pass stdin on; without it stdin is never read")
	flags.Var(&f.timeout, "timeout", "end it that long after its start")
	flags.StringVar(&f.cwd, "cwd", "", "run it in `DIR`")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "set `NAME=VALUE` for it, or pass on NAME; may be repeated")
	flags.StringVar(&f.shell, "shell", "", "the shell that reads it, a `PATH` or a name")
	flags.BoolVar(&f.login, "login", false, "read the login profile first")
	flags.StringVarP(&f.user, "user", "u", "", "enter the host as `USER`")
	f.sudo.add(flags, "run it by sudo as USER, else as the inventory says, else as root")
	flags.BoolVar(&f.noDaemon, "no-daemon", false, "use no connection that the daemon has open")
	flags.BoolVar(&f.merge, "merge", false, "send its stderr to stdout")
	flags.StringVar(&f.script, "script", "", "run the text of `FILE` (- is stdin) in place of COMMAND")
	flags.BoolVar(&f.keepGoing, "keep-going", false, "run a --script whole: go on after statements that fail")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would run where, and connect to nothing")
	f.many.add(a, flags)
	completeWords(cmd, "shell", []string{"bash", "sh", "zsh"})
	completeFiles(cmd, "script", "out")
	return cmd
}

// exec runs one command on one host, or on many.
func (a *app) exec(cmd *cobra.Command, args []string, f *execFlags) error {
	text, args, err := a.selection(cmd, args, "SELECTOR")
	if err != nil || text == "" {
		return err
	}
	a.about.Command = strings.Join(args, " ")
	c, err := a.command(cmd, args, f)
	if err != nil {
		return err
	}
	a.about.Command = c.Text
	if err := a.load(); err != nil {
		return err
	}
	if err := f.many.check(cmd, a.out.format); err != nil {
		return err
	}
	switch {
	case f.dryRun:
		return a.dryRun(cmd.Context(), text, c)
	case !a.oneHost:
		return a.execMany(cmd, text, c, f)
	}
	return a.execOne(cmd.Context(), text, c, f)
}

// execOne runs a command on one host.
func (a *app) execOne(ctx context.Context, selector string, c gateway.Command, f *execFlags) error {
	show := a.newShow(selector)
	ask := show.asker(a.asker())
	a.borrow(f.noDaemon, ask != nil)
	g, err := a.open(ask, policyAsk)
	if err != nil {
		r := notStarted("", c.Text, err)
		r.Host = selector
		return a.finish(ctx, show, r)
	}
	defer g.Close()
	c.Output, c.Spool = show.output, a.out.format != "text"
	out, err := a.openOut(f.many.out)
	if err != nil {
		return err
	}
	c.Output = out.tee(selector, c.Output)
	live := a.attach(&c, f, show)
	defer live.stop()
	unread := a.unread(f)
	unread.warn()
	a.log.Debug("exec", "host", selector, "tty", c.TTY, "timeout", c.Timeout)
	r := g.Exec(ctx, selector, c)
	live.stop()
	unread.warn() // what fed the pipe may have been slower than this
	out.result(selector, r)
	switch err := out.close(); {
	case err != nil && r.Err == nil:
		r.Err = err
	case err != nil:
		a.warn(err.Error())
	}
	return a.finish(ctx, show, r)
}

// finish shows how it ended and returns the status for it.
func (a *app) finish(ctx context.Context, show *show, r gateway.Result) error {
	show.result(r)
	if r.Line > 0 && r.Verdict != session.NotStarted && a.out.format == "text" && a.out.failed() == nil {
		a.out.say(fmt.Sprintf("gateway: %s on line %d of the script", ending(r), r.Line))
	}
	a.ran = r.Verdict != session.NotStarted
	status := resultStatus(ctx, r)
	a.log.Info("exec", "host", r.Host, "id", r.ID, "verdict", r.Verdict, "code", gateway.Code(r.Err),
		"status", status, "connect", r.Connect, "duration", r.Duration)
	return ended(status)
}

// command puts together what is to be run.
func (a *app) command(cmd *cobra.Command, args []string, f *execFlags) (gateway.Command, error) {
	c := gateway.Command{
		Text: strings.Join(args, " "), Cwd: f.cwd, Merge: f.merge,
		Timeout: time.Duration(f.timeout), TTY: f.tty,
		Session: gateway.Options{Shell: f.shell, Login: f.login, User: f.user, Sudo: f.sudo.set, SudoUser: f.sudo.user},
	}
	var err error
	switch {
	case f.script == "" && len(args) == 0:
		return c, usage(cmd, "for a terminal there is gateway shell", "no COMMAND given")
	case f.script != "" && len(args) > 0:
		return c, usage(cmd, "", "a COMMAND and --script exclude each other")
	case f.script == "-" && f.stdin:
		return c, usage(cmd, "", "--script - and --stdin both want stdin")
	case f.script == "" && f.keepGoing:
		return c, usage(cmd, "", "--keep-going is for --script")
	case f.script != "" && (f.stdin || f.tty) && !f.keepGoing:
		return c, usage(cmd, "--keep-going runs the script whole", "a script that runs statement by statement has no stdin and no terminal")
	case f.tty && !a.oneHost:
		return c, usage(cmd, "name one host", "-t is for one host")
	case f.tty && f.stdin && !isTerminal(os.Stdin):
		return c, usage(cmd, "leave out -t or -i", "-t and -i together need a terminal as stdin")
	case f.script != "":
		text, err := readAll(cmd.Context(), f.script, maxScript)
		if err != nil {
			return c, usage(cmd, "", "--script: %v", err)
		}
		c.Text, c.Script = string(text), !f.keepGoing
		if line := foreign(c.Text); line != "" {
			return c, usage(cmd, "pass it to its own program, as in: gateway exec -i web1 -- python3 - <FILE", "--script: no shell's: its first line is %.80q", line)
		}
	}
	if f.stdin && !f.tty {
		c.Stdin = os.Stdin
	}
	c.Env, err = environment(cmd, f.env)
	return c, err
}

// environment parses the values of --env.
func environment(cmd *cobra.Command, list []string) (map[string]string, error) {
	env := make(map[string]string, len(list))
	for _, entry := range list {
		name, value, given := strings.Cut(entry, "=")
		if !session.EnvName.MatchString(name) {
			return nil, usage(cmd, "", "--env: %q is no name of a variable", name)
		}
		if !given {
			if value, given = os.LookupEnv(name); !given {
				return nil, usage(cmd, "set it, or say --env "+name+"=VALUE", "--env: %s is not set here", name)
			}
		}
		env[name] = value
	}
	return env, nil
}
