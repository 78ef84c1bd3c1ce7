package config

import "github.com/spf13/pflag"

// Flags defines the flags of all commands.
func Flags(fs *pflag.FlagSet) {
	fs.String("config", "", "configuration `FILE` in place of the user's own")
	fs.StringArray("inventory", nil, "inventory `FILE`; may be repeated")
	fs.VarP(newWord("output"), "output", "o", "text, json or jsonl")
	fs.BoolP("quiet", "q", false, "no warnings and no summaries")
	fs.Var(newWord("color"), "color", "auto, always or never")
	fs.Var(newWord("log_level"), "log-level", "debug, info, warn or error")
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

func newWord(key string) *word {
	values := map[string]string{"output": Default().Output, "color": Default().Color, "log_level": Default().LogLevel}
	return &word{key, values[key]}
}

func (w *word) String() string { return w.text }

func (w *word) Type() string { return "WORD" }

func (w *word) Set(text string) error {
	w.text = text
	return oneOf(text, keys[w.key].words)
}
