// Package config is what a person has set: flags, environment and files, put
// together into one checked struct. The inventory is not in it, only where to
// find one.
package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/providers/structs"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"gateway/internal/document"
)

// Config is the settings in force, all of them checked.
type Config struct {
	// Inventory lists the inventory files; with none there is only localhost.
	Inventory []string `koanf:"inventory"`
	// SSHConfig is "auto", "off" or a file.
	SSHConfig string `koanf:"ssh_config"`
	// Output is "text", "json" or "jsonl".
	Output string `koanf:"output"`
	// Color is "auto", "always" or "never".
	Color string `koanf:"color"`
	Quiet bool   `koanf:"quiet"`
	// LogLevel is "debug", "info", "warn" or "error".
	LogLevel string `koanf:"log_level"`
	// LogFile is empty for stderr.
	LogFile string `koanf:"log_file"`
	// Socket is the daemon's; empty for the usual place.
	Socket string `koanf:"socket"`
	// NoDaemon: every command makes connections of its own.
	NoDaemon bool `koanf:"no_daemon"`
	// MaxSessions and MaxSessionsPerHost bound the daemon's open sessions.
	MaxSessions        int `koanf:"max_sessions"`
	MaxSessionsPerHost int `koanf:"max_sessions_per_host"`
	// SessionTTL is how long a session may be idle.
	SessionTTL time.Duration `koanf:"session_ttl"`

	// CI: nobody is there, and nothing is to be remembered for next time. It
	// is no key but the variable that build servers set.
	CI bool `koanf:"-"`

	origins map[string]string
	ignored []string
}

// Default returns what holds where nothing is set.
func Default() Config {
	return Config{
		SSHConfig: "auto", Output: "text", Color: "auto", LogLevel: "warn",
		MaxSessions: 256, MaxSessionsPerHost: 64, SessionTTL: 12 * time.Hour,
	}
}

// A Source is where settings are looked for. The zero value has none but those
// in the system's file.
type Source struct {
	// Flags is a parsed set with the flags of [Flags]; nil means none.
	Flags *pflag.FlagSet
	// Environ is the environment, as os.Environ returns it.
	Environ []string
	// System is the file for all users; empty means /etc/gateway/config.yaml.
	System string
}

// Load reads the settings of all layers. Its errors are *[Error].
func Load(source Source) (*Config, error) {
	l := loader{source: source, merged: koanf.New("."), origins: make(map[string]string)}
	if err := l.add(structs.Provider(Default(), "koanf"), func(string) string { return "default" }); err != nil {
		return nil, err
	}
	files := source.Files()
	for _, file := range slices.Backward(files) {
		if err := l.file(file); err != nil {
			return nil, err
		}
	}
	if err := l.environment(); err != nil {
		return nil, err
	}
	if err := l.flags(); err != nil {
		return nil, err
	}
	var c Config
	if err := l.merged.Unmarshal("", &c); err != nil {
		return nil, &Error{Code: CodeInvalid, Message: err.Error(), Err: err}
	}
	c.origins, c.ignored = l.origins, l.ignored
	c.CI, _ = strconv.ParseBool(source.getenv("CI"))
	if len(c.Inventory) == 0 {
		c.findInventory(files)
	}
	return &c, nil
}

// findInventory looks for hosts.yaml beside the configuration, which need not
// exist for that.
func (c *Config) findInventory(files []File) {
	for _, file := range files {
		path := filepath.Join(filepath.Dir(file.Path), "hosts.yaml")
		if _, err := os.Stat(path); err == nil {
			c.Inventory = []string{path}
			c.origins["inventory"] = "beside " + file.Path
			return
		}
	}
}

// A loader puts one layer over the other and notes who set what.
type loader struct {
	source  Source
	merged  *koanf.Koanf
	origins map[string]string
	ignored []string
}

// add puts a layer on top.
func (l *loader) add(layer koanf.Provider, origin func(key string) string) error {
	one := koanf.New(".")
	if err := one.Load(layer, nil); err != nil {
		return &Error{Code: CodeInvalid, Message: err.Error(), Err: err}
	}
	for _, key := range one.Keys() {
		l.origins[key] = origin(key)
	}
	return l.merged.Merge(one)
}

func (l *loader) file(file File) error {
	values, lines, err := readFile(file, l.source.home())
	if err != nil {
		return err
	}
	return l.add(values, func(key string) string { return fmt.Sprintf("%s:%d", file.Path, lines[key]) })
}

// Prefix is what the names of all variables start with.
const Prefix = "GATEWAY_"

// environment adds the variables. One that is empty counts as not set, and the
// session's id is in every session that gateway itself may run in.
func (l *loader) environment() error {
	var problems document.Problems
	transform := func(name, text string) (string, any) {
		k, known := keys[strings.ToLower(strings.TrimPrefix(name, Prefix))]
		switch {
		case name == Prefix+"CONFIG" || name == Prefix+"SESSION" || known && text == "":
			return "", nil
		case !known || name != k.variable():
			l.ignored = append(l.ignored, name)
			return "", nil
		}
		value, err := k.parse(text, "", l.source.home())
		if err != nil {
			problems.Add(&Error{Code: CodeInvalid, Message: fmt.Sprintf("%s: %v", name, err)})
		}
		return k.name, value
	}
	err := l.add(env.Provider(".", env.Opt{
		Prefix: Prefix, TransformFunc: transform,
		EnvironFunc: func() []string { return l.source.Environ },
	}), func(key string) string { return keys[key].variable() })
	slices.Sort(l.ignored)
	return cmp.Or(problems.Err(), err)
}

// flags adds the flags that were given. What they may be was checked when they
// were parsed.
func (l *loader) flags() error {
	if l.source.Flags == nil {
		return nil
	}
	return l.add(posflag.ProviderWithFlag(l.source.Flags, ".", nil, func(f *pflag.Flag) (string, any) {
		k, known := keys[strings.ReplaceAll(f.Name, "-", "_")]
		if !known || !f.Changed {
			return "", nil
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			return k.name, expandAll(list.GetSlice(), l.source.home())
		}
		value, err := k.parse(f.Value.String(), "", l.source.home())
		if err != nil {
			return "", nil
		}
		return k.name, value
	}), func(key string) string { return "--" + keys[key].flag() })
}

// Starts reports whether a daemon may be started by a command that could use
// one. What CI runs leaves nothing behind. "gateway serve" is asked for by name.
func (c *Config) Starts() bool { return !c.CI }

// A Setting is one value with where it came from.
type Setting struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin string `json:"origin"`
}

// Origin says where a key's value comes from.
func (c *Config) Origin(key string) string { return c.origins[key] }

// Settings lists all keys in the order of config.example.yaml.
func (c *Config) Settings() []Setting {
	values, _ := structs.Provider(*c, "koanf").Read() // never fails
	var list []Setting
	for _, name := range names {
		value := values[name]
		switch v := value.(type) {
		case []string:
			value = append([]string{}, v...) // [] and not null
		case time.Duration:
			value = v.String()
		}
		list = append(list, Setting{name, value, c.origins[name]})
	}
	return list
}

// Ignored names the variables that look like a key and are none. They are no
// mistake: Kubernetes sets GATEWAY_SERVICE_HOST for a service of our name.
func (c *Config) Ignored() []string { return c.ignored }

// Error is what is wrong with a setting.
type Error = document.Error

// CodeInvalid is the code of every [Error].
const CodeInvalid = "config.invalid"
