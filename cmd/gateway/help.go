package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gateway/hosts"
)

// helpWidth is how many columns help takes.
const helpWidth = 80

// wrapped shows a command's usage as show does, without lines that can't be used, and
// with the flags' texts in lines that fit. A template would do that too, and cost every start.
func wrapped(cmd *cobra.Command, show func(*cobra.Command) error) error {
	out := cmd.OutOrStderr()
	var usage strings.Builder
	cmd.SetOut(&usage)
	err := show(cmd)
	cmd.SetOut(out)
	text := usage.String()
	if cmd.HasAvailableSubCommands() && cmd.Name() != "mcp" { // by itself it does nothing
		text = strings.Replace(text, "  "+cmd.UseLine()+"\n", "", 1)
	}
	for _, flags := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.InheritedFlags()} {
		text = strings.Replace(text, strings.TrimRight(flags.FlagUsages(), "\n"), strings.TrimRight(flags.FlagUsagesWrapped(helpWidth), "\n"), 1)
	}
	if _, failed := io.WriteString(out, text); err == nil {
		err = failed
	}
	return err
}

// showOptional has help show a value that may be left out by its placeholder, where
// pflag shows what stands for it. It is for the last thing that a process does with
// the flags.
func showOptional(flags *pflag.FlagSet) {
	flags.VisitAll(func(flag *pflag.Flag) {
		if _, ok := flag.Value.(*sudoFlag); ok {
			flag.NoOptDefVal = "USER"
		}
	})
}

// unknownCommand is what a command does that only has commands of its own.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		cmd.SetOut(cmd.ErrOrStderr())
		if err := cmd.Help(); err != nil {
			return err
		}
		return exitStatus(statusUsage)
	}
	return usage(cmd, hosts.DidYouMean(args[0], "", subcommands(cmd)), "unknown command %q", args[0])
}

// subcommands returns the names of a command's own commands.
func subcommands(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// helpCommand is cobra's, but a topic that it does not know is a mistake.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		Example: `  gateway help exec
  gateway help hosts trust`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			topic, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return subcommands(topic), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return unknownCommand(topic, rest)
			}
			topic.InitDefaultHelpFlag()
			return topic.Help()
		},
	}
}
