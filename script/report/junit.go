// Package report writes what a script did for those who read it: JUnit for CI
// servers, annotations for GitHub.
package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/internal/phrase"
	"gateway/script"
)

// The elements of JUnit's XML as Jenkins and GitLab read it; see junit-10.xsd of
// Jenkins' xUnit plugin.
type suites struct {
	XMLName  xml.Name `xml:"testsuites"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Time     seconds  `xml:"time,attr"`
	Suites   []suite  `xml:"testsuite"`
}

type suite struct {
	Name      string     `xml:"name,attr"`
	Tests     int        `xml:"tests,attr"`
	Failures  int        `xml:"failures,attr"`
	Errors    int        `xml:"errors,attr"`
	Skipped   int        `xml:"skipped,attr"`
	Time      seconds    `xml:"time,attr"`
	Timestamp string     `xml:"timestamp,attr,omitempty"`
	Hostname  string     `xml:"hostname,attr"`
	Cases     []testcase `xml:"testcase"`
}

type testcase struct {
	Name    string  `xml:"name,attr"`
	Class   string  `xml:"classname,attr"`
	Time    seconds `xml:"time,attr"`
	Skipped *ending `xml:"skipped"`
	Error   *ending `xml:"error"`
	Failure *ending `xml:"failure"`
	Out     *body   `xml:"system-out"`
	Err     *body   `xml:"system-err"`
}

// A body is text that is escaped already: encoding/xml would write every newline
// as &#xA;, which no one can read.
type body struct {
	Text string `xml:",innerxml"`
}

var newlines = strings.NewReplacer("&#xA;", "\n", "&#x9;", "\t")

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a builder takes everything
	return newlines.Replace(b.String())
}

func bodyOf(text string) *body {
	if text == "" {
		return nil
	}
	return &body{escaped(text)}
}

type ending struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",innerxml"`
}

type seconds time.Duration

func (s seconds) MarshalXMLAttr(name xml.Name) (xml.Attr, error) {
	return xml.Attr{Name: name, Value: fmt.Sprintf("%.3f", time.Duration(s).Seconds())}, nil
}

// JUnit writes one testsuite per host, with one testcase per step. A failure is
// a step that did not do what was expected; an error is one of which that can't
// be said.
func JUnit(w io.Writer, name string, results []script.Result) error {
	all := suites{Name: phrase.Plain(name)}
	for i := range results {
		s := suiteOf(&results[i])
		all.Suites = append(all.Suites, s)
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
		all.Time = max(all.Time, s.Time) // hosts are worked on at the same time
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func suiteOf(r *script.Result) suite {
	s := suite{Name: r.Host, Hostname: r.Host, Time: seconds(r.Duration)}
	if !r.Started.IsZero() {
		s.Timestamp = r.Started.UTC().Format("2006-01-02T15:04:05")
	}
	// Jenkins takes what is before the last dot for the package, and GitLab tells
	// testcases apart by class and name.
	undotted := strings.NewReplacer(".", "_")
	class := undotted.Replace(phrase.Plain(r.Script)) + "." + undotted.Replace(r.Host)
	if r.Err != nil {
		s.Cases = append(s.Cases, hostCase(r, class))
	}
	for i := range r.Steps {
		s.Cases = append(s.Cases, caseOf(&r.Steps[i], class))
	}
	distinct(s.Cases)
	s.Tests = len(s.Cases)
	for _, c := range s.Cases {
		switch {
		case c.Error != nil:
			s.Errors++
		case c.Failure != nil:
			s.Failures++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
	return s
}

// distinct gives testcases names of their own: of several with one name, as steps
// without a name may be, GitLab counts and shows the last.
func distinct(cases []testcase) {
	taken := make(map[string]bool, len(cases))
	for i := range cases {
		name := cases[i].Name
		for n := 2; taken[cases[i].Name]; n++ {
			cases[i].Name = fmt.Sprintf("%s (%d)", name, n)
		}
		taken[cases[i].Name] = true
	}
}

// hostCase is what kept steps from being run and is no step's.
func hostCase(r *script.Result, class string) testcase {
	c := testcase{Name: "connect", Class: class, Time: seconds(r.Connect)}
	if slices.ContainsFunc(r.Steps, func(s script.StepResult) bool { return s.Outcome != fleet.Skipped }) {
		c.Name, c.Time = string(r.Outcome), 0 // it did
	}
	if why := endingOf(r.Err, ""); r.Outcome == fleet.Skipped {
		c.Skipped = why
	} else {
		c.Error = why
	}
	return c
}

func caseOf(s *script.StepResult, class string) testcase {
	errs := phrase.Plain(s.Stderr)
	if len(s.Terminal) > 0 {
		errs += "\n[on the terminal]\n" + phrase.Plain(s.Terminal)
	}
	c := testcase{
		Name: phrase.Plain(s.Name), Class: class, Time: seconds(s.Duration),
		Out: bodyOf(phrase.Plain(s.Stdout)), Err: bodyOf(errs),
	}
	if s.Copy != nil {
		c.Out = bodyOf(phrase.Plain(s.Copy.String()))
	}
	switch {
	case s.Ignored:
		c.Skipped = endingOf(s.Err, "")
		c.Skipped.Message = "failed, which is allowed: " + c.Skipped.Message
	case s.Outcome == fleet.Skipped:
		c.Skipped = &ending{Message: phrase.Plain(s.Reason)}
	case s.Outcome == fleet.Failed:
		c.Failure = endingOf(s.Err, detail(s))
	case s.Outcome != fleet.OK:
		c.Error = endingOf(s.Err, detail(s))
	}
	return c
}

// detail is what GitLab shows of a failure: the text of the element alone.
func detail(s *script.StepResult) string {
	text := fmt.Sprintf("step at line %d, outcome %s\n", s.Line, s.Outcome)
	if s.Copy != nil {
		text += phrase.Plain(s.Command) + "\n" + phrase.Plain(s.Copy.String()) + "\n"
	}
	for _, stream := range []struct {
		name  string
		bytes []byte
	}{{"stdout", s.Stdout}, {"stderr", s.Stderr}, {"terminal", s.Terminal}} {
		if len(stream.bytes) > 0 {
			text += "--- " + stream.name + "\n" + last(phrase.Plain(stream.bytes), 8<<10) + "\n"
		}
	}
	return text
}

// last returns the last lines of a text, or the end of the last one, at most limit
// bytes of them.
func last(text string, limit int) string {
	text = strings.TrimRight(text, "\n")
	if len(text) <= limit {
		return text
	}
	text = text[len(text)-limit:]
	if _, whole, ok := strings.Cut(text, "\n"); ok {
		text = whole
	}
	return "[…]\n" + strings.ToValidUTF8(text, "") // of a line, the end
}

func endingOf(err error, text string) *ending {
	e := &ending{Type: gateway.Code(err)}
	if err != nil {
		e.Message = phrase.Plain(err.Error())
		text = e.Message + "\n" + text
	}
	if hint := gateway.Hint(err); hint != "" {
		text += "hint: " + phrase.Plain(hint) + "\n"
	}
	e.Text = escaped(text)
	return e
}
