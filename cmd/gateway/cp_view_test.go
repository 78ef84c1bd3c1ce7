package main

import (
	"os"
	"path/filepath"
	"testing"

	"gateway/internal/config"
	"gateway/transfer"
)

// said returns what a view of a copy writes in text form.
func said(t *testing.T, c *copying, show func(cpView)) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c.app = &app{out: newOutput(file, file, &console{}, nil), config: &config.Config{Output: "text", Quiet: true}}
	c.names = []string{"web1"}
	show(c.app.newCPView(c))
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What a server calls its files does not move the cursor, nor turn a line around.
func TestDryRunOfHostileNames(t *testing.T) {
	for name, want := range map[string]string{
		"plain ü":          "plain ü",
		"a\u009b2Jb":       `"a\u009b2Jb"`,
		"a\u202eb":         `"a\u202eb"`,
		"a\x1b[2J":         `"a\x1b[2J"`,
		"a\nweb1:b -> c":   `"a\nweb1:b -> c"`,
		"\u2066a":          `"\u2066a"`,
		"\U0001f468\u200d": "\U0001f468\u200d", // it joins emoji
	} {
		c := &copying{flags: &cpFlags{dryRun: true}}
		c.from.Selector = "web1"
		text := said(t, c, func(v cpView) {
			v.watcher(0).End(transfer.Event{Path: name, Target: name, Done: transfer.Would})
		})
		if want := "web1:" + want + " -> " + want + "\n"; text != want {
			t.Errorf("%q is shown as %q, want %q", name, text, want)
		}
	}
}
