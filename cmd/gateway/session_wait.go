package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/session"
)

func (a *app) sessionWaitCommand() *cobra.Command {
	var (
		until   string
		timeout duration
		since   int64
	)
	cmd := &cobra.Command{
		Use:   "wait NAME | ID",
		Short: "Wait until a command ends, asks, says something or falls silent",
		Long: `Wait until something happens in a session, and say what did:

  exit         the command that runs has ended
  prompt       it waits for input
  idle=5s      nothing has come from it for that long
  match=REGEX  a line of its output matches (RE2), from the command's beginning
               or from --since on

The end of the command, or its prompt, ends every wait, for nothing else will
come. Status: 0 what was waited for has happened, 1 something else has, the time
was up, or nobody knows how the command ended.`,
		Example: `  gateway session wait work --until exit --timeout 10m
  gateway session wait work --until match='listening on :[0-9]+'
  gateway session wait work --until idle=5s`,
		Args:              exactly("NAME"),
		ValidArgsFunction: a.completeSessions(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			wait, err := parseUntil(cmd, until)
			if err != nil {
				return err
			}
			wait.Max, wait.Since = api.Duration(timeout), since
			return a.sessionWait(cmd, args[0], wait)
		},
	}
	cmd.Flags().StringVar(&until, "until", api.UntilExit, "`WHAT` to wait for: exit, prompt, idle=DURATION or match=REGEX")
	cmd.Flags().Var(&timeout, "timeout", "wait no longer than that (0 is no limit)")
	cmd.Flags().Int64Var(&since, "since", -1, "with match: look from this `CURSOR` on (default the command's beginning)")
	cmd.Flags().Lookup("since").DefValue = "0" // help leaves it out: the text says it
	completeWords(cmd, "until", []string{"exit", "prompt", "idle=5s", "match="})
	return cmd
}

// parseUntil reads the value of --until.
func parseUntil(cmd *cobra.Command, until string) (api.Wait, error) {
	what, value, given := strings.Cut(until, "=")
	wait := api.Wait{Until: what}
	switch {
	case (what == api.UntilExit || what == api.UntilPrompt) && !given:
		return wait, nil
	case what == api.UntilMatch && value != "":
		wait.Match = value
		return wait, nil
	case what == api.UntilIdle && given:
		var silence duration
		if err := silence.Set(value); err != nil || silence == 0 {
			return wait, usage(cmd, "", "--until idle=%s: must be a duration, such as 5s", value)
		}
		wait.Idle = api.Duration(silence)
		return wait, nil
	}
	return wait, usage(cmd, "", "--until: %q is not one of exit, prompt, idle=DURATION or match=REGEX", until)
}

// sessionWait waits, and says what has happened.
func (a *app) sessionWait(cmd *cobra.Command, word string, wait api.Wait) error {
	c, err := a.daemon(cmd)
	if err != nil {
		return err
	}
	waited, err := awaited(cmd.Context(), c, word, wait)
	if err != nil {
		return err
	}
	switch {
	case a.out.format != "text":
		err = a.out.json(waited)
	case waited.Met && wait.Until == api.UntilMatch:
		err = a.out.printf("%s\n", visible(waited.Line))
	default:
		err = a.out.printf("%s\n", happened(waited))
	}
	if err == nil && (!waited.Met || wait.Until == api.UntilExit && isUnknown(waited.Command)) {
		err = exitStatus(statusFailed)
	}
	return err
}

// isUnknown reports whether a command may have run, and nobody knows how it ended.
func isUnknown(c *api.Command) bool { return c != nil && c.State == string(session.Unknown) }

// awaited waits for something in a session. A command that is over needs no
// session that is open.
func awaited(ctx context.Context, c *client.Client, word string, wait api.Wait) (api.Waited, error) {
	name, id := sessionOf(word)
	s, err := c.Session(ctx, name)
	if err != nil {
		return api.Waited{}, err
	}
	if id != "" && (s.Command == nil || s.Command.ID != id || s.Command.Over()) {
		return afterwards(ctx, c, s, id, wait)
	}
	if wait.Since < 0 {
		if wait.Since = s.To; s.Command != nil {
			wait.Since = s.Command.From
		}
	}
	wait.Command = id
	waited, err := c.Wait(ctx, name, wait)
	switch {
	case gateway.Code(err) != "session.closed":
	case s.Command != nil && (wait.Until == api.UntilExit || wait.Until == api.UntilMatch):
		return afterwards(ctx, c, s, s.Command.ID, wait)
	case wait.Until == api.UntilExit:
		return api.Waited{Met: true, Session: s}, nil
	}
	return waited, err
}

// afterwards says what is known of a command that is over.
func afterwards(ctx context.Context, c *client.Client, s api.Session, id string, wait api.Wait) (waited api.Waited, err error) {
	command, err := c.Command(ctx, id, 0)
	if err == nil && wait.Until == api.UntilMatch {
		waited, err = c.Matched(ctx, command, wait)
	} else {
		waited = api.Waited{Met: wait.Until == api.UntilExit, Command: &command}
	}
	waited.Session, waited.Session.Command = s, nil // once is enough
	return waited, err
}

// happened says in a line what a command does.
func happened(w api.Waited) string {
	c := w.Command
	if c == nil {
		return "nothing runs"
	}
	what := strings.ReplaceAll(c.State, "_", " ")
	switch {
	case c.State == string(api.WaitingInput) && c.Prompt != nil:
		what = asks(c.Prompt)
	case c.State == string(api.Running):
		what = fmt.Sprintf("still runs, for %s", ago(c.StartedAt))
	case c.ExitCode != nil:
		what = fmt.Sprintf("%s %d", what, *c.ExitCode)
	}
	return visible(fmt.Sprintf("%s: %s", what, oneLine(c.Text, 48)))
}
