package main

import (
	"context"
	"fmt"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/script"
)

// check connects to the hosts and becomes what steps need to be.
func (r *scriptRun) check(ctx context.Context, plan fleet.Plan) error {
	results, why := fleet.Run(ctx, len(r.names), plan, fleet.Task[script.Result]{
		Run:     func(ctx context.Context, host int) script.Result { return r.runner.Check(ctx, r.names[host]) },
		Outcome: scriptOutcome,
		Without: r.without,
	})
	status := statusOf(ctx, results, scriptOutcome, why)
	rows := [][]string{{"HOST", "RESULT", "USER", "SHELL", "TIME", "CODE", "MESSAGE"}}
	for i := range results {
		result := &results[i]
		row := []string{result.Host, spelled(result.Outcome), result.User, gateway.ShellName(result.Shell), fmt.Sprintf("%d ms", result.Duration.Milliseconds()), "", ""}
		if result.Err != nil {
			row[5], row[6] = gateway.Code(result.Err), oneLine(result.Err.Error(), 120)
		}
		rows = append(rows, row)
	}
	if err := listOrTable(r.app.out, results, rows); err != nil {
		return err
	}
	return ended(status)
}
