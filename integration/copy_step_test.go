package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
)

// copyUser is a person with a directory, and two hosts that are one server.
func copyUser(t *testing.T) *deploy {
	t.Helper()
	d := &deploy{t: t, dir: t.TempDir(), password: "c0rrect horse'\"$", secret: "t0ken+with=odd&chars"}
	d.server = sshdtest.Start(t, sshdtest.Options{Addresses: 2})
	text := "hosts:\n"
	for i := range 2 {
		home := d.home(i + 1)
		must(t, os.Mkdir(home, 0o755))
		text += fmt.Sprintf("  web%d: {addr: 127.0.0.%[1]d, port: %d, user: %s, identity: %q, agent: false, host_key_policy: accept-new, cwd: %[5]q}\n", i+1, d.server.Port, d.server.User, d.server.KeyFile, home)
	}
	d.file("hosts.yaml", text)
	return d
}

// proxy returns a link that is put before the first host.
func (d *deploy) proxy(delay time.Duration) *netsim.Proxy {
	d.t.Helper()
	p := netsim.Start(d.t, d.server.Addr, delay)
	port := func(n int) string { return fmt.Sprintf("port: %d", n) }
	d.file("hosts.yaml", strings.Replace(d.read("hosts.yaml"), port(d.server.Port), port(p.Port()), 1))
	return p
}

func (d *deploy) mkdir(name string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Join(d.dir, name), 0o755); err != nil {
		d.t.Fatal(err)
	}
}

type copyResults []struct {
	Host, Outcome string
	Steps         []struct {
		Name, Outcome, Verdict, Command, Stderr string
		Attempts                                int
		ExitCode                                *int `json:"exit_code"`
		Error                                   *struct{ Code, Message, Hint string }
		Copy                                    *struct {
			Direction, Src, Dst, Via      string
			Files, Directories, Unchanged int64
			Failed, Bytes                 int64
		}
	}
}

func (d *deploy) copies(text string, args ...string) (int, copyResults, string) {
	d.t.Helper()
	d.mkdir("ci")
	d.file("ci/copy.yaml", text)
	status, stdout, stderr := d.run(append([]string{"run", "ci/copy.yaml", "--on", "web[1-2]", "-o", "json"}, args...)...)
	var results copyResults
	if err := json.Unmarshal([]byte(stdout), &results); err != nil && status != 2 {
		d.t.Fatalf("status %d, %v: %s%s", status, err, stdout, stderr)
	}
	return status, results, stderr
}

// As with cp, dir/. is what is in a directory, also beside the script.
func TestCopyContents(t *testing.T) {
	d := copyUser(t)
	d.mkdir("ci/conf/sub")
	d.file("ci/conf/sub/b", "bbb")
	status, results, stderr := d.copies(`
steps:
  - run: mkdir there
  - copy: {src: conf/., dst: there, recursive: true}
  - run: test -f there/sub/b && test ! -e there/conf
`)
	if status != 0 || len(results) != 2 || results[0].Steps[2].Outcome != "ok" {
		t.Fatalf("status %d: %+v\n%s", status, results, stderr)
	}
}

// A script copies to two hosts and back, beside its own file.
func TestCopySteps(t *testing.T) {
	d := copyUser(t)
	d.mkdir("ci/conf/sub")
	d.file("ci/app.tgz", "an archive")
	d.file("ci/conf/a", "aa")
	d.file("ci/conf/sub/b", "bbb")
	d.file("ci/conf/sub/b.tmp", "left out")
	must(t, os.Symlink("../a", filepath.Join(d.dir, "ci/conf/sub/c")))
	d.file("token", d.secret)
	status, results, stderr := d.copies(`
vars: {base: releases}
secrets: {token: file:../token}
steps:
  - run: mkdir -p releases && cd releases
  - name: upload
    copy: {src: app.tgz, dst: "${{ host }}.tgz", mode: "0600"}
  - copy: {src: conf, dst: ., recursive: true, links: follow, exclude: ["*.tmp"]}
    cwd: ..
  - name: again
    copy: {src: app.tgz, dst: "${{ host }}.tgz", checksum: true}
  - name: left out
    when: test -e nope
    copy: {src: app.tgz, dst: nope}
  - run: |
      test "$(cat "$PWD/"*.tgz)" = "an archive"
      test -f ../conf/sub/b && test ! -e ../conf/sub/b.tmp
      mkdir -p "$token"; pwd
    register: where
always:
  - name: logs
    fetch: {src: "${{ where }}/../conf/sub/*", dst: "logs/${{ host }}/"}
  - name: secret
    copy: {src: app.tgz, dst: "${{ token }}/x"}
`, "--report", "junit=junit.xml", "--report", "jsonl=report.jsonl", "--report", "github")
	if status != 0 || len(results) != 2 {
		t.Fatalf("status %d: %+v\n%s", status, results, stderr)
	}
	for i, r := range results {
		up, conf, again, skipped, logs := r.Steps[1], r.Steps[2], r.Steps[3], r.Steps[4], r.Steps[6]
		home := d.home(i + 1)
		if c := up.Copy; c == nil || c.Direction != "to_host" || c.Via != "sftp" || c.Files != 1 || c.Bytes != 10 || c.Dst != fmt.Sprintf("%s/releases/web%d.tgz", home, i+1) || up.Verdict != "exited" || up.ExitCode != nil {
			t.Errorf("upload: %+v, %+v", up, c)
		}
		if c := conf.Copy; c == nil || c.Files != 3 || c.Bytes != 7 || conf.Name != "copy conf" {
			t.Errorf("directory: %+v, %+v", conf, c)
		}
		if c := again.Copy; c == nil || c.Files != 0 || c.Unchanged != 1 {
			t.Errorf("again: %+v, %+v", again, c)
		}
		if skipped.Outcome != "skipped" || skipped.Copy != nil {
			t.Errorf("when: %+v", skipped)
		}
		if c := logs.Copy; c == nil || c.Direction != "from_host" || c.Files != 2 || c.Bytes != 5 {
			t.Errorf("fetch: %+v, %+v", logs, c)
		}
		if got := d.read(fmt.Sprintf("ci/logs/web%d/b", i+1)); got != "bbb" {
			t.Errorf("fetched %q", got)
		}
		info, err := os.Stat(filepath.Join(home, "releases", fmt.Sprintf("web%d.tgz", i+1)))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode: %v, %v", info, err)
		}
	}
	junit := d.read("junit.xml")
	if !strings.Contains(junit, "<system-out>files: 1, bytes: 10</system-out>") {
		t.Errorf("no counts in\n%s", junit)
	}
	all, _ := json.Marshal(results)
	for name, sink := range map[string]string{"junit": junit, "jsonl": d.read("report.jsonl"), "json": string(all), "stderr": stderr, "log": d.read("log")} {
		d.clean(name, sink)
	}
	if _, plan, _ := d.run("run", "ci/copy.yaml", "--on", "web1", "--dry-run"); !strings.Contains(plan, "copy "+d.dir+"/ci/app.tgz -> web1:web1.tgz, mode 0600\n") || !strings.Contains(plan, "copy web1:${{ where }}/../conf/sub/* -> "+d.dir+"/ci/logs/web1/\n") {
		t.Errorf("dry run:\n%s", plan)
	}
	if _, text, _ := d.run("run", "ci/copy.yaml", "--on", "web1"); !strings.Contains(text, "  1 file, 10 B\n") || strings.Contains(text, "t0ken") {
		t.Errorf("text:\n%s", text)
	}
}

// What can't be copied from here, or would be overwritten here, is found before
// anything runs.
func TestCopyStepsAreLookedAtBefore(t *testing.T) {
	t.Parallel()
	d := copyUser(t)
	d.mkdir("ci/dir")
	d.file("token", d.secret)
	for _, test := range []struct{ name, step, want string }{
		{"missing", "copy: {src: nope, dst: x}", "ci/copy.yaml:5:17: step b: copy: src: " + d.dir + "/ci/nope: no such file or directory"},
		{"missing in always", "run: 'true'\nalways:\n  - copy: {src: nope, dst: x}", "ci/copy.yaml:7:17: step copy nope: copy: src: "},
		{"directory", "copy: {src: dir, dst: x}", "ci/copy.yaml:5:17: step b: copy: src: " + d.dir + "/ci/dir is a directory"},
		{"special", "copy: {src: /dev/null, dst: x}", "/dev/null is neither a file nor a directory"},
		{"secret", "copy: {src: \"${{ token }}\", dst: x}", d.dir + "/ci/********: no such file or directory"},
		{"same place", "fetch: {src: x, dst: logs/}", "ci/copy.yaml:5:26: step b: fetch: dst: what comes from web1 and from web2 would go to the same place, " + d.dir + "/ci/logs/x"},
		{"same directory", "fetch: {src: 'x*', dst: logs/}", "would go to the same place, " + d.dir + "/ci/logs"},
		{"same contents", "fetch: {src: '${{ host }}/.', dst: dir, recursive: true}", "would go to the same place, " + d.dir + "/ci/dir"},
		{"same file, whatever it is", "run: echo x\n    register: r\n  - fetch: {src: '${{ r }}', dst: logs/x}", "would go to the same place, " + d.dir + "/ci/logs/x"},
		{"same file", "fetch: {src: '${{ host }}', dst: logs/x}", "would go to the same place, " + d.dir + "/ci/logs/x"},
	} {
		for _, args := range [][]string{nil, {"--check"}} {
			status, _, stderr := d.copies("secrets: {token: file:../token}\nsteps:\n  - run: touch begun\n  - name: b\n    "+test.step+"\n", args...)
			if status != 2 || !strings.Contains(stderr, test.want) || strings.Contains(stderr, "t0ken") {
				t.Errorf("%s: status %d, want 2 and %s:\n%s", test.name, status, test.want, stderr)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(d.home(1), "begun")); err == nil {
		t.Error("a step has run")
	}
	// Files of different names go into one directory.
	status, _, stderr := d.copies("steps:\n  - run: echo one >web1; echo two >web2\n  - fetch: {src: \"./${{ host }}\", dst: logs/}\n  - fetch: {src: \"${{ host }}\", dst: dir}\n")
	if status != 0 {
		t.Errorf("status %d: %s", status, stderr)
	}
	for _, dir := range []string{"logs/", "dir/"} {
		if one, two := d.read("ci/"+dir+"web1"), d.read("ci/"+dir+"web2"); one != "one\n" || two != "two\n" {
			t.Errorf("%s has %q and %q", dir, one, two)
		}
	}
	// What an earlier step brings, or registers, is not known.
	status, _, stderr = d.copies("steps:\n  - run: echo x >x; echo dir\n    register: r\n  - fetch: {src: x, dst: \"got/${{ host }}\"}\n  - copy: {src: \"got/${{ host }}\", dst: y}\n  - run: cmp x y\n  - copy: {src: \"${{ r }}\", dst: z, recursive: true}\n")
	if status != 0 {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// A copy that fails fails its step, and says why.
func TestCopyStepFails(t *testing.T) {
	d := copyUser(t)
	d.mkdir("ci")
	d.file("ci/x", "x")
	status, results, stderr := d.copies(`
steps:
  - run: mkdir -p dir && touch file
    register: nothing
  - name: ignored
    fetch: {src: none, dst: "got/${{ host }}"}
    on_fail: continue
    retry: {times: 2}
  - name: no directory
    copy: {src: x, dst: nowhere/x}
  - run: echo over
always:
  - name: into a file
    copy: {src: x, dst: file/}
    on_fail: continue
  - name: empty
    copy: {src: x, dst: "${{ nothing }}"}
    on_fail: continue
  - run: echo tidied
`)
	if status != 1 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	for _, r := range results {
		for i, want := range []struct{ outcome, verdict, code string }{
			{"ok", "exited", ""},
			{"failed", "exited", "file.not_found"},
			{"failed", "exited", "file.not_found"},
			{"skipped", "not_started", ""},
			{"failed", "exited", "file.not_directory"},
			{"failed", "not_started", "script.invalid"},
			{"ok", "exited", ""},
		} {
			s, code := r.Steps[i], ""
			if s.Error != nil {
				code = s.Error.Code
			}
			if s.Outcome != want.outcome || s.Verdict != want.verdict || code != want.code {
				t.Errorf("%s: %+v (%+v), want %v", s.Name, s, s.Error, want)
			}
		}
		if r.Steps[1].Attempts != 3 {
			t.Errorf("%d attempts, want 3", r.Steps[1].Attempts)
		}
	}
}

// A link that is cut while it copies leaves an unknown outcome, and ends the
// script there; a copy that takes too long has timed out. Nothing has the name.
func TestCopyStepIsCut(t *testing.T) {
	t.Parallel()
	d := copyUser(t)
	proxy := d.proxy(0)
	d.mkdir("ci")
	large := mustRead(t, largeFile(t, 40<<20))
	d.file("ci/large", string(large))
	proxy.Truncate(netsim.Up, 5<<20, netsim.RST)
	status, results, stderr := d.copies("steps:\n  - copy: {src: large, dst: large}\n    on_fail: continue\n  - run: echo over\n")
	if status != 5 || len(results) != 2 {
		t.Fatalf("status %d, want 5: %s", status, stderr)
	}
	for i, want := range []string{"unknown unknown skipped", "ok exited ok"} {
		first, second := results[i].Steps[0], results[i].Steps[1]
		if got := first.Outcome + " " + first.Verdict + " " + second.Outcome; got != want {
			t.Errorf("%s: %s (%+v), want %s", results[i].Host, got, first.Error, want)
		}
	}
	if e := results[0].Steps[0].Error; e == nil || e.Code != "link.lost" {
		t.Errorf("error %+v, want link.lost", e)
	}
	if _, err := os.Stat(filepath.Join(d.home(1), "large")); err == nil {
		t.Error("the half has the name of the whole")
	}
	proxy.Truncate(netsim.Up, -1, netsim.RST)
	status, results, stderr = d.copies("steps:\n  - run: 'rm -f large*'\n  - copy: {src: large, dst: large}\n    timeout: 50ms\n  - run: echo over\nalways:\n  - run: test ! -e large\n")
	if status != 4 {
		t.Fatalf("status %d, want 4: %s", status, stderr)
	}
	for _, r := range results {
		if c := r.Steps[1]; c.Outcome != "timed_out" || c.Verdict != "timed_out" || c.Error.Code != "cmd.timeout" || r.Steps[2].Outcome != "skipped" || r.Steps[3].Outcome != "ok" {
			t.Errorf("%s: %+v", r.Host, r.Steps)
		}
	}
}

// A copy that is told to end as a file gets its name, and whose link is lost then,
// may have written it.
func TestCopyIsInterruptedInDoubt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	renaming := filepath.Join(dir, "renaming")
	write(t, filepath.Join(dir, "mv"), "#!/bin/sh\n: >"+renaming+"\nexec sleep 60\n", 0o700)
	s := sshdtest.Start(t, sshdtest.Options{NoSftp: true, Config: []string{"SetEnv PATH=" + dir + ":" + os.Getenv("PATH")}})
	hole, err := net.Listen("tcp", "127.0.0.1:0") // nobody answers: this host ends with the signal
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	for name, args := range map[string][]string{
		"cp":       {"cp", "ci/x", "web1,hole:" + t.TempDir() + "/"},
		"a script": {"run", "ci/copy.yaml", "--on", "web1,hole"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &deploy{t: t, dir: t.TempDir()}
			proxy := netsim.Start(t, s.Addr, 0)
			d.mkdir("ci")
			d.file("ci/x", "x")
			d.file("ci/copy.yaml", "steps:\n  - {name: copy, copy: {src: x, dst: "+t.TempDir()+"/}}\n")
			d.file("hosts.yaml", fmt.Sprintf("defaults: {user: %s, addr: 127.0.0.1, identity: %q, agent: false, host_key_policy: accept-new}\nhosts:\n  web1: {port: %d}\n  hole: {port: %d}\n", s.User, s.KeyFile, proxy.Port(), hole.Addr().(*net.TCPAddr).Port))
			_ = os.Remove(renaming) // of the other one
			cmd := d.command(append(args, "-o", "jsonl")...)
			out := follow(t, cmd)
			eventually(t, "the file gets its name", func() bool { _, err := os.Stat(renaming); return err == nil })
			send(t, cmd, syscall.SIGINT)
			var told string
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if told += lines.Text() + "\n"; strings.Contains(lines.Text(), `"event":"result","host":"hole"`) {
					proxy.Cut(netsim.RST)
				}
			}
			_ = cmd.Wait()
			if !strings.Contains(told, `"counts":{"skipped":1,"unknown":1}`) || !strings.Contains(told, `"code":"link.lost"`) {
				t.Errorf("got\n%swant one outcome unknown, and the lost link", told)
			}
		})
	}
}

// A link that is lost while a test of the runner's waits leaves the outcome
// unknown, whatever the step itself has done, and ends the script there.
func TestScriptTestIsCut(t *testing.T) {
	for key, test := range map[string]string{"until": "run: 'true'\n    retry: {times: 1, delay: 1s}\n    until", "when": "run: 'true'\n    when"} {
		t.Run(key, func(t *testing.T) {
			d := copyUser(t)
			proxy := d.proxy(0)
			tests := filepath.Join(t.TempDir(), "tests")
			go func() {
				eventually(t, "the test runs", func() bool { _, err := os.Stat(tests); return err == nil })
				proxy.Cut(netsim.RST)
			}()
			status, results, stderr := d.copies("steps:\n  - " + test + ": '[ ${PWD##*/} = web2 ] || { : >" + tests + "; sleep 60; }'\n    on_fail: continue\n  - run: echo over\n")
			if status != 5 || len(results) == 0 {
				t.Fatalf("status %d, want 5: %s", status, stderr)
			}
			first, second := results[0].Steps[0], results[0].Steps[1]
			if first.Outcome != "unknown" || first.Error == nil || first.Error.Code != "link.lost" || second.Outcome != "skipped" {
				t.Errorf("%+v (%+v), then %s; want unknown and skipped", first, first.Error, second.Outcome)
			}
		})
	}
}

// A link that is lost on the way to a step leaves no doubt about the step.
func TestWayToAStepIsCut(t *testing.T) {
	d := copyUser(t)
	proxy := d.proxy(0)
	way := filepath.Join(t.TempDir(), "way")
	go func() {
		eventually(t, "it is on the way", func() bool { _, err := os.Stat(way); return err == nil })
		proxy.Cut(netsim.RST)
	}()
	status, results, stderr := d.copies("steps:\n  - run: 'case $PWD in */web2) ;; *) cd() { : >" + way + "; sleep 60; };; esac'\n  - {run: echo b, cwd: /usr}\n")
	if status != 1 || len(results) != 2 {
		t.Fatalf("status %d, want 1: %s", status, stderr)
	}
	step := results[0].Steps[1]
	if step.Outcome != "failed" || step.Verdict != "not_started" || step.Error == nil || step.Error.Code != "link.lost" {
		t.Errorf("%+v (%+v), want failed and not_started", step, step.Error)
	}
}

// A step that may run again does so once its host is back, and not only if that is
// so at once; where it never comes back, the outcome stays unknown.
func TestStepOutlivesItsLink(t *testing.T) {
	t.Parallel()
	for _, comes := range []bool{true, false} {
		t.Run(fmt.Sprint("comes back: ", comes), func(t *testing.T) {
			d := copyUser(t)
			proxy := d.proxy(0)
			ran := filepath.Join(t.TempDir(), "ran")
			go func() {
				eventually(t, "the step runs", func() bool { _, err := os.Stat(ran); return err == nil })
				proxy.Truncate(netsim.Up, 0, netsim.RST)
				before := proxy.Conns()
				proxy.Cut(netsim.RST)
				eventually(t, "it is tried again", func() bool { return proxy.Conns() > before+1 })
				if comes {
					proxy.Truncate(netsim.Up, -1, netsim.RST)
				}
			}()
			times := 100
			if !comes {
				times = 2
			}
			status, results, stderr := d.copies(fmt.Sprintf("steps:\n  - run: '[ ${PWD##*/} = web2 ] || [ -e %[1]s ] || { : >%[1]s; sleep 60; }'\n    idempotent: true\n    retry: {times: %d, delay: 100ms}\n", ran, times))
			if len(results) == 0 {
				t.Fatalf("status %d: %s", status, stderr)
			}
			step := results[0].Steps[0]
			switch {
			case comes && (status != 0 || step.Outcome != "ok" || step.Attempts != 2):
				t.Errorf("status %d, %+v (%+v), want 0 and two attempts", status, step, step.Error)
			case !comes && (status != 5 || step.Outcome != "unknown" || step.Verdict != "unknown" || step.Attempts != 1 || step.Error.Code != "link.lost" || !strings.Contains(step.Error.Message, "the next attempt could not begin: ")):
				t.Errorf("status %d, %+v (%+v), want 5 and why there was no other attempt", status, step, step.Error)
			}
		})
	}
}

// Where there is no sftp the shell does it, and the session goes on; on this
// machine the files are just there.
func TestCopyStepWays(t *testing.T) {
	d := &deploy{t: t, dir: t.TempDir()}
	d.mkdir("ci")
	d.file("ci/x", "x")
	s := sshdtest.Start(t, sshdtest.Options{NoSftp: true})
	d.file("hosts.yaml", fmt.Sprintf("hosts:\n  web1: {addr: 127.0.0.1, port: %d, user: %s, identity: %q, agent: false, host_key_policy: accept-new, cwd: %q}\n  web2: {transport: local, cwd: %q}\n", s.Port, s.User, s.KeyFile, t.TempDir(), t.TempDir()))
	status, results, stderr := d.copies("steps:\n  - run: mkdir sub; cd sub\n  - copy: {src: x, dst: y}\n  - run: 'test \"$(cat y)\" = x; echo z >z'\n  - fetch: {src: ../sub/z, dst: \"${{ host }}\"}\n  - copy: {src: x, dst: ./}\n  - run: test -f x\n")
	if status != 0 || len(results) != 2 {
		t.Fatalf("status %d: %+v %s", status, results, stderr)
	}
	for i, via := range []string{"shell", "local"} {
		for _, step := range []int{1, 3, 4} {
			if c := results[i].Steps[step].Copy; c == nil || c.Via != via || c.Files != 1 {
				t.Errorf("%s: %+v, want by %s", results[i].Host, c, via)
			}
		}
		if got := d.read("ci/" + results[i].Host); got != "z\n" {
			t.Errorf("fetched %q", got)
		}
	}
}

// follow starts a command that ends with the test, and returns what it writes.
func follow(t *testing.T, cmd *exec.Cmd) io.Reader {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return out
}

// A signal ends the copy, and what is under always runs on the same connection.
func TestCopyStepIsInterrupted(t *testing.T) {
	d := copyUser(t)
	d.proxy(20 * time.Millisecond)
	d.mkdir("ci")
	d.file("ci/large", "")
	must(t, os.Truncate(filepath.Join(d.dir, "ci/large"), 4<<30))
	d.file("ci/copy.yaml", "steps:\n  - name: large\n    copy: {src: large, dst: large}\n  - run: echo over\nalways:\n  - name: left\n    run: ls -A\n")
	cmd := d.command("run", "ci/copy.yaml", "--on", "web1", "-o", "jsonl")
	out := follow(t, cmd)
	var ends []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var e struct {
			Event, Step string
			StepResult  *struct {
				Outcome, Verdict, Stdout string
				Error                    *struct{ Code string }
			} `json:"step_result"`
		}
		must(t, json.Unmarshal(lines.Bytes(), &e))
		switch {
		case e.Event == "start" && e.Step == "large":
			send(t, cmd, syscall.SIGINT)
		case e.StepResult != nil && e.StepResult.Error != nil:
			ends = append(ends, e.Step+" "+e.StepResult.Outcome+" "+e.StepResult.Verdict+" "+e.StepResult.Error.Code)
		case e.StepResult != nil:
			ends = append(ends, e.Step+" "+e.StepResult.Outcome+" "+e.StepResult.Stdout)
		}
	}
	_ = cmd.Wait() // the status says it
	if got, want := strings.Join(ends, ", "), "large interrupted interrupted cmd.interrupted, echo over skipped , left ok "; got != want || cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("status %d, %q, want 130, %q", cmd.ProcessState.ExitCode(), got, want)
	}
}
