package runs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gateway/gateway"
	"gateway/runs"
)

// outcomes says of each host of a run how it went.
func outcomes(t *testing.T, s runs.Store) string {
	t.Helper()
	r, err := s.Load("last")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, h := range r.Hosts {
		all = append(all, h.Host+" "+h.Outcome+" "+h.Verdict)
	}
	return strings.Join(all, ", ")
}

// killed returns what a kill would leave of the runs of a store: the files without
// the locks.
func killed(t *testing.T, s runs.Store) runs.Store {
	t.Helper()
	left := runs.Store{Dir: t.TempDir()}
	must(t, os.CopyFS(left.Dir, os.DirFS(s.Dir)))
	return left
}

func TestProgress(t *testing.T) {
	s := runs.Store{Dir: filepath.Join(t.TempDir(), "runs")}
	j := begin(t, s, "a", "b", "c", "d")
	j.Started(0)
	j.Started(1)
	j.Done(1, runs.Host{Host: "b", Outcome: "timed_out", Verdict: "timed_out", Error: &runs.Error{Code: "cmd.timeout", Message: "said hunter22"}})
	j.Started(2)
	j.Done(0, runs.Host{Host: "a", Outcome: "ok", Verdict: "exited"})

	// As long as it runs, it is no selection.
	if got, want := outcomes(t, s), "a ok exited, b timed_out timed_out, c running running, d pending not_started"; got != want {
		t.Errorf("while it runs: %s, want %s", got, want)
	}
	if r, err := s.Load("last"); err != nil || !r.Running || r.EndedAt != nil || strings.Join(r.With([]string{"failed"}), " ") != "b" || r.Bad() != 1 {
		t.Errorf("while it runs: %+v, %v", r, err)
	}
	for _, which := range []string{"", "ok", "failed"} {
		if names, err := s.Hosts("last", strings.Fields(which)); gateway.Code(err) != "usage" || !strings.Contains(gateway.Hint(err), "gateway runs show "+j.ID()) || len(names) > 0 {
			t.Errorf("while it runs, %q selects %v, %v, want a usage error", which, names, err)
		}
	}

	left := killed(t, s)
	if got, want := outcomes(t, left), "a ok exited, b timed_out timed_out, c unknown unknown, d skipped not_started"; got != want {
		t.Errorf("killed: %s, want %s", got, want)
	}
	if r, err := left.Load("last"); err != nil || r.Running || r.EndedAt != nil || r.Status != nil || r.Hosts[1].Error.Message != "said ********" {
		t.Errorf("killed: %+v, %v", r, err)
	}
	for which, want := range map[string]string{"failed": "b c", "skipped": "d", "ok": "a", "unknown": "c"} {
		if names, err := left.Hosts("last", []string{which}); err != nil || strings.Join(names, " ") != want {
			t.Errorf("killed, %s selects %v, %v, want %s", which, names, err, want)
		}
	}
	// Beside the next run it stays as it is.
	must(t, begin(t, left, "a").Close(0))
	if r, err := left.Load(j.ID()); err != nil || r.Counts()["skipped"] != 1 || r.Counts()["ok"] != 1 {
		t.Errorf("killed, and another behind it: %+v, %v", r, err)
	}

	file := filepath.Join(s.Dir, j.ID()+".progress")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the progress is %v, %v, want 0600", info, err)
	}
	must(t, j.Close(5))
	if got, want := outcomes(t, s), "a ok exited, b timed_out timed_out, c unknown unknown, d skipped not_started"; got != want {
		t.Errorf("at the end: %s, want %s", got, want)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("at the end the progress is still there: %v", err)
	}
}

// Whatever stands in the file, nothing is said of a host that was not seen.
func TestProgressIsDamaged(t *testing.T) {
	for _, test := range []struct {
		name, want string
		damage     func(text string) string
	}{
		{"not", "a ok, b unknown, c skipped", func(text string) string { return text }},
		{"a torn line", "a unknown, b unknown, c skipped", func(text string) string { return text[:len(text)-5] }},
		{"a torn line and more", "a ok, b unknown, c skipped", func(text string) string { return text + "{\"n\":2,\"we\n" }},
		{"hosts that are none", "a ok, b unknown, c skipped", func(text string) string { return text + "{\"n\":3}\n{\"n\":-1}\n" }},
		{"another boot", "a ok, b unknown, c unknown", func(text string) string { return strings.Replace(text, `"boot":"`, `"boot":"x`, 1) }},
		{"a line that could not be written", "a ok, b unknown, c unknown", func(text string) string { return "-" + text[1:] }},
		{"empty", "a unknown, b unknown, c unknown", func(string) string { return "" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := runs.Store{Dir: t.TempDir()}
			j := begin(t, s, "a", "b", "c")
			j.Started(0)
			j.Started(1)
			j.Done(0, runs.Host{Host: "a", Outcome: "ok", Verdict: "exited"})
			s = killed(t, s)
			file := filepath.Join(s.Dir, j.ID()+".progress")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			must(t, os.WriteFile(file, []byte(test.damage(string(text))), 0o600))
			r, err := s.Load("last")
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("a %s, b %s, c %s", r.Hosts[0].Outcome, r.Hosts[1].Outcome, r.Hosts[2].Outcome)
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// A record as it was when a run told nothing before its end.
func TestRecordWithoutProgress(t *testing.T) {
	s := runs.Store{Dir: t.TempDir()}
	const id = "01M7ZHS0014HYS8ZKKXEA1HYEM"
	text := `{"schema":"gateway.run/v1","id":"` + id + `","verb":"exec","selector":"web*","command":"true","started_at":"2026-11-21T11:09:40.436004Z","ended_at":null,"status":null,"hosts":[` +
		`{"host":"a","outcome":"unknown","verdict":"unknown","exit_code":null,"signal":null,"started_at":null,"duration_ms":0,"connect_ms":0,"error":null},` +
		`{"host":"b","outcome":"unknown","verdict":"unknown","exit_code":null,"signal":null,"started_at":null,"duration_ms":0,"connect_ms":0,"error":null}]}`
	must(t, os.WriteFile(filepath.Join(s.Dir, id+".json"), []byte(text), 0o600))
	if got, want := outcomes(t, s), "a unknown unknown, b unknown unknown"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if names, err := s.Hosts("last", []string{"failed"}); err != nil || len(names) != 2 {
		t.Errorf("failed selects %v, %v, want both", names, err)
	}
}
