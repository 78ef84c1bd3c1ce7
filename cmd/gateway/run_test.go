package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/fleet"
	"gateway/script"
	"gateway/script/report"
	"gateway/session"
)

// On many hosts, what steps wrote would fill the memory until the end.
func TestRunKeepsOutputWhereItIsWanted(t *testing.T) {
	for _, test := range []struct {
		name, format string
		reports      reports
		keeps        bool
	}{
		{name: "text", format: "text"},
		{name: "events", format: "jsonl"},
		{name: "a report of events", format: "text", reports: reports{files: []reportFile{{kind: "jsonl"}}}},
		{name: "JSON", format: "json", keeps: true},
		{name: "a report as JUnit", format: "text", reports: reports{files: []reportFile{{kind: "jsonl"}, {kind: "junit"}}}, keeps: true},
		{name: "a report as JSON", format: "jsonl", reports: reports{files: []reportFile{{kind: "json"}}}, keeps: true},
		{name: "GitHub", format: "text", reports: reports{github: &report.GitHub{}}, keeps: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &scriptRun{app: &app{out: &output{format: test.format}}, reports: &test.reports}
			step := script.StepResult{Name: "one", Stdout: []byte("out"), Stderr: []byte("err"), Terminal: []byte("tty"), StdoutBytes: 3, ExitCode: 2}
			got := r.kept(script.Result{Host: "web1", Steps: []script.StepResult{step}})
			s, want := got.Steps[0], ""
			if test.keeps {
				want = "outerrtty"
			}
			if output := slices.Concat(s.Stdout, s.Stderr, s.Terminal); string(output) != want {
				t.Errorf("%q is kept, want %q", output, want)
			}
			if got.Host != "web1" || s.Name != "one" || s.StdoutBytes != 3 || s.ExitCode != 2 {
				t.Errorf("the rest is %+v", got)
			}
		})
	}
}

// A record has the first failure of a host, also of a step that could not begin.
func TestRememberedScript(t *testing.T) {
	ran := func(outcome fleet.Outcome, exit int, err error) script.StepResult {
		return script.StepResult{Outcome: outcome, Verdict: session.Exited, ExitCode: exit, Attempts: 1, Err: err}
	}
	first, later := errors.New("first"), errors.New("later")
	unbegun := script.StepResult{Outcome: fleet.Failed, Verdict: session.NotStarted, ExitCode: -1, Err: first}
	skipped := script.StepResult{Outcome: fleet.Skipped, Verdict: session.NotStarted, ExitCode: -1}
	ignored := ran(fleet.Failed, 4, later)
	ignored.Ignored = true
	for _, test := range []struct {
		name  string
		err   error
		steps []script.StepResult
		want  string
	}{
		{"all is well", nil, []script.StepResult{ran(fleet.OK, 3, nil), skipped}, "exited 3 "},
		{"one failed, and one under always", nil, []script.StepResult{ran(fleet.Failed, 1, first), skipped, ran(fleet.Failed, 7, later)}, "exited 1 first"},
		{"one that was ignored", nil, []script.StepResult{ignored, ran(fleet.Failed, 1, first)}, "exited 1 first"},
		{"one could not begin", nil, []script.StepResult{ran(fleet.OK, 3, nil), unbegun, skipped, ran(fleet.Failed, 7, later)}, "not_started - first"},
		{"not reached", first, []script.StepResult{skipped}, "not_started - first"},
		{"interrupted between two", first, []script.StepResult{ran(fleet.OK, 0, nil), skipped, ran(fleet.Failed, 7, later)}, "exited 7 first"},
	} {
		got := rememberedScript(script.Result{Err: test.err, Steps: test.steps})
		exit, why := "-", ""
		if got.ExitCode != nil {
			exit = fmt.Sprint(*got.ExitCode)
		}
		if got.Error != nil {
			why = got.Error.Message
		}
		if text := fmt.Sprintf("%s %s %s", got.Verdict, exit, why); text != test.want {
			t.Errorf("%s: %q, want %q", test.name, text, test.want)
		}
	}
}

// Before anything runs, a signal is what it is anywhere else.
func TestSignalBeforeAnythingRuns(t *testing.T) {
	home := t.TempDir()
	up := filepath.Join(home, "up")
	write(t, filepath.Join(home, "s.yaml"), "secrets: {s: 'cmd:touch "+up+"; sleep 60'}\nsteps:\n  - {name: one, run: 'true'}\n")
	report := filepath.Join(home, "report")
	must(t, syscall.Mkfifo(report, 0o600))
	write(t, filepath.Join(home, "r.yaml"), "secrets: {s: 'cmd:touch "+up+"; echo word'}\nsteps:\n  - {name: one, run: 'true'}\n")
	for _, test := range []struct {
		name string
		args []string
	}{
		{"a script on stdin", []string{"exec", "localhost", "--script", "-"}},
		{"a script for many on stdin", []string{"exec", "localhost,localhost", "--script", "-"}},
		{"a secret of a command", []string{"run", filepath.Join(home, "s.yaml"), "--on", "localhost", "--log-level", "info", "--log-file", filepath.Join(home, "log")}},
		{"a report that nobody reads", []string{"run", filepath.Join(home, "r.yaml"), "--on", "localhost", "--report", "junit=" + report, "--log-level", "info", "--log-file", filepath.Join(home, "log")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_ = os.RemoveAll(up)
			cmd := exec.Command("gateway", test.args...)
			cmd.Env = environ(home)
			var errs bytes.Buffer
			cmd.Stderr = &errs
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			must(t, cmd.Start())
			if test.args[0] == "run" {
				appears(t, up) // the secret's command runs
			} else if _, err := in.Write(bytes.Repeat([]byte("#\n"), 64<<10)); err != nil { // more than a pipe holds: it is being read
				t.Fatal(err)
			}
			send(t, cmd, syscall.SIGINT)
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 || errs.String() != "gateway: cmd.interrupted: gateway was told to stop (interrupt)\n" {
				t.Errorf("%v, %s, want 130", err, &errs)
			}
			if test.args[0] != "run" { // the others have not read their settings yet
				return
			}
			if log, err := os.ReadFile(filepath.Join(home, "log")); err != nil || !bytes.Contains(log, []byte(`msg="ended by a signal" error="`)) {
				t.Errorf("%v, the log has %q, want what the signal has kept from being done", err, log)
			}
		})
	}
}

// A host that was still being reached when the run was ended is skipped, as one that
// was never tried.
func TestScriptEndedWhileConnecting(t *testing.T) {
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	home := t.TempDir()
	reached := filepath.Join(home, "reached")
	go func() { // ends with the listener, or with the connection that comes
		if conn, err := hole.Accept(); err == nil {
			defer conn.Close()
			_ = os.WriteFile(reached, nil, 0o600)
			_, _ = io.Copy(io.Discard, conn)
		}
	}()
	write(t, filepath.Join(home, ".config/gateway/config.yaml"), "ssh_config: off\nno_daemon: true\n")
	write(t, filepath.Join(home, ".config/gateway/hosts.yaml"), fmt.Sprintf("hosts:\n  hole: {addr: 127.0.0.1, port: %d}\n", hole.Addr().(*net.TCPAddr).Port))
	write(t, filepath.Join(home, "s.yaml"), "steps:\n  - {name: one, run: 'until [ -e "+reached+" ]; do sleep 0.01; done; false'}\n")
	status, out, errs := call(t, home, "run", filepath.Join(home, "s.yaml"), "--on", "localhost,hole", "--fail-fast", "-o", "jsonl")
	if status != 6 || !strings.Contains(out, `"counts":{"failed":1,"skipped":1}`) {
		t.Errorf("got %d, %s%s, want 6 and one host skipped", status, out, errs)
	}
	if _, out, _ := call(t, home, "hosts", "list", "run:last/failed"); strings.Contains(out, "hole") {
		t.Errorf("failed are %s, want localhost alone", out)
	}
}

// One event may send its signal twice: timeout does, and the end of a terminal, of which
// the shell there tells as well as the kernel. What is under always runs all the same.
func TestSignalSentTwice(t *testing.T) {
	for _, test := range []struct {
		name, before string
		send         func(p *person) error
	}{
		{"by timeout", "exec timeout 60 ", func(p *person) error { return p.cmd.Process.Signal(syscall.SIGTERM) }},
		{"as the terminal goes", "", func(p *person) error { return errors.Join(p.terminal.Close(), p.far.Close()) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			home := t.TempDir()
			up, ended := filepath.Join(home, "up"), filepath.Join(home, "ended")
			write(t, filepath.Join(home, "s.yaml"), "steps:\n  - {name: one, run: ': >"+up+"; sleep 60'}\nalways:\n  - {name: two, run: 'sleep 0.2; : >"+ended+"'}\n")
			p := starts(t, home, "bash", "--norc", "-i")
			p.press(test.before + "gateway run " + filepath.Join(home, "s.yaml") + " --on localhost\r")
			appears(t, up)
			must(t, test.send(p))
			appears(t, ended)
		})
	}
}

// What is under always does not wait for who reads nothing of the output or of a report,
// nor does the end.
func TestAlwaysWithoutAReader(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, flag, value, first string }{
		{"text", "-o", "text", "out|"},
		{"jsonl", "-o", "jsonl", `"event":"stdout"`},
		{"report junit", "--report", "junit=", "<?xml"},
		{"report jsonl", "--report", "jsonl=", `"event":"stdout"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			ended := filepath.Join(home, "ended")
			write(t, filepath.Join(home, "s.yaml"), "steps:\n  - name: one\n    run: (trap '' INT QUIT TERM; seq 1 100000)\nalways:\n  - {name: two, run: ': >"+ended+"'}\n")
			out, in, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			cmd := exec.Command("gateway", "run", "-v", filepath.Join(home, "s.yaml"), "--on", "localhost", test.flag, test.value)
			cmd.Env = environ(home)
			var errs bytes.Buffer
			if test.flag == "--report" {
				cmd.Args[len(cmd.Args)-1] += "/dev/fd/3"
				cmd.ExtraFiles, cmd.Stderr = []*os.File{in}, &errs
			} else {
				cmd.Stdout, cmd.Stderr = in, in
			}
			must(t, cmd.Start())
			in.Close()
			for lines, line := bufio.NewReader(out), ""; !strings.Contains(line, test.first); { // from there on, more than fits
				if line, err = lines.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			begun := time.Now()
			send(t, cmd, syscall.SIGTERM)
			_ = cmd.Wait() // the status says it
			if _, err := os.Stat(ended); err != nil || cmd.ProcessState.ExitCode() != 143 {
				t.Errorf("status %d after %v, %v, want 143 and what is under always", cmd.ProcessState.ExitCode(), time.Since(begun), err)
			}
			if want := "gateway: output.failed: report: write /dev/fd/3: nobody reads it\n"; test.flag == "--report" && !strings.Contains(errs.String(), want) {
				t.Errorf("stderr is %s, want %s", &errs, want)
			}
		})
	}
}
