package main

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// filled is the value of a flag that has to say something. An empty one is a
// variable that is not set, and no flag that was not given: --cwd "$DIR" must not
// mean the home directory.
type filled struct{ pflag.Value }

func (f filled) Set(text string) error {
	if text == "" {
		return errors.New("it is empty")
	}
	return f.Value.Set(text)
}

// filledList is filled for a flag that may be repeated.
type filledList struct {
	filled
	pflag.SliceValue
}

// refuseEmpty has all flags of text of a command, and of those below it, refuse an
// empty one.
func refuseEmpty(cmd *cobra.Command) {
	wrap := func(f *pflag.Flag) {
		if f.Name == "log-file" { // empty it is stderr
			return
		}
		switch f.Value.Type() {
		case "string":
			f.Value = filled{f.Value}
		case "stringArray":
			f.Value, f.DefValue = filledList{filled{f.Value}, f.Value.(pflag.SliceValue)}, ""
		}
	}
	cmd.PersistentFlags().VisitAll(wrap)
	cmd.Flags().VisitAll(wrap)
	for _, c := range cmd.Commands() {
		refuseEmpty(c)
	}
}
