package main

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// commands are gateway and all that is below it.
func commands() []*cobra.Command {
	root := newApp(nil).root()
	root.InitDefaultHelpCmd()
	all := []*cobra.Command{root}
	for i := 0; i < len(all); i++ {
		all = append(all, all[i].Commands()...)
	}
	return all
}

// Every command's help has examples, and its flags stand in one column, with one
// default at most.
func TestHelp(t *testing.T) {
	flag := regexp.MustCompile(`^ +(-\w, )?--\S.*?  +`)
	defaults := regexp.MustCompile(`\(default.*\(default`)
	for _, cmd := range commands() {
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		column := 0
		for line := range strings.Lines(cmd.LocalFlags().FlagUsages()) {
			if defaults.MatchString(line) {
				t.Errorf("%s: two defaults: %s", cmd.CommandPath(), line)
			}
			at := len([]rune(flag.FindString(line)))
			if column == 0 {
				column = at
			}
			if at != column {
				t.Errorf("%s: text in column %d, others in %d: %s", cmd.CommandPath(), at, column, line)
			}
		}
	}
}

// Every command's help fits a terminal of 80 columns.
func TestHelpWidth(t *testing.T) {
	for _, cmd := range commands() {
		var help strings.Builder
		cmd.SetOut(&help)
		cmd.InitDefaultHelpFlag()
		if err := cmd.Help(); err != nil || help.Len() == 0 {
			t.Errorf("%s: %q, %v", cmd.CommandPath(), help.String(), err)
		}
		for line := range strings.Lines(help.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > helpWidth {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
	}
}
