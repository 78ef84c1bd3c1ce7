package main

import (
	"github.com/spf13/cobra"

	"gateway/daemon/api"
	"gateway/session"
)

func (a *app) sessionInterruptCommand() *cobra.Command {
	level := string(session.Int)
	cmd := &cobra.Command{
		Use:   "interrupt NAME | ID",
		Short: "Ask what runs in a session to end; the session stays",
		Long: `Ask what runs in a session to end; the session stays. The level int is what ^C
does; term and kill are signals to everything that the command has started, but
not to the session's shell. With the ID of a command, this is refused if another
one runs there. It does not wait for the end; gateway session wait does.`,
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
