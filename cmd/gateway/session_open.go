package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"gateway/daemon/api"
	"gateway/transport"
)

// openFlags are what the command line says about a session.
type openFlags struct {
	name, cwd, shell, term, user, kind string
	login, reopen                      bool
	cols, rows                         int
	sudo                               sudoFlag
	ttl                                duration
	env                                []string
}

func (a *app) sessionOpenCommand() *cobra.Command {
	var f openFlags
	cmd := &cobra.Command{
		Use:   "open HOST",
		Short: "Open a session on a host, and print its name",
		Long: `Open a session on a host, and print its name. It stays until it is closed, its
shell ends, or it was idle for its --ttl. At a terminal you are asked for
passwords and about unknown host keys; without one, unknown keys are refused.`,
		Example: `  gateway session open web1 --name work
  gateway session open db1 --sudo=postgres --cwd /var/lib/postgresql --ttl 1h
  s=$(gateway session open web1) && gateway session exec "$s" -- uptime`,
		Args:              plainHost,
		ValidArgsFunction: a.completeHost,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.sessionOpen(cmd, args[0], &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "call it `NAME`; else it gets one")
	flags.StringVar(&f.cwd, "cwd", "", "start in `DIR`")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "export `NAME=VALUE` in it, or pass on NAME; may be repeated")
	flags.StringVar(&f.shell, "shell", "", "its shell, a `PATH` or a name")
	flags.BoolVar(&f.login, "login", false, "read the login profile first")
	flags.StringVarP(&f.user, "user", "u", "", "enter the host as `USER`")
	f.sudo.add(flags, "become USER by sudo, else as the inventory says, else root")
	flags.IntVar(&f.cols, "cols", 0, "give its terminal `N` columns (default this terminal's, else 80)")
	flags.IntVar(&f.rows, "rows", 0, "give its terminal `N` rows (default this terminal's, else 24)")
	flags.StringVar(&f.term, "term", "", "`TYPE` of its terminal (default dumb, with cat for every pager)")
	flags.StringVar(&f.kind, "kind", api.PTY, "`KIND`: pty, or pipe for no terminal at all")
	flags.Var(&f.ttl, "ttl", "close it after that long without a command (default the setting session_ttl)")
	flags.BoolVar(&f.reopen, "reopen", false, "when a command ends its shell, put a fresh one in its place")
	completeWords(cmd, "shell", []string{"bash", "sh", "zsh"})
	completeWords(cmd, "term", []string{"dumb", "xterm", "xterm-256color"})
	completeWords(cmd, "kind", []string{api.PTY, api.Pipe})
	return cmd
}

func (a *app) sessionOpen(cmd *cobra.Command, host string, f *openFlags) error {
	size := a.console.size()
	o := api.Open{
		Name: f.name, Shell: f.shell, Login: f.login, Cwd: f.cwd, Kind: f.kind, Term: f.term,
		Cols: cmp.Or(f.cols, size.Cols), Rows: cmp.Or(f.rows, size.Rows),
		TTL: api.Duration(f.ttl), Reopen: f.reopen,
	}
	impossible := func(flag string, n int) bool {
		return cmd.Flags().Changed(flag) && (n < 1 || n > transport.MaxSize)
	}
	switch {
	case f.kind != api.PTY && f.kind != api.Pipe:
		return usage(cmd, "", "--kind: %q is neither pty nor pipe", f.kind)
	case impossible("cols", f.cols) || impossible("rows", f.rows):
		return usage(cmd, "", "--cols and --rows: 1 to %d", transport.MaxSize)
	case cmd.Flags().Changed("ttl") && f.ttl == 0: // it would be the setting's
		return usage(cmd, "a session that is to stay takes a long one, such as 10000h", "--ttl: must be more than 0")
	case f.sudo.set:
		o.Sudo = &api.Sudo{User: f.sudo.user}
	}
	var err error
	if o.Env, err = environment(cmd, f.env); err != nil {
		return err
	}
	c, err := a.daemon(cmd)
	if err != nil {
		return err
	}
	g, err := a.open(a.asker(), policyAsk)
	if err != nil {
		return err
	}
	defer g.Close()
	s, err := c.OpenHost(cmd.Context(), g, host, f.user, o)
	if err != nil {
		return err
	}
	a.log.Info("session open", "host", s.Host, "session", s.ID, "name", s.Name)
	if s.Kind == api.Pipe && f.kind == api.PTY {
		a.warn("the account gets no terminal: nothing in this session can be asked, and no -t")
	}
	return a.showSession(s, "%s", s.Name)
}
