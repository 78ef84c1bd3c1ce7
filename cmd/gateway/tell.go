package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gateway/gateway"
	"gateway/internal/config"
)

// tell gives a program the error of a verb that has given it nothing: of one
// host's command as its result, else by itself. What stands on stdout already is
// the answer, which a second document would make unreadable.
func (a *app) tell(cmd *cobra.Command, args []string, err error) {
	a.out.format = a.formatFor(args, err)
	switch {
	case a.out.format == "text" || a.out.taken():
	case a.oneHost && cmd.Name() == "exec":
		r := notStarted(a.about.Session, a.about.Command, err)
		r.Host = a.about.Host
		a.newShow(r.Host).result(r)
	default:
		_ = a.out.json(struct { // the output remembers
			Error *gateway.JSONError `json:"error"`
		}{gateway.NewJSONError(err)})
	}
}

// formatFor returns the format that was asked for, however far the settings have
// been read when the error came.
func (a *app) formatFor(args []string, err error) string {
	flags := a.source.Flags
	var wrong *usageError
	if errors.As(err, &wrong) && wrong.unread {
		// The flag may stand behind the one that is wrong. Where its own command
		// begins is not known then, so a COMMAND's flag may be taken for it.
		flags = pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.ParseErrorsAllowlist.UnknownFlags = true
		flags.Usage = func() {}
		config.Flags(flags)
		_ = flags.Parse(args) // what can be read of it
	}
	output := flags.Lookup("output")
	if output.Changed {
		if slices.Contains(config.Words(output), output.Value.String()) {
			return output.Value.String()
		}
		return a.out.format
	}
	if a.config == nil {
		if c, err := config.Load(a.source); err == nil {
			return c.Output
		}
	}
	return a.out.format
}

// taken reports whether something is on stdout, or will be from elsewhere.
func (o *output) taken() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.begun
}

// take leaves stdout to somebody else.
func (o *output) take() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun = true
}
