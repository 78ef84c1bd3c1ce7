package script_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// validate checks a value against the keywords of JSON Schema that the script's
// schema uses; any other one is an error.
func validate(root, schema map[string]any, value any, at string) error {
	for keyword, want := range schema {
		var err error
		switch keyword {
		case "$schema", "title", "description", "definitions":
		case "$ref":
			name := strings.TrimPrefix(want.(string), "#/definitions/")
			err = validate(root, root["definitions"].(map[string]any)[name].(map[string]any), value, at)
		case "type":
			err = validateType(want, value, at)
		case "enum":
			if !slices.Contains(want.([]any), value) {
				err = fmt.Errorf("%s: %v is none of %v", at, value, want)
			}
		case "pattern":
			if text, ok := value.(string); ok && !regexp.MustCompile(want.(string)).MatchString(text) {
				err = fmt.Errorf("%s: %q does not match %v", at, text, want)
			}
		case "minimum", "maximum":
			if n, ok := value.(int); ok && (keyword == "minimum" && float64(n) < want.(float64) || keyword == "maximum" && float64(n) > want.(float64)) {
				err = fmt.Errorf("%s: %d is beyond %v", at, n, want)
			}
		case "minItems":
			if list, ok := value.([]any); ok && float64(len(list)) < want.(float64) {
				err = fmt.Errorf("%s: %d items", at, len(list))
			}
		case "items":
			list, _ := value.([]any)
			for i, item := range list {
				if err == nil {
					err = validate(root, want.(map[string]any), item, fmt.Sprintf("%s[%d]", at, i))
				}
			}
		case "anyOf":
			err = validateAny(root, want.([]any), value, at)
		case "required", "properties", "additionalProperties", "propertyNames", "dependencies":
			if object, ok := value.(map[string]any); ok {
				err = validateObject(root, schema, keyword, object, at)
			}
		default:
			err = fmt.Errorf("%s: the test does not know the keyword %s", at, keyword)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func validateType(want, value any, at string) error {
	names := []any{want}
	if list, ok := want.([]any); ok {
		names = list
	}
	is := map[string]bool{}
	switch value.(type) {
	case string:
		is["string"] = true
	case int:
		is["integer"], is["number"] = true, true
	case float64:
		is["number"] = true
	case bool:
		is["boolean"] = true
	case []any:
		is["array"] = true
	case map[string]any:
		is["object"] = true
	case nil:
		is["null"] = true
	}
	for _, name := range names {
		if is[name.(string)] {
			return nil
		}
	}
	return fmt.Errorf("%s: %T is no %v", at, value, want)
}

func validateAny(root map[string]any, some []any, value any, at string) error {
	var err error
	for _, one := range some {
		if err = validate(root, one.(map[string]any), value, at); err == nil {
			return nil
		}
	}
	return err
}

func validateObject(root, schema map[string]any, keyword string, object map[string]any, at string) error {
	properties, _ := schema["properties"].(map[string]any)
	switch want := schema[keyword].(type) {
	case []any: // required
		for _, name := range want {
			if _, ok := object[name.(string)]; !ok {
				return fmt.Errorf("%s: %v is missing", at, name)
			}
		}
	case bool: // additionalProperties: false
		for name := range object {
			if _, ok := properties[name]; !ok {
				return fmt.Errorf("%s: unknown %s", at, name)
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(object)) {
			var err error
			property, listed := properties[name].(map[string]any)
			switch {
			case keyword == "propertyNames":
				err = validate(root, want, name, at)
			case keyword == "dependencies":
				if needs, ok := want[name].([]any); ok {
					err = validateObject(root, map[string]any{"required": needs}, "required", object, at)
				}
			case keyword == "additionalProperties" && !listed:
				err = validate(root, want, object[name], at+"."+name)
			case keyword == "properties" && listed:
				err = validate(root, property, object[name], at+"."+name)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
