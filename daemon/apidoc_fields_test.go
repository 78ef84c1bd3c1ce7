package daemon

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"gateway/daemon/api"
)

// docs/api.md names every field of a request: one that the API does not know is refused,
// so nobody can guess.
func TestEveryFieldIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for section := range strings.SplitSeq(string(text), "\n### `") {
		route, body, _ := strings.Cut(section, "`")
		sections[route] = body
	}
	for route, request := range map[string]any{
		"POST /v1/stop":                    api.Stop{},
		"POST /v1/lend":                    api.Lend{},
		"POST /v1/sessions":                api.Open{},
		"POST /v1/answers/{question}":      api.Answer{},
		"POST /v1/sessions/{id}/commands":  api.Run{},
		"POST /v1/sessions/{id}/input":     api.Input{},
		"POST /v1/sessions/{id}/interrupt": api.Interrupt{},
		"POST /v1/sessions/{id}/wait":      api.Wait{},
		"POST /v1/sessions/{id}/output":    api.Query{},
	} {
		body, ok := sections[route]
		if !ok {
			t.Errorf("docs/api.md has no section %s", route)
		}
		for field := range reflect.TypeOf(request).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !strings.Contains(body, "`"+name+"`") && !strings.Contains(body, `"`+name+`":`) {
				t.Errorf("docs/api.md: %s lacks %s", route, name)
			}
		}
	}
}
