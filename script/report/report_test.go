package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/fleet"
	"gateway/script"
	"gateway/script/report"
	"gateway/session"
	"gateway/transport"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func results() []script.Result {
	failed := &transport.Error{Code: "script.failed", Message: "script: line 9: exit status 3", Hint: "look at\x07 it"}
	return []script.Result{
		{
			Script: "deploy.v2", Host: "web1.example.com", Outcome: fleet.Failed, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Duration: 1234567 * time.Microsecond,
			Steps: []script.StepResult{
				{Name: "fine", Block: script.Steps, Line: 3, Outcome: fleet.OK, Stdout: []byte("\x1b[31mred\x1b[0m <&> ]]> \x00\xff\r\n10%\r20%\n\x1b]0;title\x07x\ufffe")},
				{Name: "left out", Line: 5, Outcome: fleet.Skipped, Reason: "when: test a < b"},
				{Name: "ignored", Line: 6, Outcome: fleet.Failed, Ignored: true, Err: failed},
				{Name: "broken | \"quoted\" `x`", Line: 8, FailedLine: 9, Outcome: fleet.Failed, Err: failed, Stdout: []byte("out\n```\n::error::forged\n"), Stderr: []byte("err, 100%\n"), Terminal: []byte("Password: ")},
				{Name: "slow", Line: 12, Outcome: fleet.TimedOut, Err: errors.New("a\nb")},
			},
		},
		{Script: "deploy.v2", Host: "web2", Outcome: fleet.NotStarted, Err: &transport.Error{Code: "tcp.refused", Message: "refused"}, Steps: []script.StepResult{{Name: "fine", Outcome: fleet.Skipped, Reason: "the host was not reached"}}},
		{Script: "deploy.v2", Host: "web3", Outcome: fleet.OK, Duration: 2 * time.Second, Steps: []script.StepResult{{Name: "fine", Outcome: fleet.OK, Verdict: session.Exited}}},
	}
}

// An element of the schema that Jenkins' xUnit plugin and GitLab's parser share
// (junit-10.xsd): its children, in any order, and its attributes, of which those
// with an exclamation mark are required.
var elements = map[string]struct{ children, attributes string }{
	"testsuites": {"testsuite", "name time tests failures errors"},
	"testsuite":  {"testsuite properties testcase system-out system-err", "name! tests! failures! errors! group time skipped timestamp hostname id package file log url"},
	"testcase":   {"skipped error failure rerunFailure rerunError flakyFailure flakyError system-out system-err", "name! time classname group"},
	"failure":    {"", "type message"},
	"error":      {"", "type message"},
	"skipped":    {"", "type message"},
	"system-out": {"", ""},
	"system-err": {"", ""},
}

var (
	surefireTime = regexp.MustCompile(`^(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?$`)
	number       = regexp.MustCompile(`^[0-9]+$`)
	dateTime     = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$`)
)

// conform checks a document against the table.
func conform(document []byte) error {
	decoder := xml.NewDecoder(bytes.NewReader(document))
	var open []string
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			name := token.Name.Local
			about, known := elements[name]
			if !known || len(open) == 0 && name != "testsuites" {
				return fmt.Errorf("element %s", name)
			}
			if len(open) > 0 && !slices.Contains(strings.Fields(elements[open[len(open)-1]].children), name) {
				return fmt.Errorf("%s in %s", name, open[len(open)-1])
			}
			if err := attributes(name, about.attributes, token.Attr); err != nil {
				return err
			}
			open = append(open, name)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 && elements[open[len(open)-1]].children != "" && len(bytes.TrimSpace(token)) > 0 {
				return fmt.Errorf("text %q in %s", token, open[len(open)-1])
			}
		}
	}
}

func attributes(element, allowed string, have []xml.Attr) error {
	form := map[string]*regexp.Regexp{"time": surefireTime, "tests": number, "failures": number, "errors": number, "skipped": number, "timestamp": dateTime}
	seen := map[string]bool{}
	for _, a := range have {
		name := a.Name.Local
		if seen[name] = true; !slices.Contains(strings.Fields(strings.ReplaceAll(allowed, "!", "")), name) {
			return fmt.Errorf("attribute %s of %s", name, element)
		}
		if re := form[name]; re != nil && !re.MatchString(a.Value) {
			return fmt.Errorf("%s=%q of %s", name, a.Value, element)
		}
	}
	for _, name := range strings.Fields(allowed) {
		if required, ok := strings.CutSuffix(name, "!"); ok && !seen[required] {
			return fmt.Errorf("no attribute %s of %s", required, element)
		}
	}
	return nil
}

func TestJUnit(t *testing.T) {
	var b bytes.Buffer
	must(t, report.JUnit(&b, "deploy", results()))
	if err := conform(b.Bytes()); err != nil {
		t.Errorf("%v in\n%s", err, b.Bytes())
	}
	for _, want := range []string{
		`<testsuites name="deploy" tests="8" failures="1" errors="2" time="2.000">`,
		`<testsuite name="web1.example.com" tests="5" failures="1" errors="1" skipped="2" time="1.235" timestamp="2026-01-02T03:04:05" hostname="web1.example.com">`,
		`<testcase name="fine" classname="deploy_v2.web1_example_com" time="0.000">`,
		"<system-out>red &lt;&amp;&gt; ]]&gt; \uFFFD\n10%\n20%\nx</system-out>",
		`<skipped message="when: test a &lt; b"></skipped>`,
		`<skipped message="failed, which is allowed: script: line 9: exit status 3" type="script.failed">`,
		`<failure message="script: line 9: exit status 3" type="script.failed">`,
		"--- stderr\nerr, 100%\n", "hint: look at it\n", "[on the terminal]\nPassword: ",
		`<testcase name="connect" classname="deploy_v2.web2" time="0.000">`, `<error message="refused" type="tcp.refused">`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
}

// A host that was never tried is none on which anything went wrong.
func TestNeverTried(t *testing.T) {
	all := append(results(), script.Result{
		Script: "deploy.v2", Host: "web4", Outcome: fleet.Skipped, Err: &transport.Error{Code: "cmd.interrupted", Message: "stopped: a host failed"},
		Steps: []script.StepResult{{Name: "fine", Outcome: fleet.Skipped, Reason: "not tried"}},
	})
	var b bytes.Buffer
	must(t, report.JUnit(&b, "deploy", all))
	if err := conform(b.Bytes()); err != nil {
		t.Errorf("%v in\n%s", err, b.Bytes())
	}
	for _, want := range []string{
		`<testsuite name="web4" tests="2" failures="0" errors="0" skipped="2"`,
		`<skipped message="stopped: a host failed" type="cmd.interrupted">`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := (&report.GitHub{W: &b, File: "deploy.yaml"}).Annotate(all); err != nil || strings.Contains(b.String(), "web4") {
		t.Errorf("%v, got\n%s\nwant nothing of web4", err, b.String())
	}
}

// GitLab tells testcases of a suite apart by their names, and counts those of one name
// and outcome once.
func TestStepsOfOneName(t *testing.T) {
	same := []script.Result{{
		Script: "deploy", Host: "web1", Outcome: fleet.Failed,
		Steps: []script.StepResult{
			{Name: "make", Outcome: fleet.OK}, {Name: "make", Outcome: fleet.OK}, {Name: "make (2)", Outcome: fleet.OK}, {Name: "make", Outcome: fleet.OK},
		},
	}}
	var b bytes.Buffer
	must(t, report.JUnit(&b, "deploy", same))
	for _, want := range []string{`name="make"`, `name="make (2)"`, `name="make (2) (2)"`, `name="make (3)"`} {
		if strings.Count(b.String(), "<testcase "+want+" ") != 1 {
			t.Errorf("no one testcase with %s in\n%s", want, b.String())
		}
	}
}

// A host that was interrupted between two of its steps has an error, and did connect.
func TestInterruptedBetweenSteps(t *testing.T) {
	between := []script.Result{{
		Script: "deploy", Host: "web1", Outcome: fleet.Interrupted, Err: &transport.Error{Code: "cmd.interrupted", Message: "told to stop"},
		Steps: []script.StepResult{
			{Name: "fine", Outcome: fleet.OK, Attempts: 1},
			{Name: "left", Outcome: fleet.Skipped, Reason: "interrupted"},
		},
	}}
	var b bytes.Buffer
	must(t, report.JUnit(&b, "deploy", between))
	if err := conform(b.Bytes()); err != nil {
		t.Errorf("%v in\n%s", err, b.Bytes())
	}
	for _, want := range []string{
		`<testsuite name="web1" tests="3" failures="0" errors="1" skipped="1"`,
		`<testcase name="interrupted" classname="deploy.web1" time="0.000">`,
		`<error message="told to stop" type="cmd.interrupted">`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
}

func TestGitHub(t *testing.T) {
	var b bytes.Buffer
	must(t, report.Mask(&b, map[string]string{"a": "100%\nsecond line\nxyz\n four\r"}))
	if got := b.String(); got != "::add-mask::100%25\n::add-mask::second line\n::add-mask::four\n" {
		t.Errorf("got %q", got)
	}
	b.Reset()
	g := &report.GitHub{W: &b, File: "ci/de,ploy.yaml"}
	must(t, g.Annotate(results()))
	want := "::warning file=ci/de%2Cploy.yaml,line=6,title=web1.example.com%3A ignored::script: line 9: exit status 3\n" +
		"::error file=ci/de%2Cploy.yaml,line=9,title=web1.example.com%3A broken | \"quoted\" `x`::script: line 9: exit status 3%0Aout%0A```%0A::error::forged%0Aerr, 100%25\n" +
		"::error file=ci/de%2Cploy.yaml,line=12,title=web1.example.com%3A slow::a%0Ab\n" +
		"::error file=ci/de%2Cploy.yaml,title=web2::refused\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	b.Reset()
	must(t, report.Summary(&b, "deploy", results()))
	for _, want := range []string{
		"### deploy: 1 of 3 hosts ok\n",
		"| web1.example.com | failed | 2 of 5, 1 skipped | 1.2s | broken \\| \"quoted\" \\`x\\`: script: line 9: exit status 3 |\n",
		"\n<details><summary>web1.example.com: broken | &#34;quoted&#34; `x`</summary>\n", // HTML, in which Markdown means nothing
		"````text\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// Of thousands of hosts a summary has those that fit, and first what went wrong.
func TestSummaryIsBounded(t *testing.T) {
	one := results()
	var many []script.Result
	for range 1 << 14 {
		many = append(many, one[2], one[0])
	}
	var b bytes.Buffer
	must(t, report.Summary(&b, "deploy", many))
	if b.Len() > 1<<20 || !regexp.MustCompile(`\n\| … \| \| \| \| and \d+ more \|\n`).Match(b.Bytes()) {
		t.Errorf("%d bytes, ending with %q, want a MiB at most, and how many are left out", b.Len(), b.Bytes()[b.Len()-200:])
	}
	if failed, ok := bytes.Count(b.Bytes(), []byte("| failed |")), bytes.Count(b.Bytes(), []byte("| ok |")); failed <= ok {
		t.Errorf("%d failed hosts, %d that went well, want more of those that failed", failed, ok)
	}
}

// A line that is too long has its end shown.
func TestLongLine(t *testing.T) {
	r := results()
	r[0].Steps[3].Stdout = []byte(strings.Repeat("é", 8<<10) + "the end\n")
	var b bytes.Buffer
	must(t, report.JUnit(&b, "deploy", r))
	if want := regexp.MustCompile("--- stdout\n\\[…\\]\né{900}é+the end\n"); !want.Match(b.Bytes()) {
		t.Errorf("got %.1000q, want %s", b.Bytes(), want)
	}
}

func FuzzJUnit(f *testing.F) {
	f.Add([]byte("a\x1b[0m]]>\x00"), "name")
	f.Fuzz(func(t *testing.T, out []byte, name string) {
		r := results()
		r[0].Steps[0].Stdout, r[0].Steps[3].Stderr, r[0].Steps[3].Name = out, out, name
		var b bytes.Buffer
		must(t, report.JUnit(&b, name, r))
		if err := conform(b.Bytes()); err != nil {
			t.Errorf("%v in\n%s", err, b.Bytes())
		}
	})
}
