package main

import (
	"errors"
	"os"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

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
	flag := a.source.Flags.Lookup("output")
	words := config.Words(flag)
	var format string
	var wrong *usageError
	switch {
	case errors.As(err, &wrong) && wrong.unread:
		format = asked(args, words)
	case flag.Changed:
		format = flag.Value.String()
	}
	if format == "" && a.config == nil {
		c, err := config.Load(a.source)
		if err == nil {
			return c.Output
		}
		format = os.Getenv("GATEWAY_OUTPUT") // it may be a file that is wrong
	}
	if slices.Contains(words, format) {
		return format
	}
	return a.out.format
}

// outputFlag matches --output, with its value if that stands in the same word.
var outputFlag = regexp.MustCompile(`^(?:--output(?:=|$)|-[a-z]?o=?)(.*)$`)

// asked returns which of the words a command line gives to --output; empty if none.
// The flag may stand behind one that is wrong. Where a COMMAND begins is not known
// then, so a flag of its own may be taken for it.
func asked(args, words []string) (format string) {
	for i, arg := range args {
		if arg == "--" {
			break
		}
		found := outputFlag.FindStringSubmatch(arg)
		if found == nil {
			continue
		}
		if found[1] == "" && i+1 < len(args) {
			found[1] = args[i+1]
		}
		if slices.Contains(words, found[1]) {
			format = found[1]
		}
	}
	return format
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
