package main

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/session"
	"gateway/transport"
)

func (a *app) sessionSendCommand() *cobra.Command {
	var (
		enter bool
		keys  []string
	)
	cmd := &cobra.Command{
		Use:   "send NAME | ID [TEXT]",
		Short: "Type to what runs in a session",
		Long: `Type to what runs in a session: a command with a terminal, or one that waits for
input. With the ID of a command it is refused if another one runs there. TEXT
goes first, then --enter, then the keys. TEXT is in the process list of this
machine: for a password there is gateway session answer.

Keys: enter tab esc space backspace up down left right home end pgup pgdn insert
delete f1 to f12, or a character; with ctrl-, alt- and shift- before it.`,
		Example: `  gateway session send work yes --enter
  gateway session send work --key ctrl-c
  gateway session send work ':q!' --key enter
  gateway session send work --key esc --key : --key w --key enter`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeSessions(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usage(cmd, "", "no NAME given")
			case len(args) > 2:
				return usage(cmd, "put TEXT in quotes", "unexpected argument %q", args[2])
			case len(args) < 2 && !enter && len(keys) == 0:
				return usage(cmd, "", "no TEXT and no --key given")
			}
			if _, err := session.Keys(keys...); err != nil {
				return err
			}
			c, err := a.daemon(cmd)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			name, id := sessionOf(args[0])
			if len(args) > 1 || enter {
				text := ""
				if len(args) > 1 {
					text = args[1]
				}
				if err := c.Send(ctx, name, api.Input{Text: text, Enter: enter, Command: id}); err != nil {
					return err
				}
			}
			if len(keys) == 0 {
				return nil
			}
			return c.Send(ctx, name, api.Input{Keys: keys, Command: id})
		},
	}
	cmd.Flags().BoolVar(&enter, "enter", false, "press enter behind TEXT")
	cmd.Flags().StringArrayVar(&keys, "key", nil, "press `KEY`, such as ctrl-c or up; may be repeated")
	completeWords(cmd, "key", []string{"enter", "esc", "tab", "up", "down", "ctrl-c", "ctrl-d"})
	return cmd
}

// maxAnswer is more than a terminal takes as a line.
const maxAnswer = 64 << 10

func (a *app) sessionAnswerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "answer NAME | ID",
		Short: "Answer what a session's command asks, such as a password",
		Long: `Answer what a session's command asks. The answer is read from the terminal
without being shown, or from stdin if that is a pipe or a file; it is never an
argument. In what comes from the command stars stand in its place. A stdin
without a single byte is an error, and a newline alone the empty answer.`,
		Example: `  gateway session answer work
  pass show staging/sudo | gateway session answer work`,
		Args:              exactly("NAME"),
		ValidArgsFunction: a.completeSessions(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.daemon(cmd)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			name, id := sessionOf(args[0])
			s, err := c.Session(ctx, name)
			switch {
			case err != nil:
				return err
			case id != "" && (s.Command == nil || s.Command.ID != id):
				return &transport.Error{Code: "usage", Message: fmt.Sprintf("command %s does not run in session %s", id, s.Name), Hint: "gateway session list -o json says what does"}
			case s.State != api.WaitingInput || s.Command == nil || s.Command.Prompt == nil:
				return &transport.Error{Code: "usage", Message: fmt.Sprintf("session %s does not wait for input: it is %s", s.Name, s.State), Hint: "to type to a program there is gateway session send"}
			}
			text, err := a.readAnswer(ctx, cmd, s)
			if err != nil {
				return err
			}
			return c.Send(ctx, s.ID, api.Input{Text: text, Enter: true, Secret: true, Command: s.Command.ID})
		},
	}
}

// readAnswer reads what is to be typed: from who sits here, or from stdin.
func (a *app) readAnswer(ctx context.Context, cmd *cobra.Command, s api.Session) (string, error) {
	if isTerminal(os.Stdin) {
		ask := a.asker()
		if ask == nil {
			return "", usage(cmd, "pass the answer on stdin", "nobody can be asked here")
		}
		// Not a command's question: its text is not on this terminal yet.
		return ask(ctx, gateway.Question{Kind: gateway.AskChallenge, Host: s.Host, User: s.User, Prompt: question(s.Command.Prompt)})
	}
	data, err := readAll(ctx, "-", maxAnswer+1)
	if err != nil {
		return "", err
	}
	if len(data) == 0 { // what was to say it has most likely failed
		return "", usage(cmd, "an empty answer is a newline alone: echo | "+cmd.CommandPath()+" "+s.Name, "stdin has no answer: it ends at once")
	}
	data = bytes.TrimSuffix(bytes.TrimSuffix(data, []byte("\n")), []byte("\r"))
	if len(data) > maxAnswer || bytes.ContainsAny(data, "\n\r\x00") {
		return "", usage(cmd, "", "an answer is one line of at most %d KiB", maxAnswer>>10)
	}
	return string(data), nil
}

func (a *app) sessionInterruptCommand() *cobra.Command {
	level := string(session.Int)
	cmd := &cobra.Command{
		Use:   "interrupt NAME | ID",
		Short: "Ask what runs in a session to end; the session stays",
		Long: `Ask what runs in a session to end; the session stays. The level int is what ^C
does; term and kill are signals to all that the command has started, but not to
the session's shell. With the ID of a command it is refused if another one runs
there. It does not wait: gateway session wait does.`,
		Example: `  gateway session interrupt work
  gateway session interrupt work --level kill`,
		Args:              exactly("NAME"),
		ValidArgsFunction: a.completeSessions(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch session.Level(level) {
			case session.Int, session.Term, session.Kill:
			default:
				return usage(cmd, "", "--level: %q is not one of int, term or kill", level)
			}
			c, err := a.daemon(cmd)
			if err != nil {
				return err
			}
			name, id := sessionOf(args[0])
			return c.Interrupt(cmd.Context(), name, api.Interrupt{Level: level, Command: id})
		},
	}
	cmd.Flags().StringVar(&level, "level", level, "`LEVEL`: int, term or kill")
	completeWords(cmd, "level", []string{string(session.Int), string(session.Term), string(session.Kill)})
	return cmd
}

func (a *app) sessionResetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reset NAME",
		Short: "Put a fresh shell in the place of a session's",
		Long: `Put a fresh shell in the place of a session's, in the same directory and with
the same exported variables. What runs is ended; functions, options and what was
not exported are gone. Where sudo asked for a password at the opening, it takes
the inventory's sudo.password: without that, the session ends.`,
		Example:           `  gateway session reset work`,
		Args:              exactly("NAME"),
		ValidArgsFunction: a.completeSessions(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.daemon(cmd)
			if err != nil {
				return err
			}
			if err := c.Reset(cmd.Context(), args[0]); err != nil {
				return err
			}
			s, err := c.Session(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.showSession(s, "%s has a fresh shell in %s", s.Name, visible(s.Cwd))
		},
	}
}
