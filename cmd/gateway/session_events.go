package main

import (
	"github.com/spf13/cobra"

	"gateway/daemon/api"
)

func (a *app) sessionEventsCommand() *cobra.Command {
	var since int64
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Tell what becomes of all sessions, one JSON object a line",
		Long: `Tell about the lives of all sessions as it happens, one JSON object a line:
opened, state, waiting_input, reopened, exited, closed, lost. One named dropped
says how many were missed by a reader that was too slow.`,
		Example: `  gateway session events |
    jq -r 'select(.event == "waiting_input") | .session.name'
  gateway session events --since 0`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.daemon(cmd)
			if err != nil {
				return err
			}
			return c.Events(cmd.Context(), since, func(e api.Event) error { return a.out.json(e) })
		},
	}
	cmd.Flags().Int64Var(&since, "since", -1, "from the event of this `NUMBER` on (default from now on)")
	cmd.Flags().Lookup("since").DefValue = "0" // help leaves it out: the text says it
	return cmd
}
