package daemon_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/internal/sshdtest"
	"gateway/transport"
)

var localhost = gateway.Target{Name: "localhost", Local: true}

// start starts a daemon on a socket of its own.
func start(t *testing.T, config daemon.Config) func(scope string) *client.Client {
	t.Helper()
	if config.StateDir == "" {
		config.StateDir = t.TempDir()
	}
	d, err := daemon.New(config)
	if err != nil {
		t.Fatal(err)
	}
	path := socketPath(t)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: d.Handler()}
	go server.Serve(l)
	var clients []*client.Client
	t.Cleanup(func() {
		for _, c := range clients {
			c.Release()
		}
		d.Drain(ended())
		server.Close()
	})
	return func(scope string) *client.Client {
		c := client.New(func(ctx context.Context) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", path)
		}, scope)
		clients = append(clients, c)
		return c
	}
}

// ended is a context that waits for nothing.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// open opens a session on this machine.
func open(t *testing.T, c *client.Client, o api.Open) api.Session {
	t.Helper()
	if o.Target.Name == "" {
		o.Target = localhost
	}
	s, err := c.Open(t.Context(), o, gateway.Caller{})
	if err != nil {
		t.Fatalf("Open = %v", err)
	}
	return s
}

func closeSession(t *testing.T, c *client.Client, name string) {
	t.Helper()
	_, err := c.Close(t.Context(), name)
	must(t, err)
}

// begin starts a command.
func begin(t *testing.T, c *client.Client, name string, r api.Run) api.Command {
	t.Helper()
	command, err := c.Run(t.Context(), name, r)
	if err != nil {
		t.Fatalf("Run(%q) = %v", r.Text, err)
	}
	return command
}

// run runs a command to its end.
func run(t *testing.T, c *client.Client, name, text string) *gateway.Result {
	t.Helper()
	command, err := c.Run(t.Context(), name, api.Run{Text: text, Wait: api.Duration(20 * time.Second)})
	if err != nil || command.Result == nil {
		t.Fatalf("Run(%q) = %+v, %v", text, command, err)
	}
	return command.Result
}

func TestSessionKeepsItsStateBetweenCalls(t *testing.T) {
	dial := start(t, daemon.Config{})
	s := open(t, dial(""), api.Open{Name: "work"})
	if s.Name != "work" || s.State != api.Idle || s.Kind != api.PTY || s.Shell != "bash" || s.Cwd == "" {
		t.Errorf("opened %+v", s)
	}
	run(t, dial(""), "work", "cd /; v=kept; export w=too")
	r := run(t, dial(""), "work", `pwd; echo "$v $w" >&2; (exit 3)`)
	if string(r.Stdout) != "/\n" || string(r.Stderr) != "kept too\n" || r.ExitCode != 3 || r.Cwd != "/" || r.Host != "localhost" {
		t.Errorf("got %+v", r)
	}
	if s, err := dial("").Session(t.Context(), "work"); err != nil || s.Cwd != "/" || s.State != api.Idle || s.Command == nil || s.Command.ExitCode == nil || *s.Command.ExitCode != 3 {
		t.Errorf("Session = %+v, %v", s, err)
	}
}

func TestCommandOutlivesItsCaller(t *testing.T) {
	dial := start(t, daemon.Config{})
	open(t, dial(""), api.Open{Name: "work"})
	begun, err := dial("").Run(t.Context(), "work", api.Run{Text: "echo one; sleep 0.3; echo two"})
	if err != nil || begun.Over() {
		t.Fatalf("Run = %+v, %v", begun, err)
	}
	_, err = dial("").Run(t.Context(), "work", api.Run{Text: "echo never"})
	if gateway.Code(err) != "session.busy" || !strings.Contains(err.Error(), "echo one; sleep") {
		t.Errorf("a second command: %v, want busy with what", err)
	}
	waited, err := dial("").Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)})
	if err != nil || !waited.Met || string(waited.Command.Result.Stdout) != "one\ntwo\n" {
		t.Errorf("Wait = %+v, %v", waited, err)
	}
	again, err := dial("").Command(t.Context(), begun.ID, 0)
	if err != nil || again.Result == nil || string(again.Result.Stdout) != "one\ntwo\n" || again.From != 0 || again.To != 8 {
		t.Errorf("Command = %+v, %v", again, err)
	}
}

func TestPlacesAreBounded(t *testing.T) {
	c := start(t, daemon.Config{MaxSessions: 3, MaxPerHost: 2})("")
	there := gateway.Target{Name: "elsewhere", Local: true}
	first := open(t, c, api.Open{})
	open(t, c, api.Open{})
	refused := func(o api.Open, code string) {
		t.Helper()
		if _, err := c.Open(t.Context(), o, gateway.Caller{}); gateway.Code(err) != code {
			t.Errorf("Open(%+v) = %v, want %s", o, err, code)
		}
	}
	refused(api.Open{Target: localhost}, "session.limit")
	open(t, c, api.Open{Target: there, Name: "taken"})
	refused(api.Open{Target: there}, "session.limit")
	closeSession(t, c, first.ID)
	refused(api.Open{Target: localhost, Name: "taken"}, "usage")
	refused(api.Open{Target: localhost, Name: "../x"}, "usage")
	refused(api.Open{Target: localhost, Shell: "/bin/nonsense"}, "shell.unsupported")
	open(t, c, api.Open{Target: localhost}) // what failed gave its place back
}

func TestIdleSessionEnds(t *testing.T) {
	c := start(t, daemon.Config{})("")
	s := open(t, c, api.Open{TTL: api.Duration(300 * time.Millisecond)})
	r := run(t, c, s.ID, "sleep 0.6; echo still there")
	if string(r.Stdout) != "still there\n" {
		t.Errorf("a command that runs longer than the session may be idle: %+v", r)
	}
	eventually(t, "idle session closed", func() bool {
		s, err := c.Session(t.Context(), s.ID)
		return err == nil && s.State == api.Closed && strings.Contains(s.Reason, "idle")
	})
}

func TestSessionsGoWithTheirClient(t *testing.T) {
	c := start(t, daemon.Config{Grace: 50 * time.Millisecond})("")
	there, leave := context.WithCancel(t.Context())
	presence, _, err := c.Presence(there)
	if err != nil {
		t.Fatal(err)
	}
	gone := open(t, c, api.Open{Client: presence.Client})
	kept := open(t, c, api.Open{Client: presence.Client, Keep: true})
	taken := open(t, c, api.Open{Client: presence.Client})
	attached, detach := context.WithCancel(t.Context())
	defer detach()
	if _, err := c.Attach(attached, taken.ID, "Ada"); err != nil {
		t.Fatal(err)
	}
	leave()
	eventually(t, "session of a client that is gone closed", func() bool {
		s, err := c.Session(t.Context(), gone.ID)
		return err == nil && s.State == api.Closed
	})
	if s, err := c.Session(t.Context(), kept.ID); err != nil || s.State != api.Idle {
		t.Errorf("the one to keep is %+v, %v", s, err)
	}
	if s, err := c.Session(t.Context(), taken.ID); err != nil || s.State != api.Idle {
		t.Errorf("the one that a person has taken over is %+v, %v", s, err)
	}
	detach()
	eventually(t, "session closed once its person has left", func() bool {
		s, err := c.Session(t.Context(), taken.ID)
		return err == nil && s.State == api.Closed
	})
}

// Who writes requests of their own is told that they are not what JSON is, or that
// a decoder would make something else of them.
func TestRequestIsText(t *testing.T) {
	d, err := daemon.New(daemon.Config{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"caf\xe9":                   `"code":"usage","message":"daemon: the request is not valid UTF-8"`,
		`caf\udce9`:                 `"code":"usage","message":"daemon: the request has half a surrogate pair`,
		`caf\u00e9 \ud83d\ude00`:    `"code":"session.not_found"`,
		`"} {"command":"`:           `"code":"usage","message":"daemon: the request has something behind its JSON"`,
		`","timeout_ms":-1,"cwd":"`: `"code":"usage","message":"daemon: request: a time of -1 ms"`,
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/sessions/work/commands", strings.NewReader(`{"command":"echo `+text+`"}`))
		answer := httptest.NewRecorder()
		d.Handler().ServeHTTP(answer, request)
		if !strings.Contains(answer.Body.String(), want) {
			t.Errorf("%q is answered %d %s, want %s", text, answer.Code, answer.Body, want)
		}
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	dial := start(t, daemon.Config{})
	c := dial("")
	open(t, c, api.Open{Name: "work"})
	for name, call := range map[string]func() error{
		"too long": func() error {
			_, err := c.Run(t.Context(), "work", api.Run{Text: "echo", Stdin: make([]byte, 20<<20)})
			return err
		},
		"more stdin than it takes": func() error {
			_, err := c.Run(t.Context(), "work", api.Run{Text: "true", Stdin: make([]byte, api.MaxStdin+1)})
			return err
		},
		"NUL": func() error {
			return runs(c.Run(t.Context(), "work", api.Run{Text: "a\x00b", Wait: api.Duration(time.Minute)}))
		},
		"until": func() error { _, err := c.Wait(t.Context(), "work", api.Wait{Until: "noon"}); return err },
		"keys":  func() error { return c.Send(t.Context(), "work", api.Input{Keys: []string{"ctrl-q-q"}}) },
		"level": func() error { return c.Interrupt(t.Context(), "work", api.Interrupt{Level: "hard"}) },
		"a terminal that is too wide": func() error {
			_, err := c.Open(t.Context(), api.Open{Target: localhost, Cols: 70000}, gateway.Caller{})
			return err
		},
		"a terminal that is too high": func() error { return c.Resize(t.Context(), "work", transport.Size{Cols: 80, Rows: 70000}) },
		"a terminal of less than one": func() error { return c.Resize(t.Context(), "work", transport.Size{Cols: -1, Rows: 24}) },
		"a command that is no UTF-8": func() error {
			_, err := c.Run(t.Context(), "work", api.Run{Text: "touch caf\xe9"})
			return err
		},
		"an environment that is no UTF-8": func() error {
			return c.Exec(t.Context(), "work", api.Run{Text: "true", Env: map[string]string{"A": "\xff"}}, nil)
		},
		"a text that is no UTF-8": func() error { return c.Send(t.Context(), "work", api.Input{Text: "\xff"}) },
	} {
		if err := call(); gateway.Code(err) != "usage" {
			t.Errorf("%s: %v, want usage", name, err)
		}
	}
}

// A target that can't be is the request's mistake, and no failure of the daemon.
func TestTargetThatCannotBe(t *testing.T) {
	t.Parallel()
	d, err := daemon.New(daemon.Config{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Drain(ended()) })
	for target, mistake := range map[string]string{
		`{"name":"web1","addr":"127.0.0.1"}`:                                                      "no user",
		`{"name":"web1","addr":"127.0.0.1","user":"u","port":99999}`:                              "99999",
		`{"name":"web1","addr":"127.0.0.1","user":"u","port":-1}`:                                 "-1",
		`{"name":"web1","addr":"127.0.0.1","user":"u","port":1,"host_keys":{"policy":"relaxed"}}`: "relaxed",
	} {
		request := httptest.NewRequest(http.MethodPost, "/v1/sessions", strings.NewReader(`{"target":`+target+`}`))
		request.Header.Set(api.ProtocolHeader, ours)
		answer := httptest.NewRecorder()
		d.Handler().ServeHTTP(answer, request)
		if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), mistake) {
			t.Errorf("opening %s: %d %s", target, answer.Code, answer.Body)
		}
	}
}

// runs returns why a command did not run.
func runs(c api.Command, err error) error {
	if err == nil && c.Result != nil {
		err = c.Result.Err
	}
	return err
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if !sshdtest.Eventually(t, 20*time.Second, what, condition) {
		t.FailNow()
	}
}
