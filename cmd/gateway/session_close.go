package main

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"gateway/daemon/api"
	"gateway/gateway"
)

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
	return a.tellClosed(cmd.Context(), all, sessions, errs)
}

// tellClosed says which sessions are closed, and why others are not. Of those whose
// closing a signal has cut short, nobody knows.
func (a *app) tellClosed(ctx context.Context, all bool, sessions []api.Session, errs []error) (err error) {
	var failed []error
	closed := []api.Session{}
	for i, s := range sessions {
		switch {
		case errs[i] != nil && ctx.Err() != nil:
			err = context.Cause(ctx)
		case all && gateway.Code(errs[i]) == "session.closed": // it has ended since it was listed
		case errs[i] != nil:
			failed = append(failed, errs[i])
		default:
			closed = append(closed, s)
		}
	}
	if err != nil && len(closed) == 0 {
		return err
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
	if a.out.format != "text" {
		err = errors.Join(err, list(a.out, closed))
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
