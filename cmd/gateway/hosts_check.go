package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/hosts"
)

// checksAtOnce bounds how many hosts are checked at the same time.
const checksAtOnce = 8

func (a *app) hostsCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check SELECTOR",
		Short: "Find out layer by layer whether hosts can be used",
		Long: `Walk the way to hosts layer by layer: name, TCP, host key, banner, key exchange,
each key that is tried, session, shell and sftp. The first layer that fails
ends it, with the remedy. Nothing is recorded: an unknown host key fails.

Status: 0 all can be used, 3 some cannot.`,
		Example: `  gateway hosts check all
  gateway hosts check '@staging,!web03' -o json`,
		Args:              exactly("SELECTOR"),
		ValidArgsFunction: a.completeSelector,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.load(); err != nil {
				return err
			}
			// Of several hosts at once nobody knows which one asks.
			var ask asker
			if several, err := many(args[0]); err == nil && !several {
				ask = a.asker()
			}
			g, selected, err := a.choose(cmd.Context(), ask, policyStrict, args[0])
			if err != nil {
				return err
			}
			defer g.Close()
			return a.checkHosts(cmd.Context(), g, selected)
		},
	}
}

// A stepEntry is one layer of the way to a host as a program gets it.
type stepEntry struct {
	Layer      string `json:"layer"`
	Jump       string `json:"jump,omitempty"`
	OK         bool   `json:"ok"`
	Detail     string `json:"detail"`
	Code       string `json:"code,omitempty"`
	Hint       string `json:"hint,omitempty"`
	DurationMS int64  `json:"duration_ms"`
}

// A checkEntry is what was found out about one host.
type checkEntry struct {
	Host  string             `json:"host"`
	OK    bool               `json:"ok"`
	Layer string             `json:"failed_layer,omitempty"`
	Jump  string             `json:"failed_jump,omitempty"`
	Error *gateway.JSONError `json:"error"`
	Steps []stepEntry        `json:"steps"`
}

// checkHosts checks hosts at the same time and shows each as soon as it is known.
func (a *app) checkHosts(ctx context.Context, g *gateway.Gateway, selected []hosts.Host) error {
	entries, why := fleet.Run(ctx, len(selected), fleet.Plan{Forks: checksAtOnce}, fleet.Task[checkEntry]{
		Run:     func(ctx context.Context, host int) checkEntry { return checkHost(ctx, g, selected[host].Name) },
		Outcome: checkOutcome,
		Without: func(host int, _ fleet.Outcome, why error) checkEntry {
			return checkEntry{Host: selected[host].Name, Error: gateway.NewJSONError(why), Steps: []stepEntry{}}
		},
		Done: func(_ int, e checkEntry) checkEntry {
			a.showCheck(e)
			return e
		},
	})
	if err := a.showChecks(entries); err != nil {
		return err
	}
	if cause, ok := interrupted(context.Cause(ctx)); ok {
		return cause
	}
	return ended(statusOf(ctx, entries, checkOutcome, why))
}

func checkOutcome(e checkEntry) fleet.Outcome {
	if e.OK {
		return fleet.OK
	}
	return fleet.NotStarted
}

func checkHost(ctx context.Context, g *gateway.Gateway, name string) checkEntry {
	entry := checkEntry{Host: name, Steps: []stepEntry{}}
	err := g.Check(ctx, name, func(s gateway.Step) {
		entry.Steps = append(entry.Steps, stepEntry{s.Layer, s.Jump, s.OK, s.Detail, s.Code, s.Hint, s.Duration.Milliseconds()})
		if !s.OK {
			entry.Layer, entry.Jump = s.Layer, s.Jump
		}
	})
	entry.OK, entry.Error = err == nil, gateway.NewJSONError(err)
	if entry.OK {
		entry.Layer = "" // what failed is something that one can do without
	}
	return entry
}

// showCheck shows one host, where the format does not want all at the end.
func (a *app) showCheck(e checkEntry) {
	switch a.out.format {
	case "json":
		return
	case "jsonl":
		_ = a.out.json(e) // the output remembers
		return
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", e.Host)
	for _, s := range e.Steps {
		if s.OK {
			detail := s.Detail
			if s.Jump != "" {
				detail = "jump " + s.Jump + ": " + detail
			}
			fmt.Fprintf(&text, "  %-9s %s      %s (%d ms)\n", s.Layer, a.out.paint(green, "ok"), indent(visible(detail)), s.DurationMS)
			continue
		}
		fmt.Fprintf(&text, "  %-9s %s  %s: %s (%d ms)\n", s.Layer, a.out.paint(red, "failed"), s.Code, indent(visible(s.Detail)), s.DurationMS)
		if s.Hint != "" {
			fmt.Fprintf(&text, "  %-9s hint:   %s\n", "", indent(visible(s.Hint)))
		}
	}
	_ = a.out.printf("%s", text.String())
}

// showChecks shows all hosts at the end: an array, or a table to look over.
func (a *app) showChecks(entries []checkEntry) error {
	switch a.out.format {
	case "json":
		return list(a.out, entries)
	case "jsonl":
		return nil
	}
	rows := [][]string{{"HOST", "RESULT", "LAYER", "CODE"}}
	for _, e := range entries {
		row := []string{e.Host, "ok", "", ""}
		if !e.OK {
			row = []string{e.Host, "failed", e.Layer, e.Error.Code}
			if e.Jump != "" {
				row[2] += " of " + e.Jump
			}
		}
		rows = append(rows, row)
	}
	if err := a.out.printf("\n"); err != nil {
		return err
	}
	return a.out.table(rows)
}
