package mcpserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/hosts"
	"gateway/internal/phrase"
)

// misfit returns the error for a call whose arguments do not fit the tool's
// schema, in words that say which one and what is wanted: what the SDK says is
// for those who wrote the schema.
func (s *Server) misfit(params *mcp.CallToolParamsRaw, r *mcp.CallToolResult) error {
	tool, schema := params.Name, s.schemas[params.Name]
	takes := tool + " takes " + strings.Join(schema.PropertyOrder, ", ")
	var given map[string]any
	if len(params.Arguments) > 0 && json.Unmarshal(params.Arguments, &given) != nil {
		return usage(takes, "the arguments of %s are not a JSON object", tool)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if schema.Properties[name] == nil {
			return usage(strings.TrimSpace(hosts.DidYouMean(name, "", schema.PropertyOrder)+" "+takes), "%s has no argument %q", tool, name)
		}
	}
	for _, name := range schema.PropertyOrder {
		value, ok := given[name]
		switch p := schema.Properties[name]; {
		case !ok && slices.Contains(schema.Required, name):
			return usage(takes, "%s needs %s", tool, name)
		case ok && !fits(p, value):
			return usage(p.Description, "%s is %s: use %s", name, brief(value), wanted(p))
		}
	}
	text := "the arguments do not fit"
	if err := r.GetError(); err != nil {
		text = err.Error()
	}
	return usage(takes, "%s", text)
}

// fits reports whether a value is one that an argument may have.
func fits(p *jsonschema.Schema, value any) bool {
	resolved, err := p.Resolve(nil)
	return err == nil && resolved.Validate(value) == nil
}

// brief is a value in short.
func brief(value any) string {
	b, _ := json.Marshal(value) // it was JSON
	return phrase.Brief(string(b), 40)
}

// wanted says what an argument may be.
func wanted(p *jsonschema.Schema) string {
	switch {
	case len(p.Enum) > 0:
		words := make([]string, len(p.Enum))
		for i, word := range p.Enum {
			words[i] = fmt.Sprint(word)
		}
		last := len(words) - 1
		return strings.Join(words[:last], ", ") + " or " + words[last]
	case p.Minimum != nil && p.Maximum != nil:
		return fmt.Sprintf("a whole number from %.0f to %.0f", *p.Minimum, *p.Maximum)
	}
	switch p.Type {
	case "boolean":
		return "true or false"
	case "array":
		return "a list of strings"
	case "object":
		return "an object whose values are strings"
	}
	return "a string"
}
