package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gateway/hosts"
)

// A usageError is a mistake on the command line.
type usageError struct {
	message, hint string
	unread        bool // the flags behind it were not read
}

func (e *usageError) Error() string { return e.message }

// ErrorCode returns the error code of the contract.
func (e *usageError) ErrorCode() string { return "usage" }

// ErrorHint returns what to type instead, or where to read about it.
func (e *usageError) ErrorHint() string { return e.hint }

// usage returns a usageError of a command. Without a hint it names the help.
func usage(cmd *cobra.Command, hint, format string, args ...any) error {
	return &usageError{message: fmt.Sprintf(format, args...), hint: cmp.Or(hint, seeHelp(cmd))}
}

func seeHelp(cmd *cobra.Command) string { return "see " + cmd.CommandPath() + " --help" }

// flagError turns pflag's error into a usageError.
func flagError(cmd *cobra.Command, err error) error {
	message, hint := flagMistake(cmd, err)
	return &usageError{message: message, hint: cmp.Or(hint, seeHelp(cmd)), unread: true}
}

// oneHostFlagError is for a bad flag in front of the selector, where the form
// is not known yet.
func (a *app) oneHostFlagError(cmd *cobra.Command, err error) error {
	a.oneHost = true
	return flagError(cmd, err)
}

// flagMistake says what is wrong with a flag, and what may be meant.
func flagMistake(cmd *cobra.Command, err error) (message, hint string) {
	var (
		missing *pflag.NotExistError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &invalid):
		return fmt.Sprintf("--%s: %s", invalid.GetFlag().Name, wanted(invalid)), ""
	case !errors.As(err, &missing) || missing.GetSpecifiedShortnames() != "":
		return err.Error(), ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	name := "--" + missing.GetSpecifiedName()
	return "unknown flag " + name, hosts.DidYouMean(name, "", names)
}

// wanted says what a flag has to be. The flags of this program say it
// themselves; of a number or a switch strconv only tells which of its functions
// has refused it.
func wanted(invalid *pflag.InvalidValueError) string {
	var number *strconv.NumError
	if !errors.As(invalid, &number) {
		return invalid.Unwrap().Error()
	}
	value := invalid.GetValue()
	switch {
	case number.Func == "ParseBool":
		return fmt.Sprintf("%q is neither true nor false", value)
	case errors.Is(number, strconv.ErrRange):
		return fmt.Sprintf("%q is out of range", value)
	case number.Func == "ParseUint" && strings.HasPrefix(value, "-"):
		return "at least 0"
	}
	return fmt.Sprintf("%q is not a whole number", value)
}

// exactly checks the number of arguments of a command.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usage(cmd, "", "no %s given", names[len(args)])
		case len(args) > len(names):
			return usage(cmd, oneOnly(names, args), "unexpected argument %q", args[len(names)])
		}
		return nil
	}
}

// oneOnly says how several hosts are named where one word names them; empty: they can't be
// meant.
func oneOnly(names, args []string) (hint string) {
	switch strings.Join(names, " ") {
	case "SELECTOR":
		return "join selectors with commas: " + strings.Join(args, ",")
	case "HOST":
		return "name one host"
	}
	return ""
}

// first takes the first word off the arguments and parses the flags behind it.
// An empty word without an error means that help was asked for, and given.
func first(cmd *cobra.Command, args []string, what string) (word string, rest []string, err error) {
	if len(args) == 0 || args[0] == "" {
		return "", nil, &usageError{message: "no " + what + " given", hint: seeHelp(cmd), unread: true}
	}
	word, rest = args[0], args[1:]
	flags := cmd.Flags()
	if flags.ArgsLenAtDash() < 0 {
		if err := flags.Parse(rest); err != nil {
			return "", nil, flagError(cmd, err)
		}
		rest = flags.Args()
	}
	help, err := flags.GetBool("help")
	switch {
	case err != nil:
		return "", nil, err
	case help:
		return "", nil, cmd.Help()
	}
	return word, rest, nil
}
