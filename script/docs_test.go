package script_test

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"gateway/script"
)

// The reference has every key, and the README's example is a script.
func TestDocs(t *testing.T) {
	var schema struct {
		Properties  map[string]any
		Definitions struct {
			Step, Copy struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(script.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	reference, err := os.ReadFile("../docs/scripts.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, keys := range []map[string]any{schema.Properties, schema.Definitions.Step.Properties, schema.Definitions.Copy.Properties} {
		for key := range keys {
			if !regexp.MustCompile("(?m)^\\| [^|]*`" + key + "`").Match(reference) {
				t.Errorf("docs/scripts.md has no row for %s", key)
			}
		}
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```yaml\n(# deploy.yaml\n.*?)```").FindSubmatch(readme)
	if example == nil {
		t.Fatal("README.md has no example")
	}
	if s, err := script.Parse("deploy.yaml", example[1]); err != nil || len(s.Warnings) > 0 {
		t.Errorf("README.md: %v, %v", err, s)
	}
}
