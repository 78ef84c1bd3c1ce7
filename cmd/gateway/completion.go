package main

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gateway/hosts"
	"gateway/internal/config"
	"gateway/transfer"
)

func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Write what makes a shell complete commands and host names",
		Long: `Write what makes a shell complete commands and host names. In bash it takes the
package bash-completion.`,
		Example: `  source <(gateway completion bash)
  gateway completion zsh > "${fpath[1]}/_gateway"
  gateway completion fish > ~/.config/fish/completions/gateway.fish`,
		Args:      exactly("SHELL"),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch root := cmd.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			}
			return usage(cmd, hosts.DidYouMean(args[0], "", shells), "no completion for %q: bash, zsh and fish have one", args[0])
		},
	}
}

// completeHost completes the name of a host. What comes behind it is for the
// host to know.
func (a *app) completeHost(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := a.names()
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeSelector completes the last term of a selector.
func (a *app) completeSelector(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, groups := a.names()
	before := word[:strings.LastIndexByte(word, ',')+1]
	if strings.HasPrefix(word[len(before):], "!") || strings.HasPrefix(word[len(before):], "&") {
		before = word[:len(before)+1]
	}
	words := slices.Concat([]string{"all"}, names, groups)
	for i := range words {
		words[i] = before + words[i]
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeSelectorOf completes a flag that is a selector. Arguments before it are
// none of its business.
func (a *app) completeSelectorOf(cmd *cobra.Command, flag string) {
	completeWith(cmd, flag, func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return a.completeSelector(cmd, nil, word)
	})
}

// completePlaces completes the selector of HOST:PATH. What is here stands beside it,
// since the shell looks for files only where it is told of nothing.
func (a *app) completePlaces(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	var places []string
	names, groups := a.names()
	for _, selector := range slices.Concat(names, groups) {
		if strings.HasPrefix(selector+":", word) {
			places = append(places, selector+":")
		}
	}
	switch place, _ := transfer.ParsePlace(word); {
	case len(places) > 0:
		return append(places, filesHere(word)...), cobra.ShellCompDirectiveNoSpace
	case place.Remote():
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// filesHere returns what begins with word in the working directory.
func filesHere(word string) (files []string) {
	entries, _ := os.ReadDir(".")
	for _, entry := range entries {
		name := entry.Name()
		// A colon would make it a place on a host, and the others end a completion.
		if !strings.HasPrefix(name, word) || strings.HasPrefix(name, ".") || strings.ContainsAny(name, ":\t\n") {
			continue
		}
		if entry.IsDir() {
			name += "/"
		}
		files = append(files, name)
	}
	return files
}

// names returns the hosts, and the groups and tags, as a selector has them.
// Whoever completes a word does not want to hear what is wrong with a file.
func (a *app) names() (names, groups []string) {
	if a.load() != nil {
		return nil, nil
	}
	inv, err := a.inventory()
	if err != nil {
		return nil, nil
	}
	names = inv.Names()
	if ssh := a.sshConfig(); ssh != nil {
		aliases, _ := ssh.Aliases()
		for _, alias := range aliases {
			if !slices.Contains(names, alias) {
				names = append(names, alias)
			}
		}
	}
	for _, group := range inv.Groups() {
		groups = append(groups, "@"+group)
	}
	for _, tag := range inv.Tags() {
		groups = append(groups, "tag:"+tag)
	}
	return names, groups
}

// completeFlags completes the values of the flags of all commands.
func completeFlags(root *cobra.Command) {
	completeFiles(root, "config", "inventory", "log-file")
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if words := config.Words(f); words != nil {
			completeWords(root, f.Name, words)
		}
	})
}

// plainUsage has completion show what flags are for without the backticks, which mark
// a placeholder for help.
func plainUsage(cmd *cobra.Command) {
	plain := func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") }
	cmd.PersistentFlags().VisitAll(plain)
	cmd.Flags().VisitAll(plain)
	for _, c := range cmd.Commands() {
		plainUsage(c)
	}
}

// flagsBehind has completion know the flags behind the first argument, where words
// are what stands before the one to complete. Those behind the next are the command's.
func flagsBehind(root *cobra.Command, words []string) {
	cmd, args, err := root.Find(words)
	if err != nil || cmd.ParseFlags(args) != nil {
		return
	}
	rest := cmd.Flags().Args()
	if len(rest) == 0 || cmd.Flags().ArgsLenAtDash() >= 0 {
		return
	}
	_ = cmd.ParseFlags(rest[1:]) // the last flag may lack its value
	if cmd.Flags().NArg() == 0 {
		cmd.Flags().SetInterspersed(true)
	}
}

func completeWords(cmd *cobra.Command, flag string, words []string) {
	completeWith(cmd, flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// completeFiles has flags complete the names of files, as no others do.
func completeFiles(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		completeWith(cmd, flag, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
	}
}

func completeWith(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // there is no such flag
	}
}
