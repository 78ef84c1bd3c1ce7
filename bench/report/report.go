// Package report turns what was measured into a page, charts, and an excerpt.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gateway/bench/work"
)

// A Report is one run.
type Report struct {
	// Date, Machine and Link are said at the top.
	Date    string `json:"date"`
	Machine string `json:"machine"`
	Link    string `json:"link"`
	Quick   bool   `json:"quick,omitempty"`
	Took    string `json:"took"`
	// Contenders are all that were asked for.
	Contenders []Contender   `json:"contenders"`
	Results    []work.Result `json:"results"`
}

// A Contender is who took part, or why not.
type Contender struct {
	Name    string `json:"name"`
	How     string `json:"how"`
	Version string `json:"version"`
	Ours    bool   `json:"ours,omitempty"`
	Missing string `json:"missing,omitempty"`
}

// Write puts the page, the charts and the figures into a directory.
func (r Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	figures, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	failed := []error{
		os.WriteFile(filepath.Join(dir, "latest.json"), append(figures, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "latest.md"), []byte(r.page()), 0o644),
	}
	for _, result := range r.Results {
		failed = append(failed, os.WriteFile(filepath.Join(dir, result.Letter+".svg"), []byte(r.chart(result)), 0o644))
	}
	return errors.Join(failed...)
}

// page is the report for people.
func (r Report) page() string {
	var b strings.Builder
	b.WriteString("# Side by side\n\n")
	if r.Quick {
		b.WriteString("**A quick run: it shows that everything works. Its figures mean little.**\n\n")
	}
	fmt.Fprintf(&b, "%s, in %s. %s. Far links: %s. ", r.Date, r.Took, r.Machine, r.Link)
	b.WriteString("Medians, with the quartiles: contenders were measured in turns, so trust the ratios more than the times. [bench/README.md](../README.md) says how; `make bench` does it again.\n\n")
	r.targets(&b)
	for _, result := range r.Results {
		fmt.Fprintf(&b, "## (%s) %s\n\n![chart](%s.svg)\n\n", result.Letter, result.Title, result.Letter)
		for _, t := range result.Tables {
			r.table(&b, t)
		}
	}
	b.WriteString("## Contenders\n\n| | what is run | version |\n|---|---|---|\n")
	for _, c := range r.Contenders {
		version := c.Version
		if c.Missing != "" {
			version = "not measured: " + c.Missing
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.Name, cell(c.How), cell(version))
	}
	return b.String()
}

func (r Report) targets(b *strings.Builder) {
	b.WriteString("## Targets\n\n| | target | measured | |\n|---|---|---|---|\n")
	for _, v := range Judge(r.Results) {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", v.What, v.Want, v.Got, v.Verdict)
	}
	b.WriteString("\n")
}

func (r Report) table(b *strings.Builder, t work.Table) {
	fmt.Fprintf(b, "### %s\n\n", upper(t.Title))
	if t.Note != "" {
		fmt.Fprintf(b, "%s.\n\n", upper(t.Note))
	}
	floor := median(t, t.Floor)
	head, rule := "| | median, "+t.Unit+" | quartiles | p99 |", "|---|---|---|---|"
	if floor > 0 {
		head, rule = head+" ratio |", rule+"---|"
	}
	fmt.Fprintf(b, "%s n | |\n%s---|---|\n", head, rule)
	for _, row := range t.Rows {
		note := strings.TrimSpace(row.Note + " " + row.Err)
		if row.N == 0 {
			fmt.Fprintf(b, "| %s |%s | %s |\n", r.name(row.Peer), strings.Repeat(" – |", strings.Count(rule, "|")-2)+" 0", cell(note))
			continue
		}
		fmt.Fprintf(b, "| %s | %s | %s–%s | %s |", r.name(row.Peer), number(row.Median), number(row.Q1), number(row.Q3), number(row.P99))
		if floor > 0 {
			fmt.Fprintf(b, " %s |", number(row.Median/floor))
		}
		fmt.Fprintf(b, " %d | %s |\n", row.N, cell(note))
	}
	b.WriteString("\n")
}

// name is bold for gateway's own rows.
func (r Report) name(peer string) string {
	if r.ours(peer) {
		return "**" + peer + "**"
	}
	return peer
}

func (r Report) ours(peer string) bool {
	for _, c := range r.Contenders {
		if c.Name == peer {
			return c.Ours
		}
	}
	return false
}

// median is that of a contender's row, or 0.
func median(t work.Table, peer string) float64 {
	for _, row := range t.Rows {
		if row.Peer == peer && row.N > 0 {
			return row.Median
		}
	}
	return 0
}

// number has three digits that count.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1 || v <= -1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

func upper(text string) string {
	if text == "" || text[0] < 'a' || text[0] > 'z' {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
