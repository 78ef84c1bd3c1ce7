package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gateway/gateway"
	"gateway/session"
)

// An arrayOf is an array of results of as many hosts, of which all but the first
// wait for it.
type arrayOf struct {
	view
	t     *testing.T
	out   *os.File
	hosts int
}

// volume is what a host has written.
const volume = 1 << 20

func newArrayOf(t *testing.T, hosts int) *arrayOf {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	v := &arrayOf{newArrayView(newOutput(out, out, &console{}, nil)), t, out, hosts}
	for i := hosts - 1; i > 0; i-- {
		v.one(i)
	}
	return v
}

func (v *arrayOf) one(host int) {
	text := bytes.Repeat([]byte{byte('a' + host%26)}, volume)
	v.done(host, gateway.Result{Host: fmt.Sprint(host), Result: session.Result{Verdict: session.Exited, Stdout: text, StdoutBytes: volume}})
}

// results has the first host done, and returns the array and what went wrong.
func (v *arrayOf) results() ([]gateway.Result, error) {
	v.t.Helper()
	v.one(0)
	array := v.view.(*arrayView)
	errs, err := os.Create(filepath.Join(v.t.TempDir(), "errs"))
	if err != nil {
		v.t.Fatal(err)
	}
	defer errs.Close()
	s := &summary[gateway.Result]{ctx: v.t.Context(), app: &app{out: newOutput(v.out, errs, &console{}, nil)}}
	v.end(s)
	if (s.status != 0) != (array.failed != nil) {
		v.t.Errorf("the status is %d, with %v", s.status, array.failed)
	}
	text, err := os.ReadFile(v.out.Name())
	if err != nil {
		v.t.Fatal(err)
	}
	var results []gateway.Result
	if err := json.Unmarshal(text, &results); err != nil || len(results) != v.hosts {
		v.t.Fatalf("%d results in %d bytes, %v, want %d", len(results), len(text), err, v.hosts)
	}
	return results, array.failed
}

// whole looks whether a result is that of a host, with all its output.
func (v *arrayOf) whole(r gateway.Result, host int) {
	v.t.Helper()
	if r.Host != fmt.Sprint(host) || len(r.Stdout) != volume || r.Stdout[0] != byte('a'+host%26) || r.Stdout[volume-1] != r.Stdout[0] || r.Truncated || r.Err != nil {
		v.t.Errorf("in place of host %d: %s with %d bytes, truncated %v, %v", host, r.Host, len(r.Stdout), r.Truncated, r.Err)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Results that wait for a slow host take little memory, however many they are.
func TestArrayWaits(t *testing.T) {
	before := heap()
	v := newArrayOf(t, 24)
	if took := heap() - before; took > 2*resultsInMemory {
		t.Errorf("%d MiB of memory for %d results that wait", took>>20, v.hosts-1)
	}
	results, err := v.results()
	for i, r := range results {
		v.whole(r, i)
	}
	if err != nil {
		t.Error(err)
	}
	if left := v.view.(*arrayView).kept.size; left > 0 {
		t.Errorf("%d bytes are kept when none waits any more", left)
	}
}

// No result is lost for want of room on the disk, and it is told.
func TestArrayNotKept(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "nowhere"))
	v := newArrayOf(t, 12)
	results, err := v.results()
	for i, r := range results {
		v.whole(r, i)
	}
	if gateway.Code(err) != "output.failed" || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("end = %v, want output.failed with the directory that is not there", err)
	}
}

// A result that can't be read back keeps what is known beside its output.
func TestArrayNotReadBack(t *testing.T) {
	v := newArrayOf(t, 12)
	v.view.(*arrayView).kept.file.Close()
	lost := 0
	results, err := v.results()
	for i, r := range results {
		if r.Err == nil {
			v.whole(r, i)
			continue
		}
		lost++
		if r.Host != fmt.Sprint(i) || r.Verdict != session.Exited || r.StdoutBytes != volume || !r.Truncated || gateway.Code(r.Err) != "output.failed" {
			t.Errorf("host %d: %s, %s with %d bytes, truncated %v, %v", i, r.Host, r.Verdict, r.StdoutBytes, r.Truncated, r.Err)
		}
	}
	if lost == 0 || gateway.Code(err) != "output.failed" {
		t.Errorf("%d results without output, end = %v, want output.failed", lost, err)
	}
}

// What could not be kept shows in the status, and the array is whole.
func TestManyNotKept(t *testing.T) {
	t.Parallel()
	inventory := ""
	for i := range 3 {
		inventory += fmt.Sprintf("  web%d: {transport: local, shell: sh, env: {NAME: web%[1]d}}\n", i)
	}
	home := homeWith(t, "hosts:\n"+inventory)
	kept := filepath.Join(home, "kept") // has a host's file when its result is about to be shown
	waits := fmt.Sprintf("if test $NAME = web0; then until test -e %[1]s/web1.json && test -e %[1]s/web2.json; do sleep 0.01; done; fi; head -c 1000000 /dev/zero", kept)
	env := append(environ(home), "TMPDIR="+filepath.Join(home, "nowhere"))
	status, stdout, stderr := callIn(t, env, "exec", "web*", "-o", "json", "--out", kept, "--", waits)
	var results []gateway.Result
	if err := json.Unmarshal([]byte(stdout), &results); err != nil || len(results) != 3 {
		t.Fatalf("%d results, %v; %s", len(results), err, stderr)
	}
	for i, r := range results {
		if r.Host != fmt.Sprint("web", i) || len(r.Stdout) != 1000000 || r.Err != nil {
			t.Errorf("result %d: %s with %d bytes, %v", i, r.Host, len(r.Stdout), r.Err)
		}
	}
	if status != statusFailed || !strings.Contains(stderr, "gateway: output.failed: results that wait for their turn: ") {
		t.Errorf("status %d, %s, want %d and output.failed", status, stderr, statusFailed)
	}
}
