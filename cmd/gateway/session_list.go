package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gateway/daemon/api"
)

func (a *app) sessionListCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the sessions: what each one does, and since when",
		Long: `List the open sessions, the newest first, and those that were lost: the link or
the daemon went away. What ran in a lost one may go on running; closing it takes
it off the list.`,
		Example: `  gateway session list
  gateway session list --all
  gateway session list -o json | jq -r '.[] | select(.state == "idle").name'`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.daemon(cmd)
			if err != nil {
				return err
			}
			sessions, err := c.Sessions(cmd.Context(), all)
			if err != nil {
				return err
			}
			return a.listSessions(sessions)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also those that are closed, as long as their records are kept")
	return cmd
}

func (a *app) listSessions(sessions []api.Session) error {
	rows := [][]string{{"NAME", "HOST", "USER", "STATE", "SINCE", "COMMAND", "REMARK"}}
	for _, s := range sessions {
		state, since := stateOf(s)
		user := s.User
		if s.Sudo != "" {
			user = s.Sudo
		}
		row := []string{s.Name, s.Host, user, state, since, ranOrRuns(s), remark(s)}
		if s.State.Over() && s.Name != s.ID {
			row[0] += " (" + s.ID + ")" // another one may have the name by now
		}
		rows = append(rows, row)
	}
	if !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[len(row)-1] != "" }) {
		rows[0] = rows[0][:len(rows[0])-1]
	}
	return listOrTable(a.out, sessions, rows)
}

// ranOrRuns says what runs in a session, or ran last.
func ranOrRuns(s api.Session) string {
	c := s.Command
	if c == nil {
		return ""
	}
	text := oneLine(c.Text, 48)
	switch {
	case s.State == api.Idle && c.ExitCode != nil:
		return fmt.Sprintf("(%d) %s", *c.ExitCode, text)
	case s.State == api.Idle:
		return fmt.Sprintf("(%s) %s", c.State, text)
	}
	return text
}

// remark says what else there is to know of a session.
func remark(s api.Session) string {
	var parts []string
	if c := s.Command; s.State == api.WaitingInput && c != nil && c.Prompt != nil {
		parts = append(parts, oneLine(asks(c.Prompt), 60))
	}
	if s.Attached != "" {
		parts = append(parts, "attached: "+s.Attached)
	}
	if why := s.Why(); s.State.Over() && why != "" {
		parts = append(parts, why)
	}
	return strings.Join(parts, "; ")
}
