package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gateway/runs"
)

func (a *app) runsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List and show what was run on many hosts",
		Long: `List and show what was run on many hosts: when, where, and how it went, without
any output. What is run or copied on one host by its name is not recorded. Runs
are kept for 30 days, at most 1,000 and 64 MiB. The selector run:last/failed
stands for the hosts of the last run that were tried and are not ok;
ID/failed,skipped,unknown for hosts of another.

Each outcome is noted as it comes. A run that was killed has those that it knew;
hosts that it was on are unknown, and those that it never tried are skipped. As
long as a run goes on, list and show say how far it is, and its hosts can't be
selected.`,
		Example: `  gateway runs list
  gateway runs show last
  gateway exec run:last/failed -- systemctl restart nginx`,
		Args: cobra.ArbitraryArgs,
		RunE: unknownCommand,
	}
	cmd.AddCommand(a.runsListCommand(), a.runsShowCommand())
	return cmd
}

// A runEntry is a run in a list.
type runEntry struct {
	ID        string         `json:"id"`
	Verb      string         `json:"verb"`
	Selector  string         `json:"selector"`
	Command   string         `json:"command"`
	StartedAt time.Time      `json:"started_at"`
	EndedAt   *time.Time     `json:"ended_at"`
	Running   bool           `json:"running"`
	Status    *int           `json:"status"`
	Hosts     int            `json:"hosts"`
	Counts    map[string]int `json:"counts"`
}

func (a *app) runsListCommand() *cobra.Command {
	var limit uint
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the runs, the latest first",
		Example: `  gateway runs list --limit 10
  gateway runs list -o json`,
		Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			if err := a.load(); err != nil {
				return err
			}
			if a.runs().Dir == "" {
				a.warn(unremembered)
			}
			ids, err := a.runs().IDs()
			if err != nil {
				return err
			}
			if limit > 0 {
				ids = ids[:min(uint(len(ids)), limit)]
			}
			var entries []runEntry
			rows := [][]string{{"ID", "STARTED", "HOSTS", "NOT OK", "STATUS", "SELECTOR", "COMMAND"}}
			for _, id := range ids {
				r, err := a.runs().Load(id)
				if err != nil {
					a.warn(err.Error())
					continue
				}
				entries = append(entries, runEntry{r.ID, r.Verb, r.Selector, r.Command, r.StartedAt, r.EndedAt, r.Running, r.Status, len(r.Hosts), r.Counts()})
				rows = append(rows, []string{r.ID, r.StartedAt.Local().Format(time.DateTime), fmt.Sprint(len(r.Hosts)), fmt.Sprint(r.Bad()), statusCell(r), oneLine(r.Selector, 30), oneLine(typed(r), 50)})
			}
			return listOrTable(a.out, entries, rows)
		},
	}
	cmd.Flags().UintVar(&limit, "limit", 0, "the latest `N` only (0 is all)")
	return cmd
}

// typed returns what was run, with the verb where it was not exec.
func typed(r runs.Record) string {
	if r.Verb == "exec" {
		return r.Command
	}
	return r.Verb + " " + r.Command
}

func statusCell(r runs.Record) string {
	switch {
	case r.Running:
		return "running"
	case r.Status == nil:
		return "-"
	}
	return fmt.Sprint(*r.Status)
}

func (a *app) runsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show how a run went on each host",
		Long:  "Show how a run went on each host. ID is the beginning of a run's id, or last.",
		Example: `  gateway runs show last
  gateway runs show 01KB9Q -o json`,
		Args: exactly("ID"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			ids, _ := a.runs().IDs()
			return append([]string{"last"}, ids...), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := a.load(); err != nil {
				return err
			}
			r, err := a.runs().Load(args[0])
			if err != nil {
				return err
			}
			if a.out.format != "text" {
				return a.out.json(r)
			}
			return a.showRun(r)
		},
	}
}

func (a *app) showRun(r runs.Record) error {
	ended := "not known: it was killed, or can't be seen from here"
	switch {
	case r.Running:
		ended = "it still runs"
	case r.EndedAt != nil:
		took := max(r.EndedAt.Sub(r.StartedAt), 0) // the clock may have been set back meanwhile
		ended = fmt.Sprintf("%s, after %v", r.EndedAt.Local().Format(time.DateTime), took.Round(time.Millisecond))
	}
	about := [][]string{
		{"id", r.ID},
		{"selector", r.Selector},
		{"command", oneLine(typed(r), 200)},
		{"started", r.StartedAt.Local().Format(time.DateTime)},
		{"ended", ended},
		{"status", statusCell(r)},
	}
	if err := a.out.table(about); err != nil {
		return err
	}
	rows := [][]string{{"HOST", "OUTCOME", "EXIT", "TIME", "CODE", "MESSAGE"}}
	for _, h := range r.Hosts {
		row := []string{h.Host, h.Outcome, "", "", "", ""}
		if h.ExitCode != nil {
			row[2] = fmt.Sprint(*h.ExitCode)
		}
		if h.StartedAt != nil {
			row[3] = fmt.Sprintf("%d ms", h.DurationMS)
		}
		if h.Error != nil {
			row[4], row[5] = h.Error.Code, oneLine(h.Error.Message, 120)
		}
		rows = append(rows, row)
	}
	if err := a.out.printf("\n"); err != nil {
		return err
	}
	return a.out.table(rows)
}
