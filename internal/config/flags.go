package config

import "github.com/spf13/pflag"

// Flags defines the flags of all commands.
func Flags(fs *pflag.FlagSet) {
	defaults := Default()
	fs.String("config", "", "configuration `FILE` in place of the user's own")
	fs.StringArray("inventory", nil, "inventory `FILE`; may be repeated")
	fs.VarP(&word{"output", defaults.Output}, "output", "o", "text, json or jsonl")
	fs.BoolP("quiet", "q", false, "no warnings and no summaries")
	fs.Var(&word{"color", defaults.Color}, "color", "auto, always or never")
	fs.Var(&word{"log_level", defaults.LogLevel}, "log-level", "debug, info, warn or error")
	fs.String("log-file", "", "log to `FILE` in place of stderr")
}

// Words returns what a flag of [Flags] may be, or nil if that is open.
func Words(flag *pflag.Flag) []string {
	if w, ok := flag.Value.(*word); ok {
		return keys[w.key].words
	}
	return nil
}

// A word is a flag that knows its words. Its default is shown in help only:
// [Load] looks at flags that were given.
type word struct{ key, text string }

func (w *word) String() string { return w.text }

func (w *word) Type() string { return "WORD" }

func (w *word) Set(text string) error {
	w.text = text
	return oneOf(text, keys[w.key].words)
}
