package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gateway/hosts"
)

// A duration is a flag in Go's notation, or in whole seconds.
type duration time.Duration

func (d *duration) String() string {
	if *d == 0 {
		return "" // no default to show
	}
	return time.Duration(*d).String()
}

func (d *duration) Type() string { return "DURATION" }

func (d *duration) Set(text string) error {
	value, err := hosts.ParseDuration(text)
	if err != nil || value < 0 {
		return errors.New("must be a duration, such as 90s or 1m30s, or whole seconds")
	}
	*d = duration(value)
	return nil
}

// sudoFlag is --sudo[=USER].
type sudoFlag struct {
	set  bool
	user string
}

// sudoAlone is what --sudo without a name is to pflag: what no argument can
// hold, and so no name.
const sudoAlone = "\x00"

func (f *sudoFlag) add(flags *pflag.FlagSet, about string) {
	flags.VarPF(f, "sudo", "", about).NoOptDefVal = sudoAlone
}

func (f *sudoFlag) String() string { return f.user }
func (f *sudoFlag) Type() string   { return "" } // its placeholder is NoOptDefVal

func (f *sudoFlag) Set(s string) error {
	switch s {
	case "": // a variable that is not set; the default may be root
		return errors.New("it names nobody")
	case sudoAlone:
		s = ""
	}
	f.set, f.user = true, s
	return nil
}

// once is the value of a flag of which a second one would take the place of the first
// unseen.
type once struct {
	pflag.Value
	instead string // what to do about it
	given   bool
}

func (o *once) Set(text string) error {
	if o.given {
		return errors.New("given twice: " + o.instead)
	}
	o.given = true
	return o.Value.Set(text)
}

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
