package script

import (
	"encoding/json"
	"maps"
	"regexp"
)

// A schema is a JSON schema, or a part of one.
type schema map[string]any

// The kinds of values. YAML's own types are accepted where text is wanted, as
// the parser does.
var (
	value    = schema{"type": []string{"string", "number", "boolean"}}
	text     = schema{"type": []string{"string", "number", "boolean"}, "pattern": `\S`}
	oneLine  = schema{"type": []string{"string", "number", "boolean"}, "pattern": `^[^\r\n]*\S[^\r\n]*$`}
	boolean  = schema{"type": "boolean"}
	status   = schema{"type": "integer", "minimum": 0, "maximum": 255}
	duration = either(schema{"type": "integer", "minimum": 0}, pattern(`^([0-9]+|0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`))
)

func pattern(expression string) schema {
	return schema{"type": "string", "pattern": expression}
}

func words(list ...string) schema { return schema{"type": "string", "enum": list} }

func ref(name string) schema { return schema{"$ref": "#/definitions/" + name} }

func listOf(item schema) schema { return schema{"type": "array", "items": item} }

func either(some ...schema) schema { return schema{"anyOf": some} }

// mapOf is a mapping with any keys of a form.
func mapOf(key *regexp.Regexp, value schema) schema {
	return schema{"type": "object", "propertyNames": schema{"pattern": key.String()}, "additionalProperties": value}
}

// objectOf is a mapping with these fields and no others.
func objectOf[T any](fields []field[T], required ...string) schema {
	properties := schema{}
	for _, f := range fields {
		with := schema{"description": f.about}
		maps.Copy(with, f.schema)
		properties[f.key] = with
	}
	s := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// Schema returns the JSON schema of a script, for editors.
func Schema() []byte {
	root := objectOf(scriptFields, "steps")
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "gateway script"
	root["description"] = "A scripted session: gateway run SCRIPT.yaml --on SELECTOR"
	step := objectOf(stepFields)
	var some []schema
	for _, kind := range kinds {
		some = append(some, schema{"required": []string{kind}, "propertyNames": schema{"enum": keysOf(kind)}})
	}
	maps.Copy(step, either(some...))
	step["dependencies"] = schema{"until": []string{"retry"}}
	root["definitions"] = schema{"step": step, "copy": objectOf(copyFields, copyNeeds...)}
	data, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // it is plain data
	}
	return append(data, '\n')
}
