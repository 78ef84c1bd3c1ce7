package runs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/gateway"
	"gateway/internal/redact"
	"gateway/runs"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func begin(t *testing.T, s runs.Store, names ...string) *runs.Journal {
	t.Helper()
	j, err := s.Begin("exec", "web*", "curl -H 'hunter22'", names, redact.New("hunter22").String)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestJournal(t *testing.T) {
	s := runs.Store{Dir: filepath.Join(t.TempDir(), "runs")}
	j := begin(t, s, "a", "b", "c", "d")

	r, err := s.Load("last")
	if err != nil || r.ID != j.ID() || !r.Running || r.EndedAt != nil || r.Status != nil || r.Counts()["pending"] != 4 {
		t.Fatalf("at the beginning: %+v, %v", r, err)
	}
	j.Started(0)
	j.Started(1)
	j.Started(2)
	j.Done(0, runs.Host{Host: "a", Outcome: "ok", Verdict: "exited"})
	j.Done(1, runs.Host{Host: "b", Outcome: "timed_out", Verdict: "timed_out", Error: &runs.Error{Code: "cmd.timeout", Message: "said hunter22"}})
	must(t, j.Close(4))
	must(t, j.Close(0)) // whoever comes second
	r, err = s.Load(j.ID()[:12])
	if err != nil || r.EndedAt == nil || r.Running || *r.Status != 4 || r.Selector != "web*" || r.Command != "curl -H '********'" || r.Hosts[1].Error.Message != "said ********" {
		t.Errorf("at the end: %+v, %v", r, err)
	}
	for _, test := range []struct{ outcomes, want string }{
		{"", "a b c d"}, {"ok", "a"}, {"failed", "b c"}, {"failed skipped", "b c d"}, {"unknown", "c"}, {"skipped", "d"}, {"timed_out ok", "a b"}, {"interrupted", ""},
	} {
		got, err := s.Hosts("last", strings.Fields(test.outcomes))
		if err != nil || strings.Join(got, " ") != test.want {
			t.Errorf("%s: %v, %v, want %s", test.outcomes, got, err, test.want)
		}
	}
	must(t, j.Correct(141))
	if again, err := s.Load(j.ID()); err != nil || *again.Status != 141 || !again.EndedAt.Equal(*r.EndedAt) || again.Counts()["skipped"] != 1 {
		t.Errorf("corrected: %+v, %v", again, err)
	}
	for _, mode := range []struct {
		path string
		want os.FileMode
	}{{s.Dir, 0o700}, {filepath.Join(s.Dir, j.ID()+".json"), 0o600}} {
		if info, err := os.Stat(mode.path); err != nil || info.Mode().Perm() != mode.want {
			t.Errorf("%s: %v, %v, want %v", mode.path, info.Mode(), err, mode.want)
		}
	}
	if entries, _ := os.ReadDir(s.Dir); len(entries) != 1 {
		t.Errorf("%v in the directory, want one file", entries)
	}
}

// A secret that is cut off is none that a mask would know.
func TestMaskBeforeCut(t *testing.T) {
	s := runs.Store{Dir: t.TempDir()}
	long := strings.Repeat("x", 4092) + "hunter22" + strings.Repeat("x", 100)
	j, err := s.Begin("exec", "web*", long, []string{"a"}, redact.New("hunter22").String)
	if err != nil {
		t.Fatal(err)
	}
	j.Done(0, runs.Host{Host: "a", Error: &runs.Error{Code: "internal", Message: long}})
	must(t, j.Close(1))
	r, err := s.Load("last")
	if err != nil || len(r.Command) > 4100 || strings.Contains(r.Command, "hunt") || strings.Contains(r.Hosts[0].Error.Message, "hunt") {
		t.Errorf("%v: remembered %d bytes: …%s, %s", err, len(r.Command), r.Command[4080:], r.Hosts[0].Error.Message[4080:])
	}
}

func TestLoadSaysWhy(t *testing.T) {
	s := runs.Store{Dir: t.TempDir()}
	if _, err := s.Load("last"); gateway.Code(err) != "selector.invalid" {
		t.Errorf("without a run: %v", err)
	}
	if _, err := (runs.Store{}).Load("last"); gateway.Code(err) != "selector.invalid" || !strings.Contains(gateway.Hint(err), "XDG_STATE_HOME") {
		t.Errorf("without a place for runs: %v, hint %q", err, gateway.Hint(err))
	}
	a, b := begin(t, s, "a"), begin(t, s, "a")
	for _, name := range []string{"01", "nope", "../x", ""} {
		if _, err := s.Load(name); gateway.Code(err) != "selector.invalid" {
			t.Errorf("Load(%q) = %v, want selector.invalid", name, err)
		}
	}
	if r, err := s.Load("last"); err != nil || r.ID != b.ID() {
		t.Errorf("last is %s, %v, want %s", r.ID, err, b.ID())
	}
	if r, err := s.Load(strings.ToLower(a.ID())); err != nil || r.ID != a.ID() {
		t.Errorf("by id: %s, %v, want %s", r.ID, err, a.ID())
	}
	must(t, os.WriteFile(filepath.Join(s.Dir, b.ID()+".json"), []byte(`{"sch`), 0o600))
	for _, name := range []string{b.ID(), "last"} { // nothing was tried: as if there were none
		if _, err := s.Load(name); gateway.Code(err) != "selector.invalid" || !strings.Contains(err.Error(), b.ID()) {
			t.Errorf("a damaged record by %s: %v", name, err)
		}
	}
}

// What can't be looked at selects nothing, as what is not there.
func TestUnreadableDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	s := runs.Store{Dir: filepath.Join(file, "runs")}
	_, err := s.IDs()
	_, byName := s.Load("last")
	for _, err := range []error{err, byName} {
		if gateway.Code(err) != "selector.invalid" || !strings.Contains(err.Error(), s.Dir+": not a directory") || gateway.Hint(err) == "" {
			t.Errorf("got %s: %v, hint %q, want selector.invalid", gateway.Code(err), err, gateway.Hint(err))
		}
	}
}

// A clock that is set back does not make an old run the last one.
func TestLastAfterAClockJump(t *testing.T) {
	s := runs.Store{Dir: t.TempDir()}
	ahead := ulid.MustNew(ulid.Timestamp(time.Now().Add(time.Hour)), ulid.DefaultEntropy()).String()
	must(t, s.Save(runs.Record{ID: ahead}))
	for range 3 {
		j := begin(t, s, "a")
		if r, err := s.Load("last"); err != nil || r.ID != j.ID() {
			t.Errorf("last is %s, %v, want %s", r.ID, err, j.ID())
		}
	}
}

func TestBounds(t *testing.T) {
	s := runs.Store{Dir: t.TempDir()}
	old := begin(t, s, "a")
	long := time.Now().Add(-40 * 24 * time.Hour)
	must(t, os.Chtimes(filepath.Join(s.Dir, old.ID()+".json"), long, long))
	for i := range 1010 { // names that sort before those of today
		name := fmt.Sprintf("0%025d.json", i)
		must(t, os.WriteFile(filepath.Join(s.Dir, name), nil, 0o600))
	}
	latest := begin(t, s, "a")
	ids, err := s.IDs()
	if err != nil || len(ids) != 999 || ids[0] != latest.ID() || slices.Contains(ids, old.ID()) {
		t.Errorf("%d runs are left, %v", len(ids), err)
	}
	if ids, err := (runs.Store{}).IDs(); len(ids) != 0 || err != nil {
		t.Errorf("nowhere: %v, %v", ids, err)
	}
}
