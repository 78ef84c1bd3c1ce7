package main

import (
	"github.com/spf13/cobra"

	"gateway/daemon/api"
	"gateway/session"
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
input. With the ID of a command, this is refused if another one runs there. TEXT
goes first, then --enter, then the keys. TEXT is visible in the process list of
this machine: for a password, use gateway session answer.

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
