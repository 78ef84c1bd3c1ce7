package main

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/hosts"
	"gateway/script"
)

// runFlags are what the command line says about a script.
type runFlags struct {
	on, startAt                     string
	vars, reports                   []string
	dryRun, check, schema, noDaemon bool
	verbose                         bool
	plan                            fleet.Plan
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run SCRIPT.yaml --on SELECTOR",
		Short: "Run a script of steps on hosts, for CI",
		Long: `Run the steps of a script, in order, in one live shell on each host: directory,
variables and functions carry over. The first statement with a status other than
0 ends its step and the script on that host, and the job fails; the statement is
named with its line. The steps under always run even then, and after the first
INT, TERM or HUP, for ten minutes at most. Nobody is asked anything.
docs/scripts.md has every key of a script.

--report junit=FILE, json=FILE and jsonl=FILE write a report; --report github,
which GITHUB_ACTIONS switches on by itself, annotates lines and writes a
summary. --dry-run and --check write no report.

Status: 0 all steps succeeded on all hosts, 1 a step failed, 2 nothing was
tried, 3 some host was not reached, 4 some step timed out, 5 some outcome is
unknown, 6 stopped by --max-fail or --fail-fast; if several apply, the first of
5, 3, 4, 6, 1. 130/143/129 interrupted, 141 stdout was closed.`,
		Example: `  gateway run deploy.yaml --on @staging --var version=1.4.2
  gateway run deploy.yaml --on web1 --dry-run
  gateway run deploy.yaml --on @web --check
  gateway run deploy.yaml --on @web --batch 1,rest --report junit=report.xml
  gateway run deploy.yaml --on run:last/failed --start-at migrate
  gateway run --schema > script.schema.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.schema {
				return exactly()(cmd, args)
			}
			return exactly("SCRIPT.yaml")(cmd, args)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.schema {
				_, err := a.out.Write(script.Schema())
				return err
			}
			return a.runScript(cmd, args[0], &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.on, "on", "", "the hosts, a `SELECTOR`")
	on := flags.Lookup("on")
	on.Value = &once{Value: on.Value, instead: "join selectors with a comma"}
	flags.StringArrayVar(&f.vars, "var", nil, "set the script's variable, `NAME=VALUE`; may be repeated")
	flags.StringVar(&f.startAt, "start-at", "", "leave out the steps before the one called `NAME`")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would run where, and connect to nothing")
	flags.BoolVar(&f.check, "check", false, "connect, and become the users that steps need; run no step")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "also show the output of steps that succeed")
	flags.StringArrayVar(&f.reports, "report", nil, "write a report, `KIND=FILE`: junit, json or jsonl; or github; may be repeated")
	flags.BoolVar(&f.schema, "schema", false, "write the JSON schema of scripts, for editors")
	flags.BoolVar(&f.noDaemon, "no-daemon", false, "use no connection that the daemon has open")
	a.planFlags(flags, &f.plan)
	a.completeSelectorOf(cmd, "on")
	completeFiles(cmd, "report")
	return cmd
}

// A scriptRun is a script on many hosts.
type scriptRun struct {
	app      *app
	gateway  *gateway.Gateway
	runner   *script.Runner
	file     string
	selector string
	names    []string
	view     scriptView
	reports  *reports
}

func (a *app) runScript(cmd *cobra.Command, file string, f *runFlags) error {
	switch {
	case f.on == "":
		return usage(cmd, "", "no hosts given: --on SELECTOR")
	case f.plan.Forks < 1:
		return usage(cmd, "", "--forks: at least 1")
	case f.dryRun && f.check:
		return usage(cmd, "", "--dry-run and --check exclude each other")
	case (f.dryRun || f.check) && len(f.reports) > 0:
		return usage(cmd, "-o json says what was found", "--report is for a run: --dry-run and --check leave none")
	}
	given, err := variables(cmd, f.vars)
	if err != nil {
		return err
	}
	if err := a.load(); err != nil {
		return err
	}
	s, err := script.Load(file)
	if err == nil {
		err = s.Given(given)
	}
	if err != nil {
		return err
	}
	for _, warning := range s.Warnings {
		a.warn(warning)
	}
	a.borrow(f.noDaemon, false)
	g, selected, err := a.choose(cmd.Context(), nil, policyStrict, f.on) // whoever waits for a job is not there to be asked
	if err != nil {
		return err
	}
	defer g.Close()
	r := &scriptRun{
		app: a, gateway: g, file: file, selector: f.on, names: namesOf(selected),
		runner: &script.Runner{Script: s, Open: g.Open, Given: given, StartAt: f.startAt},
	}
	if err := r.checkStart(cmd); err != nil {
		return err
	}
	if f.dryRun {
		return r.dryRun(cmd.Context(), selected)
	}
	if r.runner.Secrets, err = s.ReadSecrets(cmd.Context()); err != nil {
		return err
	}
	if err := r.runner.CheckCopies(r.names); err != nil {
		return err
	}
	if f.check {
		return r.check(cmd.Context(), f.plan)
	}
	if r.reports, err = a.openReports(cmd, f.reports, s, file); err != nil {
		return err
	}
	return r.run(cmd.Context(), f)
}

// variables parses the values of --var.
func variables(cmd *cobra.Command, list []string) (map[string]string, error) {
	given := make(map[string]string, len(list))
	for _, entry := range list {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			return nil, usage(cmd, "--var version=1.4.2", "--var: %q is not NAME=VALUE", entry)
		}
		if _, twice := given[name]; twice {
			return nil, usage(cmd, "", "--var: %s is given twice", name)
		}
		given[name] = value
	}
	return given, nil
}

// checkStart finds the step to begin with.
func (r *scriptRun) checkStart(cmd *cobra.Command) error {
	start := r.runner.StartAt
	if start == "" {
		return nil
	}
	for _, host := range r.names {
		if _, ok := r.runner.Script.Find(start, host, r.runner.Given); ok {
			continue
		}
		var names []string
		for i := range r.runner.Script.Steps {
			names = append(names, r.runner.Script.Steps[i].Name)
		}
		hint := cmp.Or(hosts.DidYouMean(start, "", names), "its steps: "+strings.Join(names, ", "))
		return usage(cmd, hint, "--start-at: no step of %s is called %q", r.file, start)
	}
	return nil
}

// run runs the script on all hosts, and says how it went.
func (r *scriptRun) run(ctx context.Context, f *runFlags) error {
	a := r.app
	if len(r.runner.Script.Always) > 0 {
		a.out.hasten(ctx)
	}
	r.view = a.newScriptView(r, f.verbose)
	r.runner.Observe = []script.Observer{r.view.observer()}
	if r.reports.events != nil {
		r.runner.Observe = append(r.runner.Observe, r.reports.events.observer())
	}
	a.hangUp(ctx, r.limit())
	a.tellMasks(r.runner.Secrets)
	all := fleetRun[script.Result]{
		app: a, names: r.names, plan: f.plan,
		task: fleet.Task[script.Result]{
			Run:     func(ctx context.Context, host int) script.Result { return r.runner.Host(ctx, r.names[host]) },
			Outcome: scriptOutcome,
			Without: r.without,
			Done:    r.done,
		},
		record: rememberedScript, counts: scriptOutcome, end: r.end, line: a.showProgress(r.names),
	}
	all.begin("run", r.selector, r.file, r.runner.Mask)
	return all.run(ctx)
}

// unhurried is how long what is under always may take after a signal. A second
// one ends it at once.
const unhurried = 10 * time.Minute

// limit is how long what runs may take after a signal.
func (r *scriptRun) limit() time.Duration {
	if len(r.runner.Script.Always) > 0 {
		return unhurried
	}
	return patience
}
