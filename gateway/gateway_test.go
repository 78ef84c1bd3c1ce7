package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// with returns a gateway for an inventory.
func with(t *testing.T, inventory string, edit func(*gateway.Config)) *gateway.Gateway {
	t.Helper()
	inv, err := hosts.Parse("hosts.yaml", []byte(inventory))
	if err != nil {
		t.Fatal(err)
	}
	config := gateway.Config{Inventory: inv, Warn: func(m string) { t.Log("warning:", m) }}
	if edit != nil {
		edit(&config)
	}
	g := gateway.New(config)
	t.Cleanup(func() { g.Close() })
	return g
}

func TestExecKeepsLongOutputWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	g := with(t, "", func(c *gateway.Config) { c.SpoolDir = dir })
	r := g.Exec(t.Context(), "localhost", gateway.Command{Text: "seq 1 300000; echo short >&2", Spool: true})
	var want bytes.Buffer
	for i := 1; i <= 300000; i++ {
		fmt.Fprintln(&want, i)
	}
	whole, err := os.ReadFile(r.Spool)
	if r.Err != nil || err != nil || !bytes.Equal(whole, want.Bytes()) || !r.Truncated || len(r.Stdout) != 1<<20 || r.StdoutBytes != int64(want.Len()) {
		t.Errorf("Exec = %v, kept %d of %d bytes, spool %q with %d, %v", r.Err, len(r.Stdout), r.StdoutBytes, r.Spool, len(whole), err)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o700, r.Spool: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("mode of %s = %v, %v, want %04o", path, info.Mode(), err, mode)
		}
	}
}

// Where there is no home, there is no place for spools either: the command does not
// fail for it, and it is said.
func TestLongOutputWithoutAPlace(t *testing.T) {
	var warned []string
	g := with(t, "", func(c *gateway.Config) { c.Warn = func(s string) { warned = append(warned, s) } })
	r := g.Exec(t.Context(), "localhost", gateway.Command{Text: "seq 1 300000", Spool: true})
	if r.Err != nil || !r.Truncated || r.Spool != "" || len(warned) != 1 || !strings.Contains(warned[0], "output is not kept whole") {
		t.Errorf("%v, truncated %v, spool %q, warned %q", r.Err, r.Truncated, r.Spool, warned)
	}
}

// Each stream that is too long has a file of its own, and the result names it: of
// a command, and of a script.
func TestBothStreamsAreKeptWhole(t *testing.T) {
	g := with(t, "", func(c *gateway.Config) { c.SpoolDir = t.TempDir() })
	const out, errs = "seq 1 300000", "seq 300000 -1 1 >&2"
	size := func(file string) int64 {
		info, err := os.Stat(file)
		if err != nil {
			return -1
		}
		return info.Size()
	}
	for _, test := range []struct {
		text         string
		both, script bool
	}{
		{out + "; " + errs, true, false},
		{errs, false, false},
		{out + "\n" + errs, true, true},
		{"true\n" + errs, false, true},
	} {
		r := g.Exec(t.Context(), "localhost", gateway.Command{Text: test.text, Script: test.script, Spool: true})
		if r.Err != nil || !r.Truncated || size(r.SpoolStderr) != r.StderrBytes || r.StderrBytes < 1<<20 {
			t.Errorf("%q: %v, stderr has %d bytes, its file %q %d", test.text, r.Err, r.StderrBytes, r.SpoolStderr, size(r.SpoolStderr))
		}
		switch {
		case test.both && (r.Spool == r.SpoolStderr || size(r.Spool) != r.StdoutBytes):
			t.Errorf("%q: stdout has %d bytes, its file %q %d", test.text, r.StdoutBytes, r.Spool, size(r.Spool))
		case !test.both && r.Spool != r.SpoolStderr:
			t.Errorf("%q: the whole is in %q, want the file of stderr, %q", test.text, r.Spool, r.SpoolStderr)
		}
	}
}

func TestSpoolThatCannotBeWrittenFailsNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	warnings := 0
	g := with(t, "", func(c *gateway.Config) { c.SpoolDir, c.Warn = file, func(string) { warnings++ } })
	r := g.Exec(t.Context(), "localhost", gateway.Command{Text: "seq 1 300000 | tee /dev/stderr", Spool: true})
	if r.Err != nil || r.ExitCode != 0 || r.Spool != "" || !r.Truncated || warnings != 1 {
		t.Errorf("Exec = %d, %v, spool %q, %d warnings, want success without a spool and one warning", r.ExitCode, r.Err, r.Spool, warnings)
	}
}

func TestSpoolsAreBounded(t *testing.T) {
	for _, spool := range []struct {
		name  string
		size  int64 // it is sparse
		days  time.Duration
		stays bool
	}{{"young", 10, 6, true}, {"old", 10, 8, false}, {"big", 1 << 30, 0, false}} {
		dir := t.TempDir()
		path := filepath.Join(dir, spool.name)
		must(t, os.WriteFile(path, nil, 0o600))
		must(t, os.Truncate(path, spool.size))
		written := time.Now().Add(-spool.days * 24 * time.Hour)
		must(t, os.Chtimes(path, written, written))
		g := with(t, "", func(c *gateway.Config) { c.SpoolDir = dir })
		r := g.Exec(t.Context(), "localhost", gateway.Command{Text: "head -c 70000000 /dev/zero", Spool: true})
		if r.Err != nil || r.Spool != "" || r.StdoutBytes != 70_000_000 {
			t.Errorf("Exec = %v, spool %q, %d bytes, want all counted and no half spool", r.Err, r.Spool, r.StdoutBytes)
		}
		left, err := os.ReadDir(dir)
		if stayed := len(left) == 1 && left[0].Name() == spool.name; err != nil || stayed != spool.stays || len(left) > 1 {
			t.Errorf("%s: left in the directory: %v, %v", spool.name, left, err)
		}
	}
}

func TestSudoPromptIsAnsweredByReference(t *testing.T) {
	sudoAsks(t)
	t.Setenv("GWTEST_SUDO", "s3cr3t")
	g := with(t, "hosts:\n  localhost: {sudo: {password: env:GWTEST_SUDO}}\n", nil)
	const asked = "[sudo] password for me: "
	ask := `printf "` + asked + `" >/dev/tty; read p </dev/tty; test "$p" = s3cr3t && echo right`
	for _, prompt := range []string{
		asked,
		"[sudo] Passwort für me: ", "[sudo] Mot de passe de me\u00a0: ", "[sudo] me jelszava: ", "[sudo] me のパスワード:", "[sudo] me 的密码：", "[судо] лозинка за корисника me: ",
		"[sudo: authenticate] Password: ", // sudo-rs
	} {
		r := g.Exec(t.Context(), "localhost", gateway.Command{Text: strings.Replace(ask, asked, prompt, 1)})
		if r.Err != nil || string(r.Stdout) != "right\n" {
			t.Errorf("%s: Exec = %q, %v, want the prompt answered", prompt, r.Stdout, r.Err)
		}
	}
	// Anything else may be a program's trick to get it.
	for _, trick := range []string{
		strings.Replace(ask, "[sudo] password for", "password of", 1),
		strings.Replace(ask, "[sudo] password", "[sudo: authenticate] Verification code", 1),
		"setpriv --reuid 65534 --regid 65534 --clear-groups sh -c '" + ask + "'",
	} {
		r := g.Exec(t.Context(), "localhost", gateway.Command{Text: trick})
		if gateway.Code(r.Err) != "cmd.needs_input" || r.Verdict != session.Interrupted || !strings.Contains(r.Err.Error(), "me: ") && !strings.Contains(r.Err.Error(), "does not run as root") {
			t.Errorf("%s: Exec = %s, %v, want cmd.needs_input", trick, r.Verdict, r.Err)
		}
	}
}

// sudoAsks passes over a test in which commands ask as sudo does, which runs as root.
func sudoAsks(t *testing.T) {
	if os.Getuid() != 0 {
		sshdtest.Skip(t, "what asks as sudo does runs as root")
	}
}

// Three wrong passwords lock an account.
func TestSudoPasswordIsTypedOnce(t *testing.T) {
	sudoAsks(t)
	t.Setenv("GWTEST_SUDO", "s3cr3t")
	g := with(t, "hosts:\n  localhost: {sudo: {password: env:GWTEST_SUDO}}\n", nil)
	for name, refusal := range map[string]string{"refused": `echo "Sorry, try again." >/dev/tty`, "asked by another sudo, perhaps": ":"} {
		r := g.Exec(t.Context(), "localhost", gateway.Command{Text: `for i in 1 2 3; do printf "[sudo] password for me: " >/dev/tty; read p </dev/tty; echo "got $p"; ` + refusal + `; done`})
		if gateway.Code(r.Err) != "cmd.needs_input" || string(r.Stdout) != "got s3cr3t\n" || !strings.Contains(r.Err.Error(), "sudo.password was given once, and the same is asked again") {
			t.Errorf("%s: Exec = %q, %v, want cmd.needs_input after the first", name, r.Stdout, r.Err)
		}
	}
}

func TestPersonAnswers(t *testing.T) {
	g := with(t, "", func(c *gateway.Config) {
		c.Ask = func(_ context.Context, q gateway.Question) (string, error) {
			if q.Kind != gateway.AskCommand || q.Host != "localhost" || q.Prompt != "name? " || q.Echo {
				t.Errorf("asked %+v", q)
			}
			return "bob", nil
		}
	})
	r := g.Exec(t.Context(), "localhost", gateway.Command{Text: `printf "name? " >/dev/tty; read n </dev/tty; echo "$n"`})
	if r.Err != nil || string(r.Stdout) != "bob\n" {
		t.Errorf("Exec = %q, %v", r.Stdout, r.Err)
	}
}

func TestErrorsBeforeAnythingIsReached(t *testing.T) {
	g := with(t, `
hosts:
  web1: {addr: 127.0.0.1, port: 1, identity: env:GWTEST_NOT_SET}
  a: {addr: 127.0.0.1, port: 1, identity: /nonexistent, jump: "me@localhost"}
`, nil)
	for name, test := range map[string]struct{ host, code string }{
		"unknown host":         {"wbe1", "inventory.unknown_host"},
		"unset secret":         {"web1", "secret.unreadable"},
		"this machine as jump": {"a", "inventory.invalid"},
	} {
		r := g.Exec(t.Context(), test.host, gateway.Command{Text: "true"})
		if gateway.Code(r.Err) != test.code || r.Verdict != session.NotStarted || gateway.Hint(r.Err) == "" && test.code != "inventory.invalid" {
			t.Errorf("%s: Exec = %s, %v (%s), want not_started and %s", name, r.Verdict, r.Err, gateway.Code(r.Err), test.code)
		}
	}
	if r := g.Exec(t.Context(), "localhost", gateway.Command{Text: "true", Session: gateway.Options{User: "nobody-else"}}); gateway.Code(r.Err) != "usage" {
		t.Errorf("Exec as another user of this machine = %v, want usage", r.Err)
	}
}

func TestResultInJSON(t *testing.T) {
	started := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)
	for _, test := range []struct {
		name   string
		result gateway.Result
		want   string
	}{
		{"not started", gateway.Result{
			ID: "1", Host: "web1", Command: "a > b && c", Err: errors.New("x"),
			Result: session.Result{Verdict: session.NotStarted, ExitCode: -1, Streams: session.Split},
		}, `{"schema":"gateway.result/v1","id":"1","host":"web1","user":"","transport":"","session":"","shell":"","command":"a > b && c",` +
			`"verdict":"not_started","exit_code":null,"signal":null,"stdout":"","stderr":"","terminal":"","streams":"split",` +
			`"stdout_bytes":0,"stderr_bytes":0,"truncated":false,"spool":null,"spool_stderr":null,"background":false,"cwd":"","started_at":null,"duration_ms":0,"connect_ms":0,` +
			`"error":{"code":"internal","message":"x","hint":""}}`},
		{"signaled, with bytes that are no text", gateway.Result{
			ID: "1", Host: "web1", User: "deploy", Transport: "ssh", Session: "s-1", Shell: "/usr/bin/bash", Command: "x", Connect: 1500 * time.Millisecond,
			Result: session.Result{
				Verdict: session.Signaled, ExitCode: 137, Signal: "KILL", Stdout: []byte("\x00\x01\xff"), Stderr: []byte("ü"), Terminal: []byte("\xff"), Streams: session.Merged,
				StdoutBytes: 3, StderrBytes: 2, Truncated: true, Spool: "/s", SpoolStderr: "/s.stderr", Background: true, Cwd: "/srv", Started: started, Duration: 2 * time.Second,
			},
		}, `{"schema":"gateway.result/v1","id":"1","host":"web1","user":"deploy","transport":"ssh","session":"s-1","shell":"bash","command":"x",` +
			`"verdict":"signaled","exit_code":137,"signal":"KILL","stdout_base64":"AAH/","stderr":"ü","terminal_base64":"/w==","streams":"merged",` +
			`"stdout_bytes":3,"stderr_bytes":2,"truncated":true,"spool":"/s","spool_stderr":"/s.stderr","background":true,"cwd":"/srv","started_at":"2026-01-02T03:04:05.678901Z","duration_ms":2000,"connect_ms":1500,` +
			`"error":null}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b bytes.Buffer
			encoder := json.NewEncoder(&b)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(test.result); err != nil || strings.TrimSpace(b.String()) != test.want {
				t.Errorf("got  %s\nwant %s\n%v", b.String(), test.want, err)
			}
		})
	}
}

func TestResultSurvivesJSON(t *testing.T) {
	for _, want := range []gateway.Result{
		{Result: session.Result{Verdict: session.NotStarted, ExitCode: -1, Streams: session.Split}, Err: &transport.Error{Code: "tcp.refused", Message: "refused", Hint: "look"}},
		{ID: "01J", Host: "web1", Shell: "bash", Command: "a > b", Result: session.Result{
			Verdict: session.Exited, ExitCode: 0, Streams: session.Split, Cwd: "/srv",
			Stdout: []byte("a\xffb"), Stderr: []byte("é"), StdoutBytes: 3, StderrBytes: 2, Truncated: true, Spool: "/x", SpoolStderr: "/y",
			Started: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), Duration: 1500 * time.Millisecond,
		}},
	} {
		text, err := json.Marshal(want)
		var got gateway.Result
		if err != nil || json.Unmarshal(text, &got) != nil {
			t.Fatalf("%s: %v", text, err)
		}
		again, err := json.Marshal(got)
		if err != nil || !bytes.Equal(again, text) {
			t.Errorf("read back:\n%s\nwant:\n%s", again, text)
		}
		if gateway.Code(got.Err) != gateway.Code(want.Err) || !got.Started.Equal(want.Started) || !bytes.Equal(got.Stdout, want.Stdout) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}
