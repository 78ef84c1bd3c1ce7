package daemon

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gateway/daemon/api"
)

// docs/api.md has every route, and no other; none but stop answers a caller of
// another protocol.
func TestEveryRouteIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, match := range regexp.MustCompile("(?m)^### `([A-Z]+ [^`?]+)").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, match[1])
	}
	d, err := New(Config{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	served := []string{"GET " + api.RouteHello, "POST " + api.RouteStop, routeLend}
	for pattern := range d.routes() {
		served = append(served, pattern)
	}
	for _, route := range documented {
		if !slices.Contains(served, route) {
			t.Errorf("docs/api.md has %s, which is not served", route)
		}
	}
	for _, route := range served {
		if !slices.Contains(documented, route) {
			t.Errorf("docs/api.md lacks %s", route)
		}
	}
	gate := newGate(d.Handler(), Life{Sessions: d.Sessions})
	parameter := regexp.MustCompile(`\{[a-z]+\}`)
	for _, route := range documented {
		if route == "POST "+api.RouteStop {
			continue
		}
		method, path, _ := strings.Cut(route, " ")
		for protocol, want := range map[string]bool{"": false, "99": false, "1": true} {
			if protocol == "1" && (strings.Contains(path, "events") || strings.Contains(path, "clients")) {
				continue // they last
			}
			request := httptest.NewRequestWithContext(t.Context(), method, parameter.ReplaceAllString(path, "none"), strings.NewReader("{}"))
			if protocol != "" {
				request.Header.Set(api.ProtocolHeader, protocol)
			}
			answer := httptest.NewRecorder()
			gate.ServeHTTP(answer, request)
			if got := answer.Code != http.StatusUpgradeRequired; got != want {
				t.Errorf("%s with protocol %q: status %d", route, protocol, answer.Code)
			}
			if strings.HasPrefix(answer.Body.String(), "404 page") || answer.Code == http.StatusMethodNotAllowed {
				t.Errorf("%s is no route: %d %s", route, answer.Code, answer.Body)
			}
		}
	}
	stop := httptest.NewRecorder()
	gate.ServeHTTP(stop, httptest.NewRequestWithContext(t.Context(), http.MethodPost, api.RouteStop, nil))
	if stop.Code != http.StatusOK {
		t.Errorf("stop without a protocol: %d %s", stop.Code, stop.Body)
	}
}
