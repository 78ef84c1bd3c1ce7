package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/internal/socket"
	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
)

// madeUp is a home whose daemon a test makes up. It says hello.
func madeUp(t *testing.T, routes map[string]http.HandlerFunc) (home string) {
	t.Helper()
	home = socketHome(t)
	l, err := socket.Listen(t.Context(), filepath.Join(home, "run", "s"), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Release)
	mux := http.NewServeMux()
	if routes["GET /v1/hello"] == nil {
		mux.HandleFunc("GET /v1/hello", func(w http.ResponseWriter, _ *http.Request) { answer(w, api.Hello{Protocol: api.Protocol}) })
	}
	for route, serve := range routes {
		mux.HandleFunc(route, serve)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(api.ProtocolHeader, strconv.Itoa(api.Protocol))
		mux.ServeHTTP(w, r)
	})}
	go server.Serve(l) // ends with Close
	t.Cleanup(func() { server.Close() })
	return home
}

// answer is a daemon's answer, or a line of one; the test sees what is missing.
func answer(w http.ResponseWriter, line any) {
	_ = json.NewEncoder(w).Encode(line)
	_ = http.NewResponseController(w).Flush()
}

// resultIn returns the result in an answer in JSON.
func resultIn(t *testing.T, stdout string) (r gateway.Result) {
	t.Helper()
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	return r
}

// Whoever is told that a command may have run looks before running it again; one
// that the daemon has refused has not.
func TestSessionCommandThatWasNotSent(t *testing.T) {
	for _, test := range []struct {
		name, session string
		serve         http.HandlerFunc
		verdict       session.Verdict
		code          string
		status        int
	}{
		{"it is ending", "work", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			answer(w, api.Failure{Error: gateway.NewJSONError(&transport.Error{Code: "daemon.unreachable", Message: "daemon: it is ending"})})
		}, session.NotStarted, "daemon.unreachable", statusNotStarted},
		{"no answer", "work", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, session.Unknown, "daemon.unreachable", statusUnknown},
		{"a dot", ".", nil, session.NotStarted, "session.not_found", statusNotStarted},
		{"two dots", "..", nil, session.NotStarted, "session.not_found", statusNotStarted},
	} {
		t.Run(test.name, func(t *testing.T) {
			routes := map[string]http.HandlerFunc{}
			if test.serve != nil {
				routes["POST /v1/sessions/work/commands"] = test.serve
			}
			status, out, errs := call(t, madeUp(t, routes), "session", "exec", test.session, "-o", "json", "--", "true")
			r := resultIn(t, out)
			if r.Verdict != test.verdict || gateway.Code(r.Err) != test.code || status != test.status {
				t.Errorf("%s, %v, status %d, want %s, %s, %d; stderr %q", r.Verdict, r.Err, status, test.verdict, test.code, test.status, errs)
			}
		})
	}
}

// A socket that nobody listens on any more takes no command either.
func TestSessionCommandThatNobodyTook(t *testing.T) {
	err := &transport.Error{Code: "daemon.unreachable", Message: "socket: no daemon listens"}
	r := (&execution{session: "work"}).lost(err)
	if r.Verdict != session.NotStarted || !errors.Is(r.Err, err) {
		t.Errorf("%s, %v, want not_started", r.Verdict, r.Err)
	}
}

// Output that nobody will ever see is no success, and its cause is the true one.
func TestSessionOutputThatCannotBeKept(t *testing.T) {
	home := daemonHome(t)
	records, err := filepath.Glob(filepath.Join(home, ".local", "state", "gateway", "sessions", "s-*"))
	if err != nil || len(records) != 1 {
		t.Fatalf("records %q, %v", records, err)
	}
	must(t, os.Rename(records[0], records[0]+".away"))
	for _, test := range []struct {
		name, format, command string
		status                int
		code                  string
	}{
		{"text", "text", "head -c 100000 /dev/zero", statusUnknown, "output.failed"},
		{"one that failed", "text", "head -c 100000 /dev/zero; (exit 3)", 3, "output.failed"},
		{"JSON", "json", "head -c 100000 /dev/zero", statusUnknown, "output.failed"},
		{"JSON that has all", "json", "echo hi", 0, ""},
		{"nothing to keep", "text", "true", 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, out, said := call(t, home, "session", "exec", "work", "-o", test.format, "--", test.command)
			if status != test.status {
				t.Errorf("status %d, want %d", status, test.status)
			}
			if test.format == "json" {
				r := resultIn(t, out)
				if gateway.Code(r.Err) != test.code || r.Truncated != (test.code != "") || r.Verdict != session.Exited || r.ExitCode != 0 {
					t.Errorf("result %+v", r)
				}
				if said = ""; r.Err != nil {
					said = r.Err.Error()
				}
			} else if strings.Contains(said, "gateway: "+test.code) != (test.code != "") {
				t.Errorf("stderr %q, want %q", said, test.code)
			}
			if strings.Contains(said, "no such file or directory") != (test.code != "") || strings.Contains(said, "faster") {
				t.Errorf("it says %q", said)
			}
		})
	}
}

// Where none may be started, the daemon that is there may be stuck.
func TestStuckDaemon(t *testing.T) {
	t.Parallel()
	home := madeUp(t, map[string]http.HandlerFunc{"GET /v1/hello": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }})
	begun := time.Now()
	status, out, errs := call(t, home, "session", "exec", "work", "--no-daemon", "-o", "json", "--", "true")
	if r := resultIn(t, out); r.Verdict != session.NotStarted || gateway.Code(r.Err) != "daemon.unreachable" || status != statusNotStarted || !strings.Contains(errs+r.Err.Error(), "does not answer") {
		t.Errorf("%+v, status %d, stderr %q", r, status, errs)
	}
	if took := time.Since(begun); sshdtest.Over(t, took, 20*time.Second) {
		t.Errorf("it took %v", took)
	}
}

// What a daemon has said once is not passed on as what is where it says no more.
func TestSessionCommandOfAStuckDaemon(t *testing.T) {
	for name, test := range map[string]struct {
		code string
		call func(context.Context, *execution) gateway.Result
	}{
		"it has not said that it runs": {"link.lost", func(ctx context.Context, e *execution) gateway.Result { return e.do(ctx) }},
		"the wait is over": {"daemon.unreachable", func(ctx context.Context, e *execution) gateway.Result {
			e.command = &api.Command{ID: "s-1.1"}
			return e.unfinished(ctx, nil)
		}},
		"the caller leaves": {"cmd.interrupted", func(ctx context.Context, e *execution) gateway.Result {
			e.command = &api.Command{ID: "s-1.1"}
			return e.abandoned(ctx, &interruption{syscall.SIGHUP})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := client.New(func(context.Context) (net.Conn, error) {
					near, far := net.Pipe()
					go io.Copy(io.Discard, far) // ends with near
					return near, nil
				}, "")
				begun := time.Now()
				r := test.call(t.Context(), &execution{app: newApp(nil), client: c, session: "work", wait: time.Second, waits: true})
				if r.Verdict != session.Unknown || gateway.Code(r.Err) != test.code || gateway.Hint(r.Err) == "" || sshdtest.Over(t, time.Since(begun), 7*time.Second) {
					t.Errorf("%s, %v, hint %q, after %v, want unknown and %s", r.Verdict, r.Err, gateway.Hint(r.Err), time.Since(begun), test.code)
				}
			})
		})
	}
}

// A program that loses the daemon keeps what it has been sent.
func TestSessionOutputBeforeTheDaemonIsLost(t *testing.T) {
	piece := func(stream, text string) api.Event {
		return api.Event{Event: stream, Piece: &api.Piece{Stream: stream, Data: []byte(text)}}
	}
	home := madeUp(t, map[string]http.HandlerFunc{"POST /v1/sessions/work/commands": func(w http.ResponseWriter, _ *http.Request) {
		answer(w, api.Event{Event: "started", Command: &api.Command{ID: "s-1.1", Session: "s-1", State: string(api.Running)}})
		answer(w, piece("stdout", "out 1\n"))
		answer(w, piece("stderr", "err\n"))
		answer(w, piece("stdout", "out 2\n"))
		panic(http.ErrAbortHandler)
	}})
	status, out, errs := call(t, home, "session", "exec", "work", "-o", "json", "--", "make")
	r := resultIn(t, out)
	if r.Verdict != session.Unknown || gateway.Code(r.Err) != "daemon.unreachable" || status != statusUnknown {
		t.Errorf("%+v, status %d, stderr %q", r, status, errs)
	}
	if string(r.Stdout) != "out 1\nout 2\n" || r.StdoutBytes != 12 || string(r.Stderr) != "err\n" || r.StderrBytes != 4 || r.Truncated {
		t.Errorf("it has %q of %d, %q of %d, truncated %v", r.Stdout, r.StdoutBytes, r.Stderr, r.StderrBytes, r.Truncated)
	}
}

// What nobody answers, and what nobody sees any more, is ended also where it ignores an
// interrupt.
func TestSessionCommandThatIgnoresInterrupts(t *testing.T) {
	t.Parallel()
	home := daemonHome(t)
	in := func(t *testing.T, name, command string) (*exec.Cmd, *bytes.Buffer) {
		gatewayIn(t, home, "session", "open", "localhost", "--name", name)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		t.Cleanup(cancel)
		cmd := exec.CommandContext(ctx, "gateway", "session", "exec", name, "--", command)
		cmd.Env = environ(home)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		return cmd, &stderr
	}
	for name, command := range map[string]string{
		"program": `sh -c 'trap "" INT; read -p "go on? " a </dev/tty; :'`,
		"anew":    `sh -c 'trap : INT; while :; do read -p "go on? " a </dev/tty; done'`,
		"shell":   `trap "" INT; read -p "go on? " a </dev/tty`,
	} {
		t.Run(name, func(t *testing.T) {
			cmd, stderr := in(t, name, command)
			_ = cmd.Run() // the status says it
			if status := cmd.ProcessState.ExitCode(); status != statusNotStarted || !strings.Contains(stderr.String(), `gateway: cmd.needs_input: session: command waits for input at "go on? "`) {
				t.Errorf("status %d, stderr %q", status, stderr)
			}
		})
	}
	t.Run("unseen", func(t *testing.T) {
		cmd, stderr := in(t, "unseen", `sh -c 'trap "" INT; while echo more; do :; done'`)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		must(t, cmd.Start())
		if _, err := io.ReadFull(out, make([]byte, len("more\n"))); err != nil {
			t.Fatal(err)
		}
		out.Close()
		_ = cmd.Wait() // as above
		if status := cmd.ProcessState.ExitCode(); status != statusPipe {
			t.Errorf("status %d, want %d; stderr %q", status, statusPipe, stderr)
		}
	})
}

// Of a daemon that is stuck the doctor says that, and the remedy.
func TestDoctorSeesStuckDaemon(t *testing.T) {
	t.Parallel()
	home := madeUp(t, map[string]http.HandlerFunc{"GET /v1/hello": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }})
	status, out, errs := call(t, home, "doctor", "-o", "jsonl")
	if want := `{"check":"daemon","status":"fail","message":"daemon: what listens on `; status != statusFailed || !strings.Contains(out, want) || !strings.Contains(out, "gateway serve --stop --force") {
		t.Errorf("status %d, %s, stderr %q, want %s and a remedy", status, out, errs, want)
	}
}

// What was looked at when a signal came is no finding.
func TestDoctorIsToldToEnd(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	home := madeUp(t, map[string]http.HandlerFunc{"GET /v1/hello": func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}})
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "gateway", "doctor")
	cmd.Env = environ(home)
	cmd.Stdout, cmd.Stderr = &out, &errs
	must(t, cmd.Start())
	<-asked
	send(t, cmd, syscall.SIGINT)
	_ = cmd.Wait() // the status says it
	if status := cmd.ProcessState.ExitCode(); status != 130 || out.Len() > 0 || errs.String() != "gateway: cmd.interrupted: gateway was told to stop (interrupt)\n" {
		t.Errorf("status %d, %s, stderr %q, want 130 and no findings", status, &out, &errs)
	}
}

// An agent that says nothing is waited for no longer than somebody wants to know.
func TestDoctorIsToldToEndWhileItAsksAnAgent(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	socket := filepath.Join(home, "agent")
	agent, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	cmd := exec.CommandContext(t.Context(), "gateway", "doctor")
	cmd.Env = append(environ(home), "SSH_AUTH_SOCK="+socket)
	must(t, cmd.Start())
	conn, err := agent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil { // it has asked
		t.Fatal(err)
	}
	told := time.Now()
	send(t, cmd, syscall.SIGINT)
	_ = cmd.Wait() // the status says it
	if status := cmd.ProcessState.ExitCode(); status != 130 || time.Since(told) > time.Second {
		t.Errorf("status %d after %v, want 130 at once", status, time.Since(told))
	}
}
