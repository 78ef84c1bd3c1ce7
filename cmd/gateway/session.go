package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/internal/phrase"
	"gateway/internal/socket"
	"gateway/session"
	"gateway/transport"
)

func (a *app) sessionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "Shells that outlive the call: open, work in, come back to one",
		Long: `A session is a shell on a host that the daemon keeps: its directory, its
variables, what runs in it and all its output are there for the next call,
whatever happens to this one. These commands start the daemon if there is none,
but not with CI=true or --no-daemon.`,
		Example: `  gateway session open web1 --name work
  gateway session exec work -- 'cd /srv/app && make'
  gateway session read work --tail 20
  gateway session attach work
  gateway session close work`,
		Args: cobra.ArbitraryArgs,
		RunE: unknownCommand,
	}
	cmd.PersistentFlags().Bool("no-daemon", false, "start no daemon; use the one that runs")
	cmd.AddCommand(
		a.sessionOpenCommand(), a.sessionExecCommand(), a.sessionReadCommand(),
		a.sessionSendCommand(), a.sessionAnswerCommand(), a.sessionWaitCommand(), a.sessionInterruptCommand(),
		a.sessionResetCommand(), a.sessionScreenCommand(), a.sessionListCommand(), a.sessionEventsCommand(), a.sessionAttachCommand(), a.sessionCloseCommand(),
	)
	return cmd
}

// daemon returns a client of the daemon, which it starts if there is none.
func (a *app) daemon(cmd *cobra.Command) (*client.Client, error) {
	if err := a.load(); err != nil {
		return nil, err
	}
	path, err := a.socket()
	if err != nil {
		return nil, err
	}
	none, err := cmd.Flags().GetBool("no-daemon")
	if err != nil {
		return nil, err
	}
	c := client.At(path, "")
	if a.config.Starts() && !a.config.NoDaemon && !none {
		o, err := a.startOptions(path)
		if err != nil {
			return nil, err
		}
		_, err = client.Start(cmd.Context(), o)
		return c, err
	}
	_, err = c.Hello(cmd.Context())
	if socket.Absent(err) {
		err = &transport.Error{
			Code: "daemon.unreachable", Message: "no daemon runs, and none is started here", Err: err,
			Hint: "start it with: gateway serve",
		}
	}
	return c, err
}

// showSession tells a program what a session is, and a person one line.
func (a *app) showSession(s api.Session, format string, args ...any) error {
	if a.out.format != "text" {
		return a.out.json(s)
	}
	return a.out.printf(format+"\n", args...)
}

// completeSessions completes up to most names of open sessions. No daemon is
// started for it.
func (a *app) completeSessions(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most || a.load() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		path, err := a.socket()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		sessions, _ := client.At(path, "").Sessions(ctx, false) // whoever completes a word wants no errors
		var names []string
		for _, s := range sessions {
			if !slices.Contains(args, s.Name) {
				names = append(names, fmt.Sprintf("%s\t%s", s.Name, s.Host))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// stateOf says what a session does, and since when.
func stateOf(s api.Session) (state, since string) {
	switch {
	case s.State.Over() && s.ClosedAt != nil:
		return string(s.State), ago(*s.ClosedAt)
	case s.State == api.Idle:
		return string(s.State), ago(s.UsedAt)
	case s.Command != nil:
		return string(s.State), ago(s.Command.StartedAt)
	}
	return string(s.State), ""
}

// maxPrompt is how many characters are shown of what a command asks: it may be all
// that it has drawn.
const maxPrompt = 200

// question returns what a command asks as it is shown: the end, where the choices are.
func question(p *api.Prompt) string { return phrase.End(visible(p.Text), maxPrompt) }

// atQuestion says what a command that waits has asked, if it has.
func atQuestion(p *api.Prompt) string {
	if p.Text == "" {
		return ""
	}
	return fmt.Sprintf(" at %q", question(p))
}

// draws reports whether a command waits for keys, and not for an answer.
func draws(p *api.Prompt) bool { return p.Kind == string(session.ScreenPrompt) }

// asks says what a command waits for, in a few words.
func asks(p *api.Prompt) string {
	switch {
	case draws(p):
		return "draws on the screen"
	case p.Text == "":
		return "asks for input"
	}
	return fmt.Sprintf("asks %q", question(p))
}
