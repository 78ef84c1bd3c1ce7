package integration

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
)

// crowdScript has the mishaps in its second step.
const crowdScript = `name: crowd
steps:
  - name: before
    run: echo fine
  - name: mishap
    timeout: 5s
    run: |
      ` + mishaps + `
  - name: after
    run: echo over
always:
  - name: tidy
    run: echo tidied
`

// scripted is what comes of the seven in a script: the outcome of the host, the
// step that failed, the verdict and the code of that, and what the view says.
var scripted = map[string]struct{ outcome, verdict, code, said, summary string }{
	"web010": {"failed", "exited", "script.failed", "exit status 3", "mishap (line 8)"},
	"web020": {"timed_out", "timed_out", "cmd.timeout", "after its timeout of 5s", "mishap (line 8), cmd.timeout"},
	"web030": {"not_started", "", "tcp.refused", "connection refused", "tcp.refused"},
	"web040": {"not_started", "", "hostkey.changed", "host key of web040", "hostkey.changed"},
	"web050": {"not_started", "", "ssh.handshake", "within 1s", "ssh.handshake"},
	"web060": {"failed", "signaled", "script.failed", "died of signal KILL", "mishap (line 8)"},
	"web070": {"unknown", "unknown", "link.lost", "link lost", "mishap (line 8), link.lost"},
}

type scriptedResult struct {
	Host, Outcome string
	Error         *struct{ Code string }
	Steps         []struct {
		Name, Outcome, Verdict string
		ExitCode               int `json:"exit_code"`
		Error                  *struct{ Code string }
	}
}

// checkScripted compares the results with what is rigged, and their order.
func checkScripted(t *testing.T, names []string, results []scriptedResult) {
	t.Helper()
	if len(results) != len(names) {
		t.Fatalf("%d results", len(results))
	}
	for i, r := range results {
		if want := names[i]; r.Host != want {
			t.Fatalf("%s in the place of %s", r.Host, want)
		}
		want, rigged := scripted[r.Host]
		if !rigged {
			for _, s := range r.Steps {
				if len(r.Steps) != 4 || s.Outcome != "ok" || r.Outcome != "ok" {
					t.Errorf("%+v, want ok", r)
				}
			}
			continue
		}
		got := r.Error
		if want.verdict != "" {
			if len(r.Steps) != 4 {
				t.Errorf("%+v, want %s", r, want.verdict)
				continue
			}
			s := r.Steps[1]
			got = s.Error
			if s.Verdict != want.verdict || s.Outcome != want.outcome || r.Steps[0].Outcome != "ok" || r.Steps[2].Outcome != "skipped" {
				t.Errorf("%+v, want %s", r, want.verdict)
			}
			if r.Host == "web010" && s.ExitCode != 3 || r.Host == "web060" && s.ExitCode != 137 {
				t.Errorf("%s: status %d", r.Host, s.ExitCode)
			}
		}
		if r.Outcome != want.outcome || got == nil || got.Code != want.code {
			t.Errorf("%+v (%+v), want %s, %s", r, got, want.outcome, want.code)
		}
	}
}

// A script says of a hundred hosts what a command does.
func TestCrowdRunsScript(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	file := c.user.write(t, "crowd.yaml", crowdScript)
	junit, report := c.user.write(t, "junit.xml", ""), c.user.write(t, "report.json", "")
	t.Run("live", func(t *testing.T) {
		o := c.call(t, "run", file, "--on", "web*", "--report", "junit="+junit, "--report", "json="+report)
		if o.status != 5 || !strings.Contains(o.stderr, "gateway: 93 of 100 hosts ok in ") {
			t.Errorf("status %d, want 5:\n%s", o.status, o.stderr)
		}
		for i := 1; i <= crowdSize; i++ {
			host := fmt.Sprintf("web%03d", i)
			want, rigged := scripted[host]
			if !rigged {
				if !strings.Contains(o.stdout, host+"  ok          4/4  tidy  (") || strings.Contains(o.stderr, host) {
					t.Errorf("%s is not ok:\n%s", host, o.stdout)
				}
				continue
			}
			spelled := strings.ReplaceAll(want.outcome, "_", " ")
			if n := strings.Count(o.stdout, fmt.Sprintf("%s  %-11s", host, spelled)); n != 1 {
				t.Errorf("%d lines on what went wrong on %s:\n%s", n, host, o.stdout)
			}
			for line := range strings.SplitSeq(o.stdout, "\n") {
				if strings.HasPrefix(line, fmt.Sprintf("%s  %-11s", host, spelled)) && !strings.Contains(line, want.said) {
					t.Errorf("%q, want %s", line, want.said)
				}
			}
			if !strings.Contains(o.stderr+"\n", fmt.Sprintf("\n  %s  %-11s  %s\n", host, spelled, want.summary)) {
				t.Errorf("no %s, %s in the summary:\n%s", host, want.summary, o.stderr)
			}
		}
	})
	t.Run("selector", func(t *testing.T) { c.selectsRigged(t) })
	t.Run("junit", func(t *testing.T) {
		var suites struct {
			Suites []struct {
				Name  string `xml:"name,attr"`
				Cases []struct {
					Name    string `xml:"name,attr"`
					Failure *struct {
						Type string `xml:"type,attr"`
					} `xml:"failure"`
					Error *struct {
						Type string `xml:"type,attr"`
					} `xml:"error"`
				} `xml:"testcase"`
			} `xml:"testsuite"`
		}
		if err := xml.Unmarshal(mustRead(t, junit), &suites); err != nil || len(suites.Suites) != crowdSize {
			t.Fatalf("%v, %d suites", err, len(suites.Suites))
		}
		for _, s := range suites.Suites {
			var said []string
			for _, c := range s.Cases {
				if c.Failure != nil {
					said = append(said, c.Failure.Type)
				}
				if c.Error != nil {
					said = append(said, c.Error.Type)
				}
			}
			want := "[]"
			if r, rigged := scripted[s.Name]; rigged {
				want = "[" + r.code + "]"
			}
			if got := fmt.Sprint(said); got != want {
				t.Errorf("%s: %s, want %s", s.Name, got, want)
			}
		}
	})
	t.Run("json", func(t *testing.T) {
		var reported, shown []scriptedResult
		must(t, json.Unmarshal(mustRead(t, report), &reported))
		var all []string
		for i := 1; i <= crowdSize; i++ {
			all = append(all, fmt.Sprintf("web%03d", i))
		}
		checkScripted(t, all, reported)
		o := c.call(t, "run", file, "--on", some, "-o", "json")
		if err := json.Unmarshal([]byte(o.stdout), &shown); err != nil || o.status != 5 {
			t.Fatalf("%d, %v", o.status, err)
		}
		checkScripted(t, someNames(), shown)
	})
	t.Run("jsonl", func(t *testing.T) {
		o := c.call(t, "run", file, "--on", some, "-o", "jsonl")
		results := map[string]scriptedResult{}
		var counts map[string]int
		for line := range strings.Lines(o.stdout) {
			var e struct {
				Event  string
				Result *scriptedResult
				Counts map[string]int
				Status int
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			if e.Event == "result" {
				results[e.Result.Host] = *e.Result
			}
			if counts = e.Counts; e.Event == "summary" && e.Status != 5 {
				t.Errorf("status %d, want 5", e.Status)
			}
		}
		var ordered []scriptedResult
		for _, name := range someNames() {
			ordered = append(ordered, results[name])
		}
		checkScripted(t, someNames(), ordered)
		if counts["ok"] != 23 || counts["failed"] != 2 || counts["timed_out"] != 1 || counts["not_started"] != 3 || counts["unknown"] != 1 {
			t.Errorf("counts %v", counts)
		}
	})
}
