package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A run is told from one that is gone, and what it knew is not gone with it.
func TestRunIsKilled(t *testing.T) {
	t.Parallel()
	inventory := "hosts:\n"
	for i := range 4 {
		inventory += fmt.Sprintf("  web%02d: {transport: local, shell: sh, env: {NAME: web%02[1]d}}\n", i+1)
	}
	home := homeWith(t, inventory)
	up := filepath.Join(home, "up")
	cmd := exec.Command("gateway", "exec", "web*", "-f", "1", "--",
		"case $NAME in web02) exit 3;; web03) sh -c 'echo $$ >"+up+"; exec sleep 60';; esac")
	cmd.Env = environ(home)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	sleep := pidIn(t, up)

	const started = `"started_at":"`
	show := func(wants ...string) {
		t.Helper()
		status, stdout, stderr := call(t, home, "runs", "show", "last", "-o", "json")
		rest := stdout
		for _, want := range wants {
			_, after, ok := strings.Cut(rest, want)
			if !ok {
				t.Errorf("%d, %s%s, want %s in it, in this order", status, stdout, stderr, want)
			}
			rest = after
		}
	}
	show(`"ended_at":null,"running":true,"status":null`, `"web01","outcome":"ok"`, started, `"web02","outcome":"failed"`, `"exit_code":3`, `"web03","outcome":"running"`, `"web04","outcome":"pending"`)
	if status, stdout, stderr := call(t, home, "runs", "list"); status != 0 || !strings.Contains(stdout, " 4      1       running  web* ") {
		t.Errorf("%d, %s%s, want a run of 4 hosts that runs, and 1 not ok", status, stdout, stderr)
	}
	for _, selector := range []string{"run:last/failed", "run:last", "web01,run:last/ok"} {
		for _, args := range [][]string{{"exec", selector, "--dry-run", "--", "true"}, {"exec", selector, "--", "true"}, {"hosts", "list", selector}} {
			status, stdout, stderr := call(t, home, args...)
			if status != 2 || stdout != "" || !strings.HasPrefix(stderr, "gateway: usage: run 0") || !strings.Contains(stderr, "\nhint: gateway runs show 0") {
				t.Errorf("%q: %d, %s%s, want to be refused with a hint", args, status, stdout, stderr)
			}
		}
	}

	must(t, cmd.Process.Kill())
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Fatal(err)
	}
	show(`"ended_at":null,"running":false,"status":null`, `"web01","outcome":"ok"`, started, `"web02","outcome":"failed"`, `"exit_code":3`, `"web03","outcome":"unknown"`, `"web04","outcome":"skipped","verdict":"not_started"`)
	for selector, want := range map[string]string{"run:last/failed": "web02 web03", "run:last/skipped": "web04", "run:last/ok": "web01"} {
		status, stdout, stderr := call(t, home, "exec", selector, "--dry-run", "-o", "json", "--", "true")
		var planned []struct{ Host string }
		err := json.Unmarshal([]byte(stdout), &planned)
		var names []string
		for _, p := range planned {
			names = append(names, p.Host)
		}
		if got := strings.Join(names, " "); err != nil || status != 0 || got != want {
			t.Errorf("%s: %d, %s%s, want %s", selector, status, stdout, stderr, want)
		}
	}
	isGone(t, sleep)
}

// A run in which the clock was set back has taken no negative time.
func TestRunBehindAClockSetBack(t *testing.T) {
	t.Parallel()
	home := homeWith(t, "hosts:\n  web01: {transport: local}\n  web02: {transport: local}\n")
	if status, stdout, stderr := call(t, home, "exec", "web*", "--", "true"); status != 0 {
		t.Fatalf("%d, %s%s", status, stdout, stderr)
	}
	files, err := filepath.Glob(filepath.Join(home, ".local", "state", "gateway", "runs", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var record map[string]any
	must(t, json.Unmarshal(data, &record))
	record["started_at"] = time.Now().Add(time.Hour)
	if data, err = json.Marshal(record); err == nil {
		err = os.WriteFile(files[0], data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if status, stdout, stderr := call(t, home, "runs", "show", "last"); status != 0 || !strings.Contains(stdout, ", after 0s\n") {
		t.Errorf("%d, %s%s, want that it took no time", status, stdout, stderr)
	}
}
