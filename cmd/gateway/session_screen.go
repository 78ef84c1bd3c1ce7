package main

import (
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) sessionScreenCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "screen NAME",
		Short: "Show what the program on a session's terminal shows",
		Long: `Show what the program on a session's terminal shows, or the last one there: what
a person would see of a command that was run with --tty.`,
		Example: `  gateway session screen work
  gateway session screen work -o json | jq -r .title`,
		Args:              exactly("NAME"),
		ValidArgsFunction: a.completeSessions(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.daemon(cmd)
			if err != nil {
				return err
			}
			screen, err := c.Screen(cmd.Context(), args[0])
			switch {
			case err != nil:
				return err
			case a.out.format != "text":
				return a.out.json(screen)
			}
			text := strings.TrimRight(strings.Join(screen.Rows, "\n"), "\n")
			if text == "" {
				return nil
			}
			return a.out.printf("%s\n", text)
		},
	}
}
