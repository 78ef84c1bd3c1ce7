package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"gateway/internal/config"
)

// place is a home with nothing in it.
type place struct {
	t    *testing.T
	home string
}

func newPlace(t *testing.T) place { return place{t, t.TempDir()} }

func (p place) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

func (p place) load(environ []string, args ...string) (*config.Config, error) {
	p.t.Helper()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.Flags(fs)
	if err := fs.Parse(args); err != nil {
		p.t.Fatal(err)
	}
	return config.Load(config.Source{
		Flags:   fs,
		Environ: append([]string{"HOME=" + p.home}, environ...),
		System:  filepath.Join(p.home, "etc", "config.yaml"),
	})
}

// origin returns where the value of a key came from.
func origin(c *config.Config, key string) string {
	for _, s := range c.Settings() {
		if s.Key == key {
			return s.Origin
		}
	}
	return ""
}

func TestLayers(t *testing.T) {
	p := newPlace(t)
	system := p.write("etc/config.yaml", "output: jsonl\ncolor: never\nlog_level: error\nssh_config: off\nmax_sessions: 7\nsession_ttl: 90\n")
	user := p.write(".config/gateway/config.yaml", "# mine\noutput: json\nlog_level: info\nlog_file: log/gateway.log\n")
	c, err := p.load([]string{"GATEWAY_OUTPUT=text", "GATEWAY_QUIET=1", "GATEWAY_COLOR=", "GATEWAY_MAX_SESSIONS_PER_HOST=3"}, "--log-level", "debug")
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Setting{
		{"inventory", []string{}, "default"},
		{"ssh_config", "off", system + ":4"},
		{"output", "text", "GATEWAY_OUTPUT"},
		{"color", "never", system + ":2"},
		{"quiet", true, "GATEWAY_QUIET"},
		{"log_level", "debug", "--log-level"},
		{"log_file", filepath.Join(p.home, ".config/gateway/log/gateway.log"), user + ":4"},
		{"socket", "", "default"},
		{"no_daemon", false, "default"},
		{"max_sessions", 7, system + ":5"},
		{"max_sessions_per_host", 3, "GATEWAY_MAX_SESSIONS_PER_HOST"},
		{"session_ttl", "1m30s", system + ":6"},
	}
	if got := c.Settings(); !reflect.DeepEqual(got, want) {
		t.Errorf("Settings =\n%v, want\n%v", got, want)
	}
}

func TestNamedFileReplacesTheUsers(t *testing.T) {
	p := newPlace(t)
	p.write(".config/gateway/config.yaml", "output: json\n")
	named := p.write("ci/config.yaml", "quiet: true\n")
	for name, c := range map[string]*config.Config{
		"flag":     must(p.load(nil, "--config", named)),
		"variable": must(p.load([]string{"GATEWAY_CONFIG=" + named})),
		"both":     must(p.load([]string{"GATEWAY_CONFIG=/nowhere"}, "--config", named)),
	} {
		if c.Output != "text" || !c.Quiet {
			t.Errorf("%s: output %s, quiet %v, want text, true", name, c.Output, c.Quiet)
		}
	}
}

func must(c *config.Config, err error) *config.Config {
	if err != nil {
		panic(err)
	}
	return c
}

func TestInventory(t *testing.T) {
	p := newPlace(t)
	beside := p.write(".config/gateway/hosts.yaml", "")
	check := func(name string, c *config.Config, from string, want ...string) {
		t.Helper()
		if !reflect.DeepEqual(c.Inventory, want) || origin(c, "inventory") != from {
			t.Errorf("%s: %q from %q, want %q from %q", name, c.Inventory, origin(c, "inventory"), want, from)
		}
	}
	user := filepath.Join(p.home, ".config/gateway/config.yaml")
	check("no config.yaml", must(p.load(nil)), "beside "+user, beside)
	p.write("etc/hosts.yaml", "")
	check("user before system", must(p.load(nil)), "beside "+user, beside)
	p.write(".config/gateway/config.yaml", "inventory: []\n")
	check("empty list", must(p.load(nil)), "beside "+user, beside)
	p.write(".config/gateway/config.yaml", "inventory: [a.yaml, /b.yaml, ~/c.yaml]\n")
	check("key", must(p.load(nil)), user+":1",
		filepath.Join(p.home, ".config/gateway/a.yaml"), "/b.yaml", filepath.Join(p.home, "c.yaml"))
	check("variable", must(p.load([]string{"GATEWAY_INVENTORY=x.yaml:y.yaml"})), "GATEWAY_INVENTORY", "x.yaml", "y.yaml")
	check("flag", must(p.load([]string{"GATEWAY_INVENTORY=x.yaml"}, "--inventory=1", "--inventory", "2")), "--inventory", "1", "2")
	check("flag with a colon", must(p.load(nil, "--inventory", "/srv/a:b/hosts.yaml")), "--inventory", "/srv/a:b/hosts.yaml")
}

func TestNothingFromTheCurrentDirectory(t *testing.T) {
	p := newPlace(t)
	t.Chdir(p.home)
	p.write("config.yaml", "output: json\n")
	p.write("gateway/config.yaml", "output: json\n")
	p.write("hosts.yaml", "")
	for _, environ := range [][]string{{"HOME=."}, {"HOME="}, {"HOME=" + p.home, "XDG_CONFIG_HOME=."}} {
		c, err := config.Load(config.Source{Environ: environ, System: "/nowhere/config.yaml"})
		if err != nil || c.Output != "text" || c.Inventory != nil {
			t.Errorf("%q: %+v, %v, want the defaults", environ, c, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	tests := []struct {
		name, text, environ, want, hint string
	}{
		{name: "syntax", text: "a: b\nc: [\n", want: "FILE:2: not YAML: ", hint: "indent with blanks, and close brackets and quotes"},
		{name: "unknown", text: "output: json\n\ninventroy: x\n", want: `FILE:3: unknown key "inventroy"`, hint: "did you mean inventory?"},
		{name: "unknown and far", text: "verbose: true", want: `FILE:1: unknown key "verbose"`},
		{name: "twice", text: "quiet: true\nquiet: true\n", want: "FILE:2: quiet is already at line 1"},
		{name: "word", text: "output: xml", want: `FILE:1: output: "xml" is not one of text, json or jsonl`},
		{name: "truth", text: "quiet: maybe", want: `FILE:1: quiet: "maybe" is neither true nor false`},
		{name: "number", text: "log_file: 12", want: "FILE:1: log_file: must be text: put 12 in quotes"},
		{name: "list", text: "inventory:\n- a\n- {b: c}\n", want: "FILE:3: inventory: must be a path or a list of paths"},
		{name: "mapping", text: "output: {a: b}", want: "FILE:1: output: must be a single value"},
		{name: "no mapping", text: "- a", want: "FILE:1: must be a mapping of keys to values", hint: "see config.example.yaml"},
		{name: "several", text: "outptu: json\nquiet: maybe\n", want: "FILE:1: unknown key \"outptu\": did you mean output?\nFILE:2: quiet: \"maybe\" is neither true nor false"},
		{name: "two documents", text: "quiet: true\n---\nquiet: true\n", want: "FILE:2: a second document in the file"},
		{name: "environment", environ: "GATEWAY_LOG_LEVEL=loud", want: `GATEWAY_LOG_LEVEL: "loud" is not one of debug, info, warn or error`},
		{name: "variables", environ: "GATEWAY_LOG_LEVEL=loud\nGATEWAY_QUIET=2", want: "GATEWAY_LOG_LEVEL: \"loud\" is not one of debug, info, warn or error\nGATEWAY_QUIET: \"2\" is neither true nor false"},
		{name: "no such file", environ: "GATEWAY_CONFIG=/nowhere/c.yaml", want: "/nowhere/c.yaml: no such file", hint: "it comes from GATEWAY_CONFIG"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := newPlace(t)
			file := p.write(".config/gateway/config.yaml", test.text)
			_, err := p.load(strings.Split(test.environ, "\n"))
			var e *config.Error
			if !errors.As(err, &e) {
				t.Fatalf("Load = %v, want an *Error", err)
			}
			want := strings.ReplaceAll(test.want, "FILE", file)
			if !strings.HasPrefix(e.Error(), want) || e.ErrorHint() != test.hint || e.ErrorCode() != "config.invalid" {
				t.Errorf("Load = %q, %q, %s, want %q, %q, config.invalid", e, e.ErrorHint(), e.ErrorCode(), want, test.hint)
			}
		})
	}
}

func TestEmptyFile(t *testing.T) {
	p := newPlace(t)
	for _, text := range []string{"", "# nothing\n", "---\n", "null\n"} {
		p.write(".config/gateway/config.yaml", text)
		if _, err := p.load(nil); err != nil {
			t.Errorf("%q: %v, want no error", text, err)
		}
	}
}

func TestIgnoredVariables(t *testing.T) {
	c := must(newPlace(t).load([]string{"GATEWAY_SERVICE_HOST=10.0.0.1", "GATEWAY_output=json", "GATEWAY_CONFIG=", "GATEWAY_=", "GATEWAY_SESSION=s-d3kv440gy7", "OTHER=1"}))
	want := []string{"GATEWAY_", "GATEWAY_SERVICE_HOST", "GATEWAY_output"}
	if got := c.Ignored(); !reflect.DeepEqual(got, want) || c.Output != "text" {
		t.Errorf("Ignored = %q with output %s, want %q with text", got, c.Output, want)
	}
}

func TestCI(t *testing.T) {
	for text, want := range map[string]bool{"true": true, "1": true, "false": false, "": false, "woodpecker": false} {
		if c := must(newPlace(t).load([]string{"CI=" + text})); c.CI != want || c.Starts() == want {
			t.Errorf("CI=%s: %v, want %v; a daemon may be started: %v", text, c.CI, want, c.Starts())
		}
	}
}

// The example has every key, and says what holds without it.
func TestExample(t *testing.T) {
	example := "../../config.example.yaml"
	c, err := config.Load(config.Source{Environ: []string{"GATEWAY_CONFIG=" + example}, System: "/nowhere/config.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	defaults := config.Default()
	values := make(map[string]any)
	for _, s := range c.Settings() {
		values[s.Key] = s.Value
		if !strings.HasPrefix(s.Origin, example+":") {
			t.Errorf("%s comes from %s, want the example", s.Key, s.Origin)
		}
	}
	want := map[string]any{
		"inventory": []string{}, "ssh_config": defaults.SSHConfig, "output": defaults.Output, "color": defaults.Color,
		"quiet": defaults.Quiet, "log_level": defaults.LogLevel, "log_file": defaults.LogFile, "socket": defaults.Socket, "no_daemon": defaults.NoDaemon,
		"max_sessions": defaults.MaxSessions, "max_sessions_per_host": defaults.MaxSessionsPerHost, "session_ttl": defaults.SessionTTL.String(),
	}
	if !reflect.DeepEqual(values, want) {
		t.Errorf("the example says %v, want %v", values, want)
	}
}
