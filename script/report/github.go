package report

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"strings"
	"time"

	"gateway/fleet"
	"gateway/internal/phrase"
	"gateway/internal/redact"
	"gateway/script"
)

// Mask makes the runner of GitHub Actions mask secrets wherever they come from.
// It writes them: use it only where a runner reads that.
func Mask(w io.Writer, secrets map[string]string) error {
	for _, secret := range secrets {
		lines := redact.Lines(secret)
		if lines == nil {
			lines = []string{secret}
		}
		for _, line := range lines {
			if _, err := fmt.Fprintf(w, "::add-mask::%s\n", data(line)); err != nil {
				return err
			}
		}
	}
	return nil
}

// GitHub writes workflow commands: lines that the runner of GitHub Actions obeys
// wherever they stand in a step's output.
type GitHub struct {
	W io.Writer
	// File is the script's path in the repository.
	File string
}

// Annotate writes an annotation for each step that failed, and for each host
// that was not reached.
func (g *GitHub) Annotate(results []script.Result) error {
	var b strings.Builder
	for i := range results {
		r := &results[i]
		if r.Err != nil && r.Outcome != fleet.Skipped {
			fmt.Fprintf(&b, "::error file=%s,title=%s::%s\n", property(g.File), property(r.Host), data(phrase.Plain(r.Err.Error())))
		}
		for j := range r.Steps {
			s := &r.Steps[j]
			level := "error"
			switch {
			case s.Ignored:
				level = "warning"
			case !s.Failed():
				continue
			}
			message := string(s.Outcome)
			if s.Err != nil {
				message = phrase.Plain(s.Err.Error())
			}
			if output := last(phrase.Plain(append(append([]byte(nil), s.Stdout...), s.Stderr...)), 1<<10); output != "" {
				message += "\n" + output
			}
			fmt.Fprintf(&b, "::%s file=%s,line=%d,title=%s::%s\n", level, property(g.File), cmp.Or(s.FailedLine, s.Line), property(r.Host+": "+phrase.Plain(s.Name)), data(message))
		}
	}
	_, err := io.WriteString(g.W, b.String())
	return err
}

// data and property quote as the toolkit's command.ts does.
func data(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func property(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(data(s))
}

// maxSummary keeps a step's summary below what GitHub takes, 1 MiB.
const maxSummary = 900 << 10

// Summary writes Markdown for the page of the workflow's run.
func Summary(w io.Writer, name string, results []script.Result) error {
	var b strings.Builder
	good := 0
	for i := range results {
		if results[i].Outcome == fleet.OK {
			good++
		}
	}
	fmt.Fprintf(&b, "### %s: %d of %d hosts ok\n\n| host | result | steps | time | |\n|---|---|---|---|---|\n", cell(name), good, len(results))
	left := 0
	for i := range results {
		r := &results[i]
		// What went well makes room for what did not.
		if b.Len() > maxSummary || b.Len() > maxSummary/2 && r.Outcome == fleet.OK {
			left++
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %v | %s |\n", cell(r.Host), r.Outcome, cell(count(r)), r.Duration.Round(100*time.Millisecond), cell(trouble(r)))
	}
	if left > 0 {
		fmt.Fprintf(&b, "| … | | | | and %d more |\n", left)
	}
	for i := range results {
		for j := range results[i].Steps {
			s := &results[i].Steps[j]
			if !s.Failed() || b.Len() > maxSummary {
				continue
			}
			fmt.Fprintf(&b, "\n<details><summary>%s: %s</summary>\n\n%s\n</details>\n", inHTML(results[i].Host), inHTML(s.Name), fenced(detail(s)))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// trouble says what went wrong first on a host; nothing if all went well.
func trouble(r *script.Result) string {
	s := r.FirstFailure()
	switch {
	case r.Err != nil:
		return r.Err.Error()
	case s == nil:
		return ""
	case s.Err != nil:
		return s.Name + ": " + s.Err.Error()
	}
	return s.Name
}

// count says how many steps of a host went well.
func count(r *script.Result) string {
	good, skipped := 0, 0
	for i := range r.Steps {
		switch {
		case r.Steps[i].Outcome == fleet.OK || r.Steps[i].Ignored:
			good++
		case r.Steps[i].Outcome == fleet.Skipped:
			skipped++
		}
	}
	text := fmt.Sprintf("%d of %d", good, len(r.Steps))
	if skipped > 0 {
		text += fmt.Sprintf(", %d skipped", skipped)
	}
	return text
}

// cell makes a text fit into a table of Markdown, where it says nothing but
// itself.
func cell(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "\\", `\\`).Replace(oneLine(s))
}

// inHTML is cell for HTML, up to whose end Markdown means nothing.
func inHTML(s string) string { return html.EscapeString(oneLine(s)) }

func oneLine(s string) string { return strings.Join(strings.Fields(phrase.Plain(s)), " ") }

// fenced is a block of code, whose fence is longer than any in it.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "text\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n"
}
