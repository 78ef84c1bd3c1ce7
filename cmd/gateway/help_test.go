package main

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// Every command's help has examples, and its flags stand in one column, with one
// default at most.
func TestHelp(t *testing.T) {
	var (
		flag     = regexp.MustCompile(`^ +(-\w, )?--\S.*?  +`)
		defaults = regexp.MustCompile(`\(default.*\(default`)
		walk     func(cmd *cobra.Command)
	)
	walk = func(cmd *cobra.Command) {
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
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	root := newApp(nil).root()
	root.InitDefaultHelpCmd()
	walk(root)
}

// Every command's help fits a terminal of 80 columns.
func TestHelpWidth(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
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
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	root := newApp(nil).root()
	root.InitDefaultHelpCmd()
	walk(root)
}
