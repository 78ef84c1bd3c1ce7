package integration

import (
	"bufio"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	tokenA = "token-of-a-0123456789abcdef"
	tokenB = "token-of-b-0123456789abcdef"
)

// overHTTP starts gateway mcp on a port, and returns where.
func (h *house) overHTTP(t *testing.T, args ...string) string {
	t.Helper()
	h.env = append(h.env, "TOKEN_A="+tokenA, "TOKEN_B="+tokenB)
	cmd := h.lasting(t, append([]string{"mcp", "--http", ":0", "--token", "env:TOKEN_A", "--token", "env:TOKEN_B"}, args...)...)
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	lines := bufio.NewScanner(stderr)
	if !lines.Scan() {
		t.Fatal("the server says nothing")
	}
	url := regexp.MustCompile(`^gateway: agents are served on (http://127\.0\.0\.1:\d+/)$`).FindStringSubmatch(lines.Text())
	if url == nil {
		t.Fatalf("the server says %q", lines.Text())
	}
	go func() { // ends with the server
		for lines.Scan() {
		}
	}()
	return url[1]
}

// bearer adds a token to every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// agentAt connects to a server.
func agentAt(t *testing.T, url, token, era string) *agent {
	t.Helper()
	return connect(t, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer(token)}, MaxRetries: -1}, era)
}

func TestAgentOverHTTP(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write(t, ".config/gateway/hosts.yaml", aliases(t))
	h.serves(t)
	url := h.overHTTP(t)
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			a, b := agentAt(t, url, tokenA, era), agentAt(t, url, tokenB, era)
			if got := a.session.InitializeResult().ProtocolVersion; got != era {
				t.Errorf("the protocol is %s", got)
			}
			story(t, a)

			// Each token has its own sessions, and its own names.
			mine := "mine-" + era
			a.do("session_open", args{"host": "web1", "name": mine})
			secret := a.do("run", args{"session": mine, "command": "echo secret"})
			for tool, arguments := range map[string]args{
				"run":       {"session": mine, "command": "id"},
				"output":    {"id": secret.ID},
				"wait":      {"id": secret.ID, "until": "exit"},
				"send":      {"id": secret.ID},
				"interrupt": {"id": secret.ID},
				"sessions":  {"action": "close", "session": mine},
			} {
				if s := b.refused("session.not_found", "", tool, arguments); strings.Contains(s.text, "secret") {
					t.Errorf("%s tells another scope %s", tool, s.text)
				}
			}
			b.do("session_open", args{"host": "web1", "name": mine})
			if list := b.do("sessions", args{"action": "list"}).Sessions; len(list) != 1 {
				t.Errorf("the sessions of b: %+v", list)
			}
			for _, x := range []*agent{a, b} {
				x.do("sessions", args{"action": "close", "session": mine})
			}
		})
	}
}

// Nobody comes in without a token, nor from a page of somebody else's.
func TestHTTPIsGuarded(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.serves(t)
	url := h.overHTTP(t, "--hosts", "localhost", "--quiet") // it says where all the same
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	for _, c := range []struct {
		name, method, body string
		header             map[string]string
		status             int
	}{
		{"no token", "POST", list, map[string]string{"Authorization": ""}, 401},
		{"wrong token", "POST", list, map[string]string{"Authorization": "Bearer " + tokenA + "x"}, 401},
		{"not a bearer", "POST", list, map[string]string{"Authorization": "Basic " + tokenA}, 401},
		{"listening without a token", "GET", "", map[string]string{"Authorization": ""}, 401},
		{"another origin", "POST", list, map[string]string{"Origin": "http://evil.example"}, 403},
		{"another origin listens", "GET", "", map[string]string{"Origin": "http://evil.example"}, 403},
		{"a page of another site", "POST", list, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"a name that was bent to this machine", "POST", list, map[string]string{"Host": "evil.example"}, 403},
		{"a body without end", "POST", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 17<<20) + `"}`, nil, 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), c.method, url, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+tokenA)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			for name, value := range c.header {
				if r.Header.Set(name, value); name == "Host" {
					r.Host = value
				}
			}
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != c.status {
				t.Errorf("status %d, want %d", response.StatusCode, c.status)
			}
			// RFC 9110, section 11.6.1; RFC 6750, section 3.
			if says := response.Header.Get("WWW-Authenticate"); (says == `Bearer realm="gateway"`) != (c.status == 401) {
				t.Errorf("status %d with the challenge %q", response.StatusCode, says)
			}
		})
	}
	if o := h.gateway(t, "mcp", "--http", ":0"); o.status != 2 || !strings.Contains(o.stderr, "--token") {
		t.Errorf("without a token: %+v", o)
	}
	taken := strings.Trim(strings.TrimPrefix(url, "http:"), "/")
	if o := h.gateway(t, "mcp", "--http", taken, "--token", "env:TOKEN_A"); o.status != 2 || !strings.Contains(o.stderr, "\ngateway: usage: --http: ") || !strings.Contains(o.stderr, "\nhint: something else listens there") {
		t.Errorf("on a port that is taken: %+v", o)
	}
	if o := h.gateway(t, "mcp", "--http", ":0", "--token", "env:HOME_"); o.status == 0 {
		t.Errorf("with a token that is not there: %+v", o)
	}
}
