package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"gateway/daemon/api"
	"gateway/gateway"
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
	if a.config.Output != "text" {
		return list(a.out, sessions)
	}
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
	return a.out.table(rows)
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
		parts = append(parts, "attached: "+visible(s.Attached))
	}
	if s.State.Over() && s.Reason != string(s.State) {
		parts = append(parts, visible(s.Reason))
	}
	return strings.Join(parts, "; ")
}

func (a *app) sessionCloseCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "close NAME... | --all",
		Short: "Close sessions, and end what runs in them",
		Long: `Close sessions, and end what runs in them. Their output can still be read, as
long as their records are kept.`,
		Example: `  gateway session close work
  gateway session close --all`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeSessions(math.MaxInt),
		RunE: func(cmd *cobra.Command, names []string) error {
			if all == (len(names) > 0) {
				return usage(cmd, "", "name sessions, or say --all")
			}
			return a.sessionClose(cmd, names)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all that are open, and the lost ones")
	return cmd
}

// sessionClose closes sessions, or all if none is named.
func (a *app) sessionClose(cmd *cobra.Command, names []string) error {
	c, err := a.daemon(cmd)
	if err != nil {
		return err
	}
	slices.Sort(names)
	names = slices.Compact(names)
	all := len(names) == 0
	if all {
		sessions, err := c.Sessions(cmd.Context(), false)
		if err != nil {
			return err
		}
		for _, s := range sessions {
			names = append(names, s.ID)
		}
	}
	sessions, errs := make([]api.Session, len(names)), make([]error, len(names))
	var closing sync.WaitGroup // at the same time: one answer may take seconds
	for i, name := range names {
		closing.Go(func() { sessions[i], errs[i] = c.Close(cmd.Context(), name) })
	}
	closing.Wait()
	var failed []error
	closed := []api.Session{}
	for i, s := range sessions {
		switch {
		case errors.Is(errs[i], context.Canceled) || cmd.Context().Err() != nil:
			return context.Cause(cmd.Context())
		case all && gateway.Code(errs[i]) == "session.closed": // it has ended since it was listed
		case errs[i] != nil:
			failed = append(failed, errs[i])
		default:
			closed = append(closed, s)
		}
	}
	var nothing error // but that: it is told as that of any other verb
	if n := len(failed); n > 0 && len(closed) == 0 {
		failed, nothing = failed[:n-1], failed[n-1]
	}
	for _, err := range failed {
		a.out.fail(err)
	}
	if nothing != nil {
		return nothing
	}
	if a.config.Output != "text" {
		err = list(a.out, closed)
	} else {
		for _, s := range closed {
			err = errors.Join(err, a.out.printf("%s closed\n", s.Name))
		}
	}
	if err == nil && len(failed) > 0 {
		err = exitStatus(statusFailed)
	}
	return err
}
