package main

import "github.com/spf13/cobra"

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
